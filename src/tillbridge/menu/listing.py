"""A store's menu as the page shows it: how it stands, its items now and then, its pushes."""

from collections.abc import Mapping

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.core.operation import Answer
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import item_count, items_by_id, refused_items
from tillbridge.ledger.menu_past import ids_ever, items_then
from tillbridge.ledger.models import Hold, Push
from tillbridge.ledger.pushes import DISMISSED, get_hold, push_page
from tillbridge.ledger.search import find_items, fold, rank_of
from tillbridge.menu.report import FIRST_IMPORT
from tillbridge.model.catalogue import Item
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major

_PER_PAGE = 50
_PUSHES = 30
_REFUSED_SHOWN = 50


def menu_standing(connection: Connection, store: str) -> Answer:
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
        "pending": get_fact(connection, store, "menu_pending") or 0,
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
        rows = [
            {
                "external_id": each.external_id,
                "name": each.name,
                "variant": each.variant,
                "price": to_major(each.price, currency),
                "on_sale": each.on_sale,
                "pos_on_sale": each.pos_on_sale,
            }
            for each in found.items
        ]
        count, items_count = found.count, found.items_count
    else:
        then = _then(connection, store, text, at_ms)
        count = items_count = len(then)
        rows = [_row(each, currency) for each in then[offset : offset + _PER_PAGE]]
    return {
        "items": rows,
        "count": count,
        "items_count": items_count,
        "page": page,
        "pages": max(1, -(-count // _PER_PAGE)),
        "currency": currency,
        "at": _iso(at_ms),
    }


def pushes_page(connection: Connection, store: str, before: int | None) -> Answer:
    """Return the pushes before the one with that id, newest first."""
    found = push_page(connection, store, _PUSHES + 1, before=before)
    return {"pushes": [_push(each) for each in found[:_PUSHES]], "more": len(found) > _PUSHES}


def _then(connection: Connection, store: str, text: str, at_ms: int) -> list[Item]:
    items = items_then(connection, store, ids_ever(connection, store), at_ms)
    wanted = fold(text.strip()[:60])
    ranked = [
        (rank, fold(item.name), key, item)
        for key, item in items.items()
        if (rank := rank_of(wanted, fold(item.name), key)) is not None
    ]
    return [each[3] for each in sorted(ranked, key=lambda each: each[:3])]


def _row(item: Item, currency: str) -> Answer:
    return {
        "external_id": item.external_id,
        "name": item.name,
        "variant": ", ".join(each.variant_name for each in item.variants),
        "price": to_major(item.price, currency),
        "on_sale": item.available,
        "pos_on_sale": item.available,
    }


def _first(kept: object) -> Answer | None:
    if not isinstance(kept, Mapping):
        return None
    return {"at": _iso(kept.get("at")), "lines": list(kept.get("lines", ()))}


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
            {
                "name": name,
                "removed": list(changes.get("removed", ())),
                "added": list(changes.get("added", ())),
                "changed": list(changes.get("changed", ())),
            }
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
