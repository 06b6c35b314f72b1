"""What is due every hour, or daily at a store's local time: in memory, by the wall clock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from zoneinfo import ZoneInfo

from tillbridge.clock import Clock
from tillbridge.config import StoreSettings
from tillbridge.log import get_logger

log = get_logger()

_HOUR = timedelta(hours=1)
_LATE = timedelta(seconds=1)
# The timer counts by a clock that stands while the machine sleeps, and that nobody sets right.
_LONGEST_SLEEP_S = 60.0


def daily_after(now: datetime, when: time, zone: tzinfo | None) -> datetime:
    """Return the first `when` after `now`, UTC; in the machine's own zone where none is given.

    A time that a change of the clocks leaves out comes an hour later by the wall; one that it
    brings twice comes once.
    """
    day = now.astimezone(zone).date()
    while (due := datetime.combine(day, when, zone).astimezone(UTC)) <= now:
        day += timedelta(days=1)
    return due


def hourly_after(now: datetime, due: datetime) -> datetime:
    """Return the first instant after `now` that is `due`, or whole hours after it."""
    return due + max(0, (now - due) // _HOUR + 1) * _HOUR


@dataclass(slots=True)
class _Timer:
    begin: Callable[[], object]
    due: datetime
    after: Callable[[datetime, datetime], datetime]  # given now, and when it was due


class Timetable:
    """Begins what is due. What was missed (sleep, a clock that jumped) is made up for once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: list[_Timer] = []
        self._alarm: asyncio.Handle | None = None
        self._late_since: float | None = None
        self._begun_at: dict[asyncio.Task[None], float] = {}  # what is being done

    def hourly(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` at the start and every hour; what takes longer is not begun twice."""
        doing: asyncio.Task[None] | None = None

        def begin() -> None:
            nonlocal doing
            if doing is None or doing.done():
                doing = asyncio.create_task(_done(work))
                self._begun_at[doing] = self._clock.monotonic()
                doing.add_done_callback(self._begun_at.pop)

        self._timers.append(_Timer(begin, self._now(), hourly_after))

    def daily(self, stores: Mapping[str, StoreSettings], work: Callable[[str], None]) -> None:
        """Call `work(store)` at each store's `full_compare`, in the store's local time."""
        for name, settings in stores.items():
            zone = None if settings.timezone is None else ZoneInfo(settings.timezone)
            when = time.fromisoformat(settings.menu.full_compare)
            self._timers.append(_daily(partial(work, name), self._now(), when, zone))

    @property
    def busy_since(self) -> float | None:
        """Since when (monotonic, s) the oldest work is being done; None: none is."""
        return min(self._begun_at.values(), default=None)

    def late_since(self) -> float | None:
        """Look whether what is due has begun: since when (monotonic, s) it has not, or None.

        Looking makes up at once for a wall clock that has jumped.
        """
        if self._alarm is not None:
            asyncio.get_running_loop().call_soon(self._awake)
        late = self._now() - _LATE
        if not any(timer.due < late for timer in self._timers):
            self._late_since = None
        elif self._late_since is None:
            self._late_since = self._clock.monotonic()
        return self._late_since

    def start(self) -> None:
        """Begin, in the running loop."""
        self._alarm = asyncio.get_running_loop().call_soon(self._awake)

    def stop(self) -> None:
        """Begin nothing more, and break off what is being done."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for task in self._begun_at:
            task.cancel()

    def _awake(self) -> None:
        """Begin what is due, and sleep until something is."""
        if self._alarm is None:
            return  # stopped meanwhile
        now = self._now()
        due = [timer for timer in self._timers if timer.due <= now]
        for timer in due:
            timer.due = timer.after(now, timer.due)
        waits_s = [(timer.due - now).total_seconds() for timer in self._timers]
        self._alarm.cancel()
        wait_s = min([_LONGEST_SLEEP_S, *waits_s])
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._awake)
        for timer in due:
            # What fails here keeps neither the rest from beginning nor itself from doing so again.
            try:
                timer.begin()
            except Exception:
                log.exception("housekeeping.failed")

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


def _daily(begin: Callable[[], object], now: datetime, when: time, zone: tzinfo | None) -> _Timer:
    def after(now: datetime, _due: datetime) -> datetime:
        return daily_after(now, when, zone)

    return _Timer(begin, daily_after(now, when, zone), after)


async def _done(work: Callable[[], Awaitable[None]]) -> None:
    """Do `work`; what it fails of is logged, and it is done again when it is due."""
    try:
        await work()
    except Exception:
        log.exception("housekeeping.failed")
