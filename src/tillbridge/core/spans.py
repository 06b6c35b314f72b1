"""Instants, lengths of time and counts in words, the same on every surface."""

from datetime import datetime

from tillbridge.core.i18n import _, ngettext

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CLOCKS_DIFFER_MS = 5000


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


def clock_time(at_ms: int, now_ms: int) -> str:
    """Return an instant in this machine's time: of today the time, else with its date."""
    at, now = (datetime.fromtimestamp(ms / 1000).astimezone() for ms in (at_ms, now_ms))
    if at.date() == now.date():
        return at.strftime("%H:%M")
    return at.strftime("%d %b %H:%M" if at.year == now.year else "%d %b %Y %H:%M")


def time_since(at_ms: int, now_ms: int) -> str:
    """Return how long ago an instant was; of one that is still to come, that a clock was changed.

    "answered" and the like stand before it.
    """
    if at_ms > now_ms + _CLOCKS_DIFFER_MS:
        return _("at {time}, which is still to come: the clock was changed").format(
            time=clock_time(at_ms, now_ms)
        )
    return _("{span} ago").format(span=span((now_ms - at_ms) / 1000))


def local_second(at_ms: int) -> str:
    """Return an instant in this machine's time, to the second."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def waiting(count: int, oldest_s: float | None) -> str:
    """Return the sentence about orders that the till does not have yet; "" where there are none."""
    if not count:
        return ""
    if oldest_s is None:
        return ngettext(
            "{n} order waits for the till.", "{n} orders wait for the till.", count
        ).format(n=count)
    return ngettext(
        "{n} order waits for the till, for {span}.",
        "{n} orders wait for the till, the oldest for {span}.",
        count,
    ).format(n=count, span=span(oldest_s))


def short_span(ms: int) -> str:
    """Return a length of time as a measurement: `40 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    seconds = ms // 1000
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE} s"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return span(seconds)
