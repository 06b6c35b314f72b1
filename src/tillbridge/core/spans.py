"""Lengths of time in words, the same on every surface."""

from tillbridge.core.i18n import _, ngettext

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def span(seconds: float) -> str:
    """Return a length of time in its largest fitting unit, rounded down: `3 minutes`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return ngettext("{n} second", "{n} seconds", whole).format(n=whole)
    if whole < 2 * _HOUR:
        minutes = whole // _MINUTE
        return ngettext("{n} minute", "{n} minutes", minutes).format(n=minutes)
    if whole < 2 * _DAY:
        hours = whole // _HOUR
        return ngettext("{n} hour", "{n} hours", hours).format(n=hours)
    days = whole // _DAY
    return ngettext("{n} day", "{n} days", days).format(n=days)


def days_left(left_ms: int) -> str:
    """Return how long something still lasts, rounded as the status document's days are."""
    if left_ms <= 0:
        return _("a moment: its days are over")
    return span(round(max(0, left_ms) / (_DAY * 1000), 1) * _DAY)
