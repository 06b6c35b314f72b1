"""A store's menu as pages and commands show it: its state, items now and then, what is off sale."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.core.operation import Answer
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import (
    accepted_ids,
    ids_ever,
    item_count,
    items_by_id,
    items_off_by_pos,
    items_then,
    off_since,
    overlaid_items,
    refused_items,
    variant_owners,
)
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.models import Hold, Push, StoreOverride
from tillbridge.ledger.overrides import get_overrides
from tillbridge.ledger.pushes import DISMISSED, get_hold, push_page
from tillbridge.ledger.search import FoundItem, FoundItems, find_items, fold, rank_of
from tillbridge.menu.sync import FIRST_IMPORT, PENDING
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major

_PER_PAGE = 50
_PUSHES = 30
_REFUSED_SHOWN = 50
_LISTED = ("external_id", "name", "variant", "price", "on_sale", "pos_on_sale")


def menu_state(connection: Connection, store: str) -> Answer:
    """Return how the menu stands: what the till says, what the service has, what waits."""
    export = get_fact(connection, store, "export")
    known = export if isinstance(export, Mapping) else {}
    refused = refused_items(connection, store)
    shown = list(refused.items())[:_REFUSED_SHOWN]
    names = items_by_id(connection, store, [key for key, _refusal in shown])
    hold = get_hold(connection, store)
    return {
        "export": {"items": known.get("items"), "read_at": _iso(known.get("read_at"))},
        "accepted": item_count(connection, store),
        "pending": get_fact(connection, store, PENDING) or 0,
        "last_synced_at": _iso(get_fact(connection, store, "last_synced_at")),
        "hold": None if hold is None else _hold(hold, get_fact(connection, store, DISMISSED)),
        "refused": [
            {
                "external_id": key,
                "name": names[key].item.name if key in names else refusal.name,
                "reason": refusal.reason,
            }
            for key, refusal in shown
        ],
        "refused_count": len(refused),
        "first_import": _first(get_fact(connection, store, FIRST_IMPORT)),
    }


def items_page(
    connection: Connection, store: str, text: str, currency: str, *, page: int, at_ms: int | None
) -> Answer:
    """Return a page of what the storefront has, or had at `at_ms`."""
    offset = (page - 1) * _PER_PAGE
    if at_ms is None:
        found = find_items(connection, store, text, limit=_PER_PAGE, offset=offset)
    else:
        then = _then(connection, store, text, at_ms)
        found = FoundItems(then[offset : offset + _PER_PAGE], len(then), len(then))
    return {
        "items": [
            {key: value for key, value in _found(each, currency).items() if key in _LISTED}
            for each in found.items
        ],
        "count": found.count,
        "items_count": found.items_count,
        "page": page,
        "pages": max(1, -(-found.count // _PER_PAGE)),
        "currency": currency,
        "at": _iso(at_ms),
    }


def pushes_page(connection: Connection, store: str, before: int | None) -> Answer:
    """Return the pushes before the one with that id, newest first."""
    found = push_page(connection, store, _PUSHES + 1, before=before)
    return {"pushes": [_push(each) for each in found[:_PUSHES]], "more": len(found) > _PUSHES}


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


def _first(stored: object) -> Answer | None:
    if not isinstance(stored, Mapping):
        return None
    return {"at": _iso(stored.get("at")), "lines": list(stored.get("lines", ()))}


def _hold(hold: Hold, dismissed: object) -> Answer:
    by_category = hold.summary.get("by_category", {})
    gone = None
    if isinstance(dismissed, Mapping) and dismissed.get("digest") == hold.digest:
        gone = {"by": by_whom(dismissed.get("by")), "at": _iso(dismissed.get("at"))}
    return {
        "since": to_iso(hold.since),
        "reasons": list(hold.reasons),
        "counts": dict(hold.summary.get("counts", {})),
        # the items that made it wait, as lines, the worst first
        "suspects": list(hold.summary.get("suspects", ())),
        "suspects_count": hold.summary.get("suspects_count", 0),
        "categories": [
            {"name": name}
            | {key: list(changes.get(key, ())) for key in ("removed", "added", "changed")}
            for name, changes in by_category.items()
        ],
        "approved": hold.approved,
        "dismissed": gone,
    }


def _push(push: Push) -> Answer:
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


def _iso(at_ms: object) -> str | None:
    return to_iso(at_ms) if isinstance(at_ms, int) else None


# -- what is off sale, and items by a few letters


@dataclass(frozen=True, slots=True)
class OffSale:
    """Why an item or a variant is off sale (`how`: staff, order or till), and since when.

    `reached_ms` is how long it took until the storefront had it, at `reached_at`.
    """

    external_id: str
    name: str
    variant: str = ""
    how: str = "till"
    by: str = ""
    since: str | None = None
    until: str | None = None
    reached_at: str | None = None
    reached_ms: int | None = None

    @classmethod
    def by_override(cls, override: StoreOverride, owner: AcceptedItem | None) -> "OffSale":
        """Return what staff have taken off, or the till when it refused an order."""
        external_id, by_order = override.external_id, override.by == "order"
        return cls(
            external_id,
            external_id if owner is None else owner.item.name,
            "" if owner is None else _variant_of(owner, external_id),
            how="order" if by_order else "staff",
            by="" if by_order else by_whom(override.by),
            since=to_iso(override.at),
            until=_iso(override.until),
            reached_at=_iso(override.sent_at),
            reached_ms=override.sent_at and max(0, override.sent_at - override.at),
        )


def items_off_sale(connection: Connection, store: str, now: int) -> list[Answer]:
    """Return what is off sale, the latest first."""
    overrides = {
        key: each
        for key, each in get_overrides(connection, store).items()
        if each.until is None or each.until > now
    }
    owners = variant_owners(connection, store, overrides)
    named = items_by_id(connection, store, {*overrides, *owners.values()})
    stopped = [
        OffSale.by_override(each, named.get(owners.get(key, key)))
        for key, each in overrides.items()
    ]
    known = items_off_by_pos(connection, store) | overlaid_items(connection, store)
    off = {
        key: each.item
        for key, each in known.items()
        if key not in overrides and not each.item.available
    }
    since = off_since(connection, store, list(off))
    for key, item in off.items():
        at, until = _iso(since.get(key)), _iso(item.snooze_until)
        stopped.append(OffSale(key, item.name, since=at, until=until, reached_at=at))
    latest = sorted(stopped, key=lambda each: (each.since or "", each.name), reverse=True)
    return [asdict(each) for each in latest]


def items_found(
    connection: Connection, store: str, text: str, currency: str, *, limit: int
) -> Answer:
    """Return items and variants that fit the letters, best first."""
    found = find_items(connection, store, text, limit=limit, offset=0)
    stopped = get_overrides(connection, store)
    items = [
        _found(each, currency) | {"stopped": each.external_id in stopped} for each in found.items
    ]
    return {"items": items, "count": found.count}


def name_of_item(connection: Connection, store: str, external_id: str) -> str:
    """Return what people call an item or a variant; its id where the menu has none."""
    owner = variant_owners(connection, store, [external_id]).get(external_id, external_id)
    found = items_by_id(connection, store, {owner}).get(owner)
    if found is None:
        return external_id
    return f"{found.item.name} {_variant_of(found, external_id)}".rstrip()


def is_item(connection: Connection, store: str, external_id: str) -> bool:
    """Return whether the menu has an item or a variant of this id."""
    return bool(
        accepted_ids(connection, store, [external_id])
        or variant_owners(connection, store, [external_id])
    )


def _found(item: FoundItem, currency: str) -> dict[str, Any]:
    return {
        "external_id": item.external_id,
        "item_id": item.item_id,
        "name": item.name,
        "variant": item.variant,
        "price": to_major(item.price, currency),
        "currency": currency,
        "on_sale": item.on_sale,
        "pos_on_sale": item.pos_on_sale,
    }


def _variant_of(owner: AcceptedItem, external_id: str) -> str:
    """Return the name of an item's variant; "" for the item itself."""
    variants = owner.item.variants
    return next((each.variant_name for each in variants if each.external_id == external_id), "")
