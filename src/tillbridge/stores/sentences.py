"""Why a store takes no orders, and busy mode, in sentences for the page and the command line."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import N_, _, ngettext

_WHY = {
    "person": N_("Paused by {by}."),
    "somebody else": N_("Somebody closed it at the ordering service."),
    "bridge": N_(
        "Paused by the bridge: the till is offline. The store reopens when the till is back."
    ),
    "till": N_("The till takes no orders now. The store reopens when the till does."),
    "busy mode": N_(
        "Busy mode: the kitchen has all the orders it can take. The store reopens automatically."
    ),
    "schedule": N_("Closed by the schedule."),
}
_NOT_STEADY = N_("Paused by the bridge until the till stays connected.")


def why_closed(closure: Mapping[str, Any]) -> str:
    """Return why a store takes no orders (a `ClosureView`); "" where it does."""
    who, reason = closure.get("paused_by"), closure.get("reason") or ""
    if who == "bridge" and reason:
        return f"{_(_NOT_STEADY)} ({reason})"
    text = _(_WHY[who]).format(by=closure.get("by") or "?") if who in _WHY else ""
    return f"{text} ({reason})" if text and reason and who != "busy mode" else text


def busy_words(closure: Mapping[str, Any]) -> str:
    """Return what busy mode lets through; "" where it is off."""
    busy = closure.get("busy")
    if not busy:
        return ""
    return ngettext(
        "Busy mode: {n} order every {minutes} minutes.",
        "Busy mode: {n} orders every {minutes} minutes.",
        busy["orders"],
    ).format(n=busy["orders"], minutes=busy["minutes"])
