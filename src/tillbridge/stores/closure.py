"""Whether a store takes orders, what keeps it closed, and why: one rule for all reasons. Pure.

A store is open if nothing and nobody keeps it closed. Reasons are independent, so that none cancels
another: the POS's return ends the bridge's pause but not a person's, and a person who opens the
store ends a person's pause but not the bridge's. What others do at the service counts as a person's
act. See docs/store.md. The schedule closes a store outside its hours and in planned pauses; its
times are the store's local time, see `tillbridge.model.restaurant` for days on which clocks change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from tillbridge.config.store import OrderSettings
from tillbridge.core.i18n import _
from tillbridge.model.instant import end_or_never, to_iso
from tillbridge.model.restaurant import (
    DatedHours,
    OpeningHours,
    PlannedPause,
    opening_at,
    openings,
    zone_of,
)

Status = Literal["active", "inactive"]
End = Annotated[int | None, AfterValidator(end_or_never)]

_MINUTE_MS = 60_000
_A_DAY_MS = 24 * 3600 * 1000


class Who(StrEnum):
    """Who keeps a store closed; if several do, the first of these is named."""

    PERSON = "person"
    OTHERS = "somebody else"
    POS_AWAY = "bridge"
    POS_CLOSED = "till"
    BUSY = "busy mode"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Pause:
    """One reason. Instants in ms; `until_ms` None: until it is ended."""

    since_ms: int
    until_ms: End = None
    by: str = ""
    reason: str = ""


BUSY_MINUTES = 15  # the period in which busy mode counts orders


@dataclass(frozen=True, slots=True)
class BusyMode:
    """A person wants at most this many orders in `BUSY_MINUTES`. Instants as in `Pause`."""

    since_ms: int
    orders: int
    until_ms: End = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """The schedule's state: closed or not, until when (None: always), and why it is closed."""

    closed: bool = False
    until_ms: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClosureReasons:
    """What keeps a store closed; None for reasons that do not apply.

    `busy` alone closes nothing: `full` does, while as many orders have come as it allows.
    `opened_until_ms`: a person opened the store although the schedule says closed, until then.
    `service_status` is the last status known from the service, `sending` the one being sent if that
    may have been cut off; None if unknown. A call that was cut off may arrive late, after its
    repetition and the next one: until `late_until_ms`, the status `late` is the bridge's own act.
    """

    person: Pause | None = None
    others: Pause | None = None
    pos_away: Pause | None = None
    pos_closed: Pause | None = None
    full: Pause | None = None
    scheduled: Pause | None = None
    busy: BusyMode | None = None
    opened_until_ms: End = None
    service_status: Annotated[Status | None, Field(alias="told")] = None
    sending: Annotated[Status | None, Field(alias="telling")] = None
    late: Status | None = None
    late_until_ms: End = None


class BusyView(TypedDict):
    """At most this many orders may come in this many minutes; instants in ISO 8601."""

    orders: int
    minutes: int
    by: str
    since: str
    until: str | None


class ClosureView(TypedDict):
    """Whether a store takes orders, and who decided that; instants in ISO 8601."""

    status: str
    paused_by: str | None
    by: str
    reason: str
    since: str | None
    until: str | None
    busy: BusyView | None


@dataclass(frozen=True, slots=True)
class StoreClosure:
    """The result: `who` is None if the store is open. Instants in ms."""

    status: Status
    who: Who | None = None
    by: str = ""
    reason: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    busy: BusyMode | None = None

    def to_json(self) -> ClosureView:
        """Return it for operations and the status document."""
        return {
            "status": self.status,
            "paused_by": None if self.who is None else str(self.who),
            "by": self.by,
            "reason": self.reason,
            "since": to_iso(self.since_ms),
            "until": to_iso(self.until_ms),
            "busy": None
            if self.busy is None
            else {
                "orders": self.busy.orders,
                "minutes": BUSY_MINUTES,
                "by": self.busy.by,
                "since": to_iso(self.busy.since_ms),
                "until": to_iso(self.busy.until_ms),
            },
        }


OPEN = StoreClosure("active")
_PAUSES = {
    "person": Who.PERSON,
    "others": Who.OTHERS,
    "pos_away": Who.POS_AWAY,
    "pos_closed": Who.POS_CLOSED,
    "full": Who.BUSY,
    "scheduled": Who.SCHEDULE,
}


def causes_of(reasons: ClosureReasons) -> list[tuple[Who, Pause]]:
    """Return what keeps the store closed; the first one is displayed."""
    pauses = ((who, getattr(reasons, name)) for name, who in _PAUSES.items())
    return [(who, pause) for who, pause in pauses if pause is not None]


def closure_of(reasons: ClosureReasons) -> StoreClosure:
    """Return the state that follows from the reasons: open if there is none."""
    for who, pause in causes_of(reasons):
        return StoreClosure(
            "inactive", who, pause.by, pause.reason, pause.since_ms, pause.until_ms, reasons.busy
        )
    return replace(OPEN, busy=reasons.busy)


def at_time(reasons: ClosureReasons, planned: Planned, now_ms: int) -> ClosureReasons:
    """Remove reasons that have ended, and apply the schedule."""
    person, opened = reasons.person, reasons.opened_until_ms
    if person is not None and person.until_ms is not None and person.until_ms <= now_ms:
        person = None
    busy, full = reasons.busy, reasons.full
    if busy is not None and busy.until_ms is not None and busy.until_ms <= now_ms:
        busy = None
    if busy is None or (full is not None and (full.until_ms or 0) <= now_ms):
        full = None
    if not planned.closed or (opened is not None and opened <= now_ms):
        opened = None
    scheduled = None
    if planned.closed and opened is None:
        before = reasons.scheduled
        since = now_ms if before is None else before.since_ms
        scheduled = Pause(since, planned.until_ms, reason=planned.reason)
    return replace(
        reasons,
        person=person,
        busy=busy,
        full=full,
        opened_until_ms=opened,
        scheduled=scheduled,
    )


