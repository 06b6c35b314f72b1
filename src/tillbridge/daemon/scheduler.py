"""What is due every hour, or daily at a store's local time; APScheduler keeps the times."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from tillbridge.config import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.log import get_logger

log = get_logger()

_LATE = timedelta(seconds=1)
# The loop's timers count by a clock that stands while the machine sleeps and is never set right.
_LONGEST_SLEEP_S = 60.0
# In autumn an hour comes twice, and so does what is due in it.
_SAME_NIGHT = timedelta(hours=2)


class Scheduler:
    """Begins what is due. What was missed (sleep, a clock that jumped) is made up for once.

    Work that takes longer than its interval is not begun beside itself; work that fails is logged
    and begun again when it is due.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarm: asyncio.Handle | None = None
        self._late_since: float | None = None
        self._begun_at: dict[str, float] = {}  # by job: what is being done
        self._jobs = AsyncIOScheduler(
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )

    def hourly(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` at the start and every hour."""
        trigger = IntervalTrigger(hours=1, timezone=UTC)
        self._jobs.add_job(
            self._run, trigger, (name, work), id=name, next_run_time=datetime.now(UTC)
        )

    def daily(self, stores: Mapping[str, StoreSettings], work: Callable[[str], None]) -> None:
        """Call `work(store)`, in the loop, at each store's `full_compare` in its local time."""
        for store, settings in stores.items():
            zone = None if settings.timezone is None else ZoneInfo(settings.timezone)
            when = time.fromisoformat(settings.menu.full_compare)
            # Without a zone it is the machine's own.
            trigger = CronTrigger(
                hour=when.hour, minute=when.minute, second=when.second, timezone=zone
            )
            name, job = f"{store}.full_compare", _OnceANight(partial(work, store))
            self._jobs.add_job(self._run, trigger, (name, job), id=name)

    @property
    def busy_since(self) -> float | None:
        """Since when (monotonic, s) the oldest work is being done; None: none is."""
        return min(self._begun_at.values(), default=None)

    def late_since(self) -> float | None:
        """Return since when (monotonic, s) something is due that has not begun; None: nothing is.

        Asking makes up at once for a wall clock that has jumped.
        """
        if not self._jobs.running:
            return None
        self._jobs.wakeup()
        late = datetime.now(UTC) - _LATE
        if not any(job.next_run_time < late for job in self._jobs.get_jobs()):
            self._late_since = None
        elif self._late_since is None:
            self._late_since = self._clock.monotonic()
        return self._late_since

    def start(self) -> None:
        """Begin, in the running loop."""
        self._jobs.start()
        self._notice_clock()

    def stop(self) -> None:
        """Begin nothing more, and break off what is being done."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._jobs.shutdown(wait=False)

    def _notice_clock(self) -> None:
        self._jobs.wakeup()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(_LONGEST_SLEEP_S, self._notice_clock)

    async def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._begun_at[name] = self._clock.monotonic()
        try:
            await work()
        except asyncio.CancelledError:
            # Only `stop` does this; APScheduler would log it as a failure.
            log.info("housekeeping.broken_off", job=name)
        except Exception:
            log.exception("housekeeping.failed", job=name)
        finally:
            del self._begun_at[name]


class _OnceANight:
    """Calls `work`, unless it has just done so."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._done_at: datetime | None = None

    async def __call__(self) -> None:
        now = datetime.now(UTC)
        if self._done_at is None or not timedelta(0) <= now - self._done_at < _SAME_NIGHT:
            self._done_at = now
            self._work()
