"""A store's menu as pages and commands show it: its state, a plan, items now and then, off sale."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypedDict

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import (
    accepted_ids,
    groups_of,
    ids_ever,
    item_count,
    items_by_id,
    items_off_by_pos,
    items_then,
    off_since,
    overlaid_items,
    parts,
    refused_items,
    variant_owners,
)
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.models import Hold, Push, StoreOverride
from tillbridge.ledger.pushes import DISMISSED, get_hold, get_overrides, options_off, push_page
from tillbridge.ledger.search import (
    FoundItem,
    FoundItems,
    find_items,
    find_options,
    fold,
    rank_of,
)
from tillbridge.menu.describe import (
    BadRowView,
    ChangesView,
    PushView,
    bad_row_json,
    changes_json,
    sentences,
    summary_lines,
)
from tillbridge.menu.plan import Assessment, StepSummary
from tillbridge.menu.sync import FIRST_IMPORT, PENDING
from tillbridge.model.catalogue import MenuSummaryView
from tillbridge.model.instant import iso_of, to_iso
from tillbridge.model.money import to_major

_PER_PAGE = 50
_PUSHES = 30
_REFUSED_SHOWN = 50
_CALLS = {
    "full": "POST menus",
    "batch": "POST menus/batch",
    "patch": "PATCH items/{external_id}",
    "availability": "POST items/availability",
}


# -- how the menu stands


class ExportView(TypedDict):
    """The export as it was read last."""

    items: int | None
    read_at: str | None


class RefusedView(TypedDict):
    """An item that the service refused, with its reason."""

    external_id: str
    name: str
    reason: str


class DismissedView(TypedDict):
    """Who did not want the change that is held, and since when."""

    by: str
    at: str | None


class HoldView(TypedDict):
    """A change that waits for a person, why, and how many items it adds, changes and removes."""

    since: str
    reasons: list[str]
    counts: dict[str, int]
    approved: bool
    dismissed: DismissedView | None


class FirstImportView(TypedDict):
    """The first menu of a storefront, in sentences."""

    at: str | None
    lines: list[str]


class MenuState(TypedDict):
    """How the menu stands; `refused` holds the first of `refused_count`."""

    export: ExportView
    accepted: int
    pending: int
    last_synced_at: str | None
    hold: HoldView | None
    refused: list[RefusedView]
    refused_count: int
    first_import: FirstImportView | None


def menu_state(connection: Connection, store: str) -> MenuState:
    """Return how the menu stands: what the till says, what the service has, what waits."""
    export = get_fact(connection, store, "export", dict) or {}
    refused = refused_items(connection, store)
    shown = list(refused.items())[:_REFUSED_SHOWN]
    names = items_by_id(connection, store, [key for key, _refusal in shown])
    hold = get_hold(connection, store)
    return {
        "export": {"items": export.get("items"), "read_at": iso_of(export.get("read_at"))},
        "accepted": item_count(connection, store),
        "pending": get_fact(connection, store, PENDING) or 0,
        "last_synced_at": iso_of(get_fact(connection, store, "last_synced_at")),
        "hold": None
        if hold is None
        else _hold(hold, get_fact(connection, store, DISMISSED, dict) or {}),
        "refused": [
            {
                "external_id": key,
                "name": names[key].item.name if key in names else refusal.name,
                "reason": refusal.reason,
            }
            for key, refusal in shown
        ],
        "refused_count": len(refused),
        "first_import": _first(get_fact(connection, store, FIRST_IMPORT, dict)),
    }


def _first(stored: Mapping[str, Any] | None) -> FirstImportView | None:
    if stored is None:
        return None
    return {"at": iso_of(stored.get("at")), "lines": list(stored.get("lines", ()))}


def _hold(hold: Hold, dismissed: Mapping[str, Any]) -> HoldView:
    of_this = dismissed.get("digest") == hold.digest
    return {
        "since": to_iso(hold.since),
        "reasons": list(hold.reasons),
        "counts": dict(hold.summary.get("counts", {})),
        "approved": hold.approved,
        "dismissed": {"by": by_whom(dismissed.get("by")), "at": iso_of(dismissed.get("at"))}
        if of_this
        else None,
    }


# -- what would be pushed, and what was


class CallView(StepSummary):
    """A call of a plan: method, path below the store, and what it carries."""

    call: str


class PlanView(TypedDict):
    """A plan as `menu plan --json` prints it; prices in minor units.

    `held` says why it would wait for a person. A first import is summed up as JSON (else None), and
    in sentences; `lines` are sentences about the rest.
    """

    kind: str
    items_read: int
    counts: dict[str, int]
    changes: ChangesView
    calls: list[CallView]
    held: list[str]
    approved: bool
    first_import: MenuSummaryView | None
    first_import_lines: list[str]
    bad_rows: list[BadRowView]
    lines: list[str]


def plan_view(assessment: Assessment, currency: str) -> PlanView:
    """Return what a round comes to."""
    comparison, first = assessment.comparison, assessment.first
    changes, suspects = comparison.changes, assessment.suspects
    lines = sentences(changes, comparison.acknowledged, comparison.current, currency, suspects)
    return {
        "kind": "held" if assessment.reasons else assessment.plan.kind,
        "items_read": comparison.items_read,
        "counts": changes.counts,
        "changes": changes_json(changes),
        "calls": [{"call": _CALLS[each.kind], **each.summary} for each in assessment.plan.steps],
        "held": list(assessment.reasons),
        "approved": assessment.approved,
        "first_import": None if first is None else first.to_json(currency),
        "first_import_lines": [] if first is None else list(summary_lines(first, currency)),
        "bad_rows": [bad_row_json(row) for row in comparison.current.bad_rows],
        "lines": list(lines),
    }


class PushesPage(TypedDict):
    """The pushes before one, newest first; `more`: older ones are there."""

    pushes: list[PushView]
    more: bool
    currency: str


def pushes_page(
    connection: Connection, store: str, currency: str, before: int | None
) -> PushesPage:
    """Return the pushes before the one with that id, newest first."""
    found = push_page(connection, store, _PUSHES + 1, before=before)
    shown = [_push(each) for each in found[:_PUSHES]]
    return {"pushes": shown, "more": len(found) > _PUSHES, "currency": currency}


def _push(push: Push) -> PushView:
    return {
        "id": push.id,
        "kind": push.kind,
        "state": push.state,
        "started_at": to_iso(push.started_at),
        "took_ms": None if push.finished_at is None else max(0, push.finished_at - push.started_at),
        "summary": dict(push.summary),
        "message": push.message,
        "job_id": push.job_id,
    }


# -- items: what the storefront has or had, and items by a few letters


class ItemView(TypedDict):
    """An item or a variant; the price is decimal text. `pos_on_sale` is what the till says."""

    external_id: str
    name: str
    variant: str
    price: str
    on_sale: bool
    pos_on_sale: bool


class ItemsPage(TypedDict):
    """A page of items; `count` is of lines, where each size has its own, `items_count` of items."""

    items: list[ItemView]
    count: int
    items_count: int
    page: int
    pages: int
    currency: str
    at: str | None


class FoundItemView(ItemView):
    """An item that fits a few letters; `stopped`: staff have taken it off sale."""

    item_id: str
    currency: str
    stopped: bool


class FoundView(TypedDict):
    """The first items that fit a few letters, best first, and how many do."""

    items: list[FoundItemView]
    count: int


def items_page(
    connection: Connection, store: str, text: str, currency: str, *, page: int, at_ms: int | None
) -> ItemsPage:
    """Return a page of what the storefront has, or had at `at_ms`."""
    offset = (page - 1) * _PER_PAGE
    if at_ms is None:
        found = find_items(connection, store, text, limit=_PER_PAGE, offset=offset)
    else:
        then = _then(connection, store, text, at_ms)
        found = FoundItems(then[offset : offset + _PER_PAGE], len(then), len(then))
    return {
        "items": [_item(each, currency) for each in found.items],
        "count": found.count,
        "items_count": found.items_count,
        "page": page,
        "pages": max(1, -(-found.count // _PER_PAGE)),
        "currency": currency,
        "at": iso_of(at_ms),
    }


def items_found(
    connection: Connection, store: str, text: str, currency: str, *, limit: int
) -> FoundView:
    """Return items and variants that fit the letters, best first; then add-ons."""
    found = find_items(connection, store, text, limit=limit, offset=0)
    options = find_options(connection, store, text, limit=max(0, limit - len(found.items)))
    lines = [*found.items]
    lines += [
        FoundItem(each.external_id, each.name, each.price, on_sale, each.external_id)
        for each, on_sale in options
    ]
    stopped = get_overrides(connection, store, StoreOverride)
    return {
        "items": [
            {
                **_item(each, currency),
                "item_id": each.item_id,
                "currency": currency,
                "stopped": each.external_id in stopped,
            }
            for each in lines
        ],
        "count": found.count + len(lines) - len(found.items),
    }


def _item(found: FoundItem, currency: str) -> ItemView:
    return {
        "external_id": found.external_id,
        "name": found.name,
        "variant": found.variant,
        "price": to_major(found.price, currency),
        "on_sale": found.on_sale,
        "pos_on_sale": found.pos_on_sale,
    }


def name_of_item(connection: Connection, store: str, external_id: str) -> str:
    """Return what people call an item, a variant or an add-on; its id where the menu has none."""
    owner = variant_owners(connection, store, [external_id]).get(external_id, external_id)
    found = items_by_id(connection, store, {owner}).get(owner)
    if found is None:
        return _option_names(connection, store, [external_id]).get(external_id, external_id)
    return f"{found.item.name} {_variant_of(found, external_id)}".rstrip()


def is_item(connection: Connection, store: str, external_id: str) -> bool:
    """Return whether the menu has an item, a variant or an add-on of this id."""
    return bool(
        accepted_ids(connection, store, [external_id])
        or variant_owners(connection, store, [external_id])
        or _option_names(connection, store, [external_id])
    )


def _option_names(connection: Connection, store: str, ids: Collection[str]) -> dict[str, str]:
    return {key: each.name for key, each in parts(connection, store, add_ons=ids).add_ons.items()}


def _then(connection: Connection, store: str, text: str, at_ms: int) -> list[FoundItem]:
    items = items_then(connection, store, ids_ever(connection, store), at_ms)
    wanted = fold(text.strip()[:60])
    ranked = sorted(
        (rank, fold(item.name), key)
        for key, item in items.items()
        if (rank := rank_of(wanted, fold(item.name), key)) is not None
    )
    return [
        FoundItem(
            key,
            items[key].name,
            items[key].price,
            items[key].available,
            item_id=key,
            variant=", ".join(each.variant_name for each in items[key].variants),
            pos_on_sale=items[key].available,
        )
        for _rank, _name, key in ranked
    ]


# -- what is off sale


class OffSale(TypedDict):
    """Why an item, variant or add-on is off sale (`how`: staff, order or till), and since when.

    `reached_ms` is how long it took until the storefront had it, at `reached_at`.
    """

    external_id: str
    name: str
    variant: str
    how: Literal["staff", "order", "till"]
    by: str
    since: str | None
    until: str | None
    reached_at: str | None
    reached_ms: int | None


def overrides_in_force(connection: Connection, store: str, now: int) -> dict[str, StoreOverride]:
    """Return what staff, or a refused order, have taken off sale, by external id."""
    found = get_overrides(connection, store, StoreOverride)
    return {key: each for key, each in found.items() if each.until is None or each.until > now}


def items_off_sale(connection: Connection, store: str, now: int) -> list[OffSale]:
    """Return what is off sale, the latest first."""
    overrides = overrides_in_force(connection, store, now)
    owners = variant_owners(connection, store, overrides)
    named = items_by_id(connection, store, {*overrides, *owners.values()})
    options_out = options_off(groups_of(connection, store, ())) - overrides.keys()
    options = _option_names(connection, store, {*overrides, *options_out} - named.keys())
    off_sale = [
        _off_by_override(each, named.get(owners.get(key, key)), options.get(key, key))
        for key, each in overrides.items()
    ]
    known = items_off_by_pos(connection, store) | overlaid_items(connection, store)
    off = {
        key: each.item
        for key, each in known.items()
        if key not in overrides and not each.item.available
    }
    since = off_since(connection, store, list(off))
    ends = dict.fromkeys(options_out) | {k: each.snooze_until for k, each in off.items()}
    names = options | {key: item.name for key, item in off.items()}
    off_sale += [
        {
            "external_id": key,
            "name": names.get(key, key),
            "variant": "",
            "how": "till",
            "by": "",
            "since": iso_of(since.get(key)),
            "until": iso_of(until),
            "reached_at": iso_of(since.get(key)),
            "reached_ms": None,
        }
        for key, until in ends.items()
    ]
    return sorted(off_sale, key=lambda each: (each["since"] or "", each["name"]), reverse=True)


def _off_by_override(override: StoreOverride, owner: AcceptedItem | None, name: str) -> OffSale:
    """Return what staff have taken off sale, or the till when it refused an order."""
    external_id, by_order = override.external_id, override.by == "order"
    return {
        "external_id": external_id,
        "name": name if owner is None else owner.item.name,
        "variant": "" if owner is None else _variant_of(owner, external_id),
        "how": "order" if by_order else "staff",
        "by": "" if by_order else by_whom(override.by),
        "since": to_iso(override.at),
        "until": iso_of(override.until),
        "reached_at": iso_of(override.sent_at),
        "reached_ms": override.sent_at and max(0, override.sent_at - override.at),
    }


def _variant_of(owner: AcceptedItem, external_id: str) -> str:
    """Return the name of an item's variant; "" for the item itself."""
    variants = owner.item.variants
    return next((each.variant_name for each in variants if each.external_id == external_id), "")
