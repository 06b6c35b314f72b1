"""Instants: UTC, integer milliseconds since the epoch inside, ISO 8601 at the edges.

Specification: General conventions ("ISO 8601 UTC strings with milliseconds").
"""

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import overload

ONE_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# A day of room on both sides, so that every instant can be shown in every time zone.
_FIRST_MS = (datetime(1, 1, 3, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST_MS = (datetime(9999, 12, 30, tzinfo=UTC) - _EPOCH) // _MILLISECOND
# The last day of all, in whatever time zone.
_YEAR_10000_MS = _LAST_MS + 3 * 86_400_000

EARLIEST_MS = 946_684_800_000  # 2000-01-01
LATEST_MS = 4_102_444_800_000  # 2100-01-01
"""No end of anything lies outside of these: what does is in another unit, or a word for never."""


def is_never(at_ms: int) -> bool:
    """Whether the instant stands for no end at all: after this century, up to the year 9999.

    Microseconds that were taken for milliseconds lie far beyond.
    """
    return LATEST_MS < at_ms < _YEAR_10000_MS


@overload
def to_iso(at_ms: int) -> str: ...
@overload
def to_iso(at_ms: int | None) -> str | None: ...
def to_iso(at_ms: int | None) -> str | None:
    """Return the instant as the service writes it: `2026-11-21T19:02:00.000Z`; None for none.

    Total: what lies before the year 1 or after 9999 is shown as its first or last days.
    """
    if at_ms is None:
        return None
    moment = _EPOCH + timedelta(milliseconds=min(max(at_ms, _FIRST_MS), _LAST_MS))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_of(at_ms: object) -> str | None:
    """Return as `to_iso` what a fact says of an instant; None where that is no whole number."""
    return to_iso(at_ms) if isinstance(at_ms, int) else None


def end_or_never(until_ms: int | None) -> int | None:
    """Return an end that was stored; None (no end) for one after the year 2100."""
    return None if until_ms is None or until_ms > LATEST_MS else until_ms


def from_iso(text: str) -> int:
    """Return the milliseconds since the epoch of an ISO 8601 timestamp; without a zone it is UTC.

    Raises ValueError for anything else, and for what `to_iso` could not write.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at_ms = (moment - _EPOCH) // _MILLISECOND
    if not _FIRST_MS <= at_ms <= _LAST_MS:
        msg = f"no instant of the years 1 to 9999: {text!r}"
        raise ValueError(msg)
    return at_ms


def day_of(at_ms: int, zone: tzinfo | None = None) -> date:
    """Return the day of an instant in `zone`; None is this machine's."""
    at_ms = min(max(at_ms, _FIRST_MS), _LAST_MS)
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone).date()


def day_starts(day: date, zone: tzinfo | None = None) -> int:
    """Return when a day begins in `zone` (None: this machine's), in ms since the epoch."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 -- its zone follows
    local = midnight.astimezone() if zone is None else midnight.replace(tzinfo=zone)
    return (local.astimezone(UTC) - _EPOCH) // _MILLISECOND