def throttled(reasons: ClosureReasons, reached_ms: int | None, now_ms: int) -> ClosureReasons:
    """Close a busy store while it has as many orders as it takes, and open it afterwards.

    `reached_ms` is when the oldest of the latest orders came, of as many as busy mode allows; None
    if fewer came within `BUSY_MINUTES`. Orders that come anyway are not cancelled.
    """
    if reasons.busy is None or reached_ms is None:
        return replace(reasons, full=None)
    until = reached_ms + BUSY_MINUTES * _MINUTE_MS
    if until <= now_ms:
        return replace(reasons, full=None)
    since = now_ms if reasons.full is None else reasons.full.since_ms
    return replace(reasons, full=Pause(since, until, by=reasons.busy.by))


def paused_by(reasons: ClosureReasons, pause: Pause) -> ClosureReasons:
    """A person closes the store: replaces what staff set before, not what others did."""
    return replace(reasons, person=pause, opened_until_ms=None)


def resumed(reasons: ClosureReasons, planned: Planned, now_ms: int) -> ClosureReasons:
    """A person opens the store, whoever paused it, even against the schedule until it changes.

    Busy mode also ends if it keeps the store closed now. The bridge's pause stays while the till is
    away or closed.
    """
    opened = None
    if planned.closed:
        opened = now_ms + _A_DAY_MS if planned.until_ms is None else planned.until_ms
    return replace(
        reasons,
        person=None,
        others=None,
        scheduled=None,
        busy=None if reasons.full else reasons.busy,
        full=None,
        opened_until_ms=opened,
    )


def seen(reasons: ClosureReasons, status: Status, planned: Planned, now_ms: int) -> ClosureReasons:
    """Take over the store's status at the service: others may have changed it.

    A status whose sending was cut off is no surprise, now or a while later.
    """
    known = replace(reasons, service_status=status, sending=None)
    if status == reasons.service_status:
        return replace(known, sending=reasons.sending)
    if status == reasons.sending:
        return known
    if status == reasons.late and now_ms < (reasons.late_until_ms or 0):
        return replace(known, late=None, late_until_ms=None)
    if status == "inactive":
        return replace(known, others=reasons.others or Pause(now_ms))
    if reasons.service_status is None:
        return known  # nothing has been sent yet
    return resumed(known, planned, now_ms)


_PASSING = {*_PAUSES, "busy", "late", "late_until_ms"}  # only stored if set
_STORED = TypeAdapter(ClosureReasons)


def to_json(reasons: ClosureReasons) -> dict[str, Any]:
    """Return the reasons as a JSON value for storing."""
    stored: dict[str, Any] = _STORED.dump_python(reasons, by_alias=True)
    return {name: value for name, value in stored.items() if value or name not in _PASSING}


def from_json(stored: object) -> ClosureReasons:
    """Return the reasons from `to_json`; none for anything else."""
    try:
        return _STORED.validate_python(stored)
    except ValidationError:
        return ClosureReasons()


_LOOK_AHEAD_DAYS = 8
_STEPS = 50  # consecutive pauses and closed hours


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is planned. `hours` None: the store does not follow its hours.

    `last_orders_min`: ordering stops this many minutes before the store closes. `timezone` "" is
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
    # When one reason ends another may apply: closed means closed until the store opens.
    for _step in range(_STEPS):
        if until is None:
            break
        then = _verdict(schedule, until)
        if then.closed is not first.closed:
            return Planned(first.closed, until, first.reason)
        until = then.until_ms
    return Planned(first.closed, None, first.reason)


def _verdict(schedule: Schedule, now_ms: int) -> Planned:
    """Return what applies now, and until the next time at which it may change."""
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
    """Return the planned pauses of the surrounding days, merged if they touch."""
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


# -- pausing while the POS is away
#
# A store is paused after the POS has been offline for `pause_after_s`, or immediately if an order
# was cancelled because of it: the next customer should not meet the same. It is resumed once the
# POS has been back for `resume_after_s`, and only if the bridge paused it. If the POS comes and
# goes, the storefront must not keep changing: after `max_pauses_per_hour` pauses the POS must be
# steady for 10 minutes.

STEADY_S = 600.0
_HOUR_S = 3600.0


def decide_pause(
    now: float,
    *,
    online: bool,
    since: float,
    paused_by_bridge: bool,
    pauses: Sequence[float],
    settings: OrderSettings,
    order_lost: bool = False,
) -> Literal["pause", "resume"] | None:
    """Return what to do at `now` (None: nothing), the POS being online (or not) since `since`.

    `pauses` are the instants of earlier pauses; all instants in seconds on one monotonic clock.
    `order_lost` says that an order was cancelled since then because the POS was away.
    """
    steady_s = now - since
    if not online:
        long = order_lost or steady_s >= settings.pause_after_s
        due = settings.pause_after_s > 0 and long
        return "pause" if due and not paused_by_bridge else None
    if not paused_by_bridge:
        return None
    unsteady = is_unsteady(now, pauses, settings)
    needed_s = max(STEADY_S, settings.resume_after_s) if unsteady else settings.resume_after_s
    return "resume" if steady_s >= needed_s else None


def is_unsteady(now: float, pauses: Sequence[float], settings: OrderSettings) -> bool:
    """Return whether the POS has come and gone so often that it must be steady for a while."""
    return sum(1 for at in pauses if now - at < _HOUR_S) >= settings.max_pauses_per_hour
