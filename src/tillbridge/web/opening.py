"""Whether a store takes orders, as pages show it, with what a person can do about it."""

from collections.abc import Mapping
from typing import Any

from tillbridge.model.instant import from_iso
from tillbridge.stores.sentences import busy_words, why_closed


def opening_of(key: str, part: Mapping[str, Any], now_ms: int) -> Mapping[str, Any] | None:
    """Return a store of the status document as `opening.html` shows it; None: not connected."""
    store = part.get("store") or {}
    if not part["service"]["integrated"] or not store:
        return None
    until = store["until"]
    return {
        "key": key,
        "name": part["service"]["store_name"] or key,
        "open": store["status"] != "inactive",
        "why": why_closed(store),
        "since": store["since"],
        "until": until,
        "left_s": max(0, from_iso(until) - now_ms) / 1000 if until else None,
        # What a person may end: the till's absence ends by itself.
        "reopens": store["paused_by"] not in {"bridge", "till"},
        "busy": busy_words(store),
        "busy_until": store["busy"]["until"] if store["busy"] else None,
    }
