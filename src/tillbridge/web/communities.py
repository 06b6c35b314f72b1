"""The part of the status document about communities; there only where one is configured. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.model.instant import to_iso


def community(community_id: str, known: StoreSnapshot) -> dict[str, Any]:
    """Return a community's part; `known` is what the ledger has under its key."""
    mirror = _mapping(known.facts.get("mirror"))
    subscription = _mapping(known.facts.get("subscription"))
    hours = _mapping(known.facts.get("hours"))
    return {
        "community_id": community_id,
        "catalogue": {
            "stores": mirror.get("stores", 0),
            "categories": mirror.get("categories", 0),
            "items": mirror.get("items", 0),
            "as_of": mirror.get("as_of"),
            "read_at": _iso(mirror.get("read_at")),
            "read_whole_at": _iso(mirror.get("whole_at")),
        },
        "webhook": {
            "webhook_id": subscription.get("webhook_id"),
            "url": subscription.get("url"),
            "events": subscription.get("events", []),
            "checked_at": _iso(subscription.get("checked_at")),
            "unhandled": known.unhandled,
        },
        "orders": {"by_status": dict(_mapping(known.facts.get("orders")))},
        "hours": {
            store: {"pushed_at": _iso(_mapping(each).get("pushed_at"))}
            for store, each in hours.items()
        },
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _iso(at_ms: object) -> str | None:
    return to_iso(at_ms) if isinstance(at_ms, int) else None
