"""When a store takes no orders by its own plan: outside its hours, and in pauses. Pure.

Times are the store's local time; see `tillbridge.model.hours` for days on which clocks change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tillbridge.core.i18n import _
from tillbridge.model.hours import (
    DatedHours,
    OpeningHours,
    PlannedPause,
    opening_at,
    openings,
    zone_of,
)
from tillbridge.stores.standing import Planned

_MINUTE_MS = 60_000
_LOOK_AHEAD_DAYS = 8
_STEPS = 50  # pauses and closed hours that follow one another


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is planned. `hours` None: the store does not follow its hours.

    `last_orders_min`: ordering stops so many minutes before the store closes. `timezone` "" is
    this machine's.
    """

    hours: OpeningHours | None = None
    pauses: tuple[PlannedPause, ...] = ()
    last_orders_min: int = 0
    timezone: str = ""

    def __bool__(self) -> bool:
        return self.hours is not None or bool(self.pauses)


def planned_at(schedule: Schedule, now_ms: int) -> Planned:
    """Return what the schedule says at `now_ms`, and until when."""
    if not schedule:
        return Planned()
    first = _verdict(schedule, now_ms)
    until = first.until_ms
    # What ends one reason may find the other in force: closed is closed until it opens.
    for _step in range(_STEPS):
        if until is None:
            break
        then = _verdict(schedule, until)
        if then.closed is not first.closed:
            return Planned(first.closed, until, first.reason)
        until = then.until_ms
    return Planned(first.closed, None, first.reason)


def _verdict(schedule: Schedule, now_ms: int) -> Planned:
    """Return what holds now and until the next time at which it may change."""
    by_hours = Planned()
    if schedule.hours is not None:
        by_hours = _by_hours(schedule.hours, schedule.last_orders_min, now_ms)
        if by_hours.closed:
            return by_hours
    ends = [] if by_hours.until_ms is None else [by_hours.until_ms]
    for start, end in _pauses_around(schedule, now_ms):
        if start <= now_ms < end:
            return Planned(closed=True, until_ms=end, reason=_("a planned pause"))
        if now_ms < start:
            ends.append(start)
    return Planned(until_ms=min(ends, default=None))


def _by_hours(hours: OpeningHours, last_orders_min: int, now_ms: int) -> Planned:
    opening = opening_at(hours, now_ms)
    if not opening.is_open:
        return Planned(closed=True, until_ms=opening.until_ms, reason=_("outside opening hours"))
    if opening.until_ms is None:
        return Planned()
    last = opening.until_ms - last_orders_min * _MINUTE_MS
    if now_ms < last:
        return Planned(until_ms=last)
    following = opening_at(hours, opening.until_ms)
    return Planned(closed=True, until_ms=following.until_ms, reason=_("last orders are over"))


def _pauses_around(schedule: Schedule, now_ms: int) -> Sequence[tuple[int, int]]:
    """Return the planned pauses of the days around, joined where they touch."""
    if not schedule.pauses:
        return ()
    zone = zone_of(schedule.timezone)
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    weekly = tuple(
        tuple(sorted(each.span for each in schedule.pauses if each.weekday == weekday))
        for weekday in range(7)
    )
    dates = {each.day for each in schedule.pauses if each.day is not None}
    dated = tuple(
        DatedHours(
            day,
            tuple(
                sorted(
                    each.span
                    for each in schedule.pauses
                    if each.day == day or each.weekday == day.weekday()
                )
            ),
        )
        for day in dates
    )
    around = OpeningHours(schedule.timezone, weekly, dated)
    found = openings(around, today - timedelta(days=1), today + timedelta(days=_LOOK_AHEAD_DAYS))
    later = [day for day in sorted(dates) if day > today + timedelta(days=_LOOK_AHEAD_DAYS)]
    if later:
        found += openings(around, later[0], later[0])
    return found
