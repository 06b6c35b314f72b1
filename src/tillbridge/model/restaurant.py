"""A restaurant's tables and its opening hours.

Specification: Store settings body (availability); Resources, Table; Store hours.

A time of day is a number of minutes after midnight, from 0 to 1440 (24:00); a span never goes past
its day's end. A day on which the clocks change is a day like any other: a time that does not exist
counts from the moment the clock jumps over it, and of a time that comes twice the first opens, the
second closes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the POS. `seats` is None if the POS does not say."""

    external_id: str
    name: str
    seats: int | None = None
    zone: str = ""


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY_MINUTES = 24 * 60

_LOOK_AHEAD_DAYS = 400  # whoever closes for longer has no opening to wait for


class Span(NamedTuple):
    """From `opens` to `closes`, in minutes after midnight; `closes` is the later one."""

    opens: int
    closes: int

    def __str__(self) -> str:
        return f"{clock_time(self.opens)}-{clock_time(self.closes)}"


@dataclass(frozen=True, slots=True)
class DatedHours:
    """One date that is not like its weekday; without spans the store is closed."""

    day: date
    spans: tuple[Span, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """A store's week, Monday first, and the dates that differ from it.

    `timezone` is an IANA name; "" is this machine's.
    """

    timezone: str
    weekly: tuple[tuple[Span, ...], ...]
    overrides: tuple[DatedHours, ...] = ()

    def on(self, day: date) -> tuple[Span, ...]:
        """Return the spans of a date."""
        dated = (each.spans for each in reversed(self.overrides) if each.day == day)
        return next(dated, self.weekly[day.weekday()])


@dataclass(frozen=True, slots=True)
class PlannedPause:
    """A time without online orders, every week (`weekday`, Monday 0) or on one date (`day`)."""

    span: Span
    weekday: int | None = None
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """Whether the store is open at a moment, and until when (ms; None: for longer than a year)."""

    is_open: bool
    until_ms: int | None


def clock_time(minutes: int) -> str:
    """Return minutes after midnight as HH:MM; the day's end is 24:00."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def week_json(
    weekly: tuple[tuple[Span, ...], ...], *, end_of_day: str = "24:00"
) -> dict[str, list[dict[str, str]]]:
    """Return a week as the service writes it: by weekday, each a list of {open, close}.

    `end_of_day` is how a day's end is written, which the specification does not show.
    """

    def closing(minutes: int) -> str:
        return end_of_day if minutes == DAY_MINUTES else clock_time(minutes)

    return {
        name: [{"open": clock_time(span.opens), "close": closing(span.closes)} for span in spans]
        for name, spans in zip(WEEKDAYS, weekly, strict=True)
    }


@cache
def _stored_hours() -> TypeAdapter[OpeningHours]:
    return TypeAdapter(OpeningHours)


def hours_to_json(hours: OpeningHours) -> dict[str, Any]:
    """Return the hours as a JSON value, to be stored."""
    stored: dict[str, Any] = _stored_hours().dump_python(hours, mode="json")
    return stored


def hours_from_json(stored: object) -> OpeningHours | None:
    """Return the hours of `hours_to_json`; None if there are none."""
    return None if stored is None else _stored_hours().validate_python(stored)


def opening_at(hours: OpeningHours, now_ms: int) -> Opening:
    """Return whether the store is open at `now_ms`, and when that changes."""
    zone = zone_of(hours.timezone)
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    days = [today + timedelta(days=offset) for offset in range(-1, _LOOK_AHEAD_DAYS)]
    for start, end in _joined(_spans_of(hours, days, zone)):
        if now_ms < start:
            return Opening(is_open=False, until_ms=start)
        if now_ms < end:
            ends = end < _instant(days[-1], DAY_MINUTES, zone, fold=1)
            return Opening(is_open=True, until_ms=end if ends else None)
    return Opening(is_open=False, until_ms=None)


def openings(hours: OpeningHours, first: date, last: date) -> list[tuple[int, int]]:
    """Return when the store is open from `first` to `last`: (from, until) in ms, one a stretch."""
    count = (last - first).days + 1
    days = [first + timedelta(days=offset) for offset in range(count)]
    return list(_joined(_spans_of(hours, days, zone_of(hours.timezone))))


def missing_time(timezone: str, day: date, minutes: int) -> str | None:
    """Return the time to which the clock jumps over this one on that day; None if it exists."""
    zone = zone_of(timezone)
    naive = _naive(day, minutes)
    there = datetime.fromtimestamp(_at(naive, zone, fold=0), UTC).astimezone(zone)
    if there.replace(tzinfo=None) == naive:
        return None
    return (
        datetime.fromtimestamp(_instant(day, minutes, zone, fold=0) / 1000, UTC)
        .astimezone(zone)
        .strftime("%H:%M")
    )


def zone_of(timezone: str) -> ZoneInfo | None:
    """Return the time zone of that name; None, which is this machine's, for ""."""
    return ZoneInfo(timezone) if timezone else None


def _spans_of(
    hours: OpeningHours, days: Sequence[date], zone: ZoneInfo | None
) -> Iterator[tuple[int, int]]:
    for day in days:
        for span in sorted(hours.on(day)):
            start = _instant(day, span.opens, zone, fold=0)
            end = _instant(day, span.closes, zone, fold=1)
            if start < end:  # the clock may jump over the whole of a span
                yield start, end


def _joined(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join spans that touch, such as those on both sides of midnight."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _naive(day: date, minutes: int) -> datetime:
    return datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)  # noqa: DTZ001 -- wall time, given its zone where it is read


def _at(naive: datetime, zone: ZoneInfo | None, *, fold: int) -> float:
    local = naive.replace(fold=fold)
    return (local.astimezone() if zone is None else local.replace(tzinfo=zone)).timestamp()


def _instant(day: date, minutes: int, zone: ZoneInfo | None, *, fold: int) -> int:
    """Return the moment (ms) of a wall time; of one that is skipped, when the clock jumps."""
    naive = _naive(day, minutes)
    early, late = sorted((_at(naive, zone, fold=0), _at(naive, zone, fold=1)))
    chosen = early if fold == 0 else late
    back = datetime.fromtimestamp(chosen, UTC).astimezone(zone).replace(tzinfo=None)
    return round((chosen if back == naive else _jump(early, late, zone)) * 1000)


def _jump(early: float, late: float, zone: ZoneInfo | None) -> float:
    """Return the second between the two at which the clock's offset from UTC changes."""

    def offset(at: float) -> timedelta | None:
        return datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()

    before, low, high = offset(early), int(early), int(late)
    while high - low > 1:
        middle = (low + high) // 2
        if offset(middle) == before:
            low = middle
        else:
            high = middle
    return float(high)


# -- when "tomorrow" begins: with the first opening after the small hours

TURNS_AT = time(4)
_NIGHT_ENDS_MS = 4 * 3_600_000  # who closes so soon after the turn was open all night


def next_day_opens(hours: OpeningHours | None, zone: ZoneInfo | None, now_ms: int) -> int:
    """Return when the store opens on its next day, in ms since the epoch.

    A night that ends in the small hours belongs to the day before. Without hours, and for a store
    that never closes, the day begins at four; `zone` None is this machine's.
    """
    turn = _next_turn(zone, now_ms)
    if hours is None:
        return turn
    opening = opening_at(hours, turn)
    if opening.is_open and opening.until_ms is not None:
        if opening.until_ms - turn > _NIGHT_ENDS_MS:
            return turn
        opening = opening_at(hours, opening.until_ms)
    return turn if opening.is_open or opening.until_ms is None else opening.until_ms


def _next_turn(zone: ZoneInfo | None, now_ms: int) -> int:
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    days = (today, today + timedelta(days=1))
    today_ms, tomorrow_ms = (
        round(_at(datetime.combine(day, TURNS_AT), zone, fold=0) * 1000) for day in days
    )
    return today_ms if today_ms > now_ms else tomorrow_ms
