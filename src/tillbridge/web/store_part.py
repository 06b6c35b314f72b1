"""A store's own part of the status: open or paused and by whom, settings, hours, taxes. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tillbridge.model.instant import to_iso
from tillbridge.stores.closure import StoreClosure, closure_of, from_json


def standing_in(facts: Mapping[str, Any]) -> StoreClosure:
    """Return how the store stands, as the ledger's facts have it."""
    return closure_of(from_json(facts.get("standing")))


def store_part(facts: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Return `stores.NAME.store` of the status document, from the store's facts."""
    stands = standing_in(facts)
    kept = _mapping(facts.get("standing"))
    settings = _mapping(facts.get("store_settings"))
    tax = _mapping(facts.get("tax"))
    return {
        "status": stands.status,
        "told": kept.get("told"),  # what the service was told last; None: not known
        "paused_by": None if stands.who is None else str(stands.who),
        "by": stands.by,
        "reason": stands.reason,
        "since": _iso(stands.since_ms),
        "until": _iso(stands.until_ms),
        "next_change_at": _iso(kept.get("next_change_ms")),
        "settings": {
            "pending": list(settings.get("pending", ())),
            "last_sent_at": _iso(settings.get("sent_at")),
        },
        "hours_today": _hours_today(facts.get("store_hours"), now_ms),
        "tax": {
            "checked_at": _iso(tax.get("checked_at")),
            "differences": list(tax.get("differences", ())),
        },
    }


def _hours_today(kept: object, now_ms: int) -> list[str] | None:
    """Return today's spans; None where no file tells hours."""
    if kept is None:
        return None
    from tillbridge.model.hours import hours_from_json, zone_of  # noqa: PLC0415 -- few stores have

    hours = hours_from_json(kept)
    if hours is None:
        return None
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return [str(span) for span in hours.on(now.astimezone(zone_of(hours.timezone)).date())]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _iso(at_ms: object) -> str | None:
    return to_iso(at_ms) if isinstance(at_ms, int) else None
