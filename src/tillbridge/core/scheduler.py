"""Everything that happens by the clock is a job of this scheduler; APScheduler keeps the times."""

import asyncio
import logging
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from tillbridge.core.clock import Clock
from tillbridge.core.worker import Job, Supervisor

_LATE = timedelta(seconds=1)
# The loop's timers count by a clock that stands while the machine sleeps and is never set right.
_LONGEST_SLEEP_S = 60.0
# In autumn an hour comes twice, and so does what is due in it.
_SAME_NIGHT = timedelta(hours=2)


class Scheduler:
    """Begins what is due. What was missed (sleep, a clock that jumped) is made up for once.

    Work that takes longer than its interval is not begun beside itself. Work that fails is reported
    to its supervisor, and tried again with back-off, at the latest when it is due.
    """

    def __init__(self, clock: Clock, supervisor: Supervisor) -> None:
        self._clock = clock
        self._supervisor = supervisor
        self._alarm: asyncio.Handle | None = None
        self._late_since: float | None = None
        self._begun: dict[str, tuple[float, asyncio.Task[Any] | None]] = {}  # by job, under way
        self._intervals: dict[str, float] = {}  # by job, in seconds
        self._jobs = AsyncIOScheduler(
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
            logger=_quiet_logger(),
        )

    def every(
        self,
        name: str,
        seconds: float,
        work: Job,
        *,
        first_s: float = 0.0,
        supervisor: Supervisor | None = None,
    ) -> None:
        """Do `work` in `first_s` seconds and then every so many; `supervisor` is a store's."""
        supervisor = supervisor or self._supervisor
        job = f"{supervisor.store}.{name}" if supervisor.store else name
        self._intervals[job] = seconds
        self._jobs.add_job(
            self._run,
            IntervalTrigger(seconds=seconds, timezone=UTC),
            (job, name, work, supervisor),
            id=job,
            next_run_time=_in(first_s),
        )

    def daily(
        self, name: str, at: str, zone: str | None, work: Job, *, supervisor: Supervisor
    ) -> None:
        """Do `work` at this local time (`03:30`); without a zone it is the machine's own."""
        when = time.fromisoformat(at)
        done_at: datetime | None = None

        async def once_a_night() -> float | None:
            nonlocal done_at
            now = datetime.now(UTC)
            if done_at is not None and timedelta(0) <= now - done_at < _SAME_NIGHT:
                return None
            again_s = await work()
            done_at = now
            return again_s

        trigger = CronTrigger(
            hour=when.hour,
            minute=when.minute,
            second=when.second,
            timezone=None if zone is None else ZoneInfo(zone),
        )
        job = f"{supervisor.store}.{name}"
        self._jobs.add_job(self._run, trigger, (job, name, once_a_night, supervisor), id=job)

    def remove(self, store: str) -> None:
        """Begin nothing more of this store, and break off what is being done for it."""
        prefix = f"{store}."
        for job in self._jobs.get_jobs():
            if job.id.startswith(prefix):
                job.remove()
                self._intervals.pop(job.id, None)
        for name, (_at, task) in self._begun.items():
            if name.startswith(prefix) and task is not None:
                task.cancel()

    @property
    def busy_since(self) -> float | None:
        """Since when (monotonic, s) the oldest work is being done; None: none is."""
        return min((at for at, _task in self._begun.values()), default=None)

    def late_since(self) -> float | None:
        """Return since when (monotonic, s) something is due that has not begun; None: nothing is.

        Asking makes up at once for a wall clock that has jumped.
        """
        if not self._jobs.running:
            return None
        self._notice_jump()
        late = datetime.now(UTC) - _LATE
        if not any(job.next_run_time < late for job in self._jobs.get_jobs()):
            self._late_since = None
        elif self._late_since is None:
            self._late_since = self._clock.monotonic()
        return self._late_since

    def start(self) -> None:
        """Begin, in the running loop."""
        self._jobs.start()
        self._look_at_clock()

    def stop(self) -> None:
        """Begin nothing more, and break off what is being done."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._jobs.shutdown(wait=False)

    def _look_at_clock(self) -> None:
        self._notice_jump()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(_LONGEST_SLEEP_S, self._look_at_clock)

    def _notice_jump(self) -> None:
        """Begin what a clock set forward made due; one set back delays no job past its interval."""
        for job in self._jobs.get_jobs():
            seconds = self._intervals.get(job.id)
            if seconds is not None and job.next_run_time > _in(seconds) + _LATE:
                job.modify(next_run_time=_in(seconds))
        self._jobs.wakeup()

    async def _run(self, job: str, name: str, work: Job, supervisor: Supervisor) -> None:
        self._begun[job] = self._clock.monotonic(), asyncio.current_task()
        try:
            again_s = await work()
        except asyncio.CancelledError:
            return  # only `stop` and `remove` do this; APScheduler would log it as a failure
        except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this job's alone
            pause_s = supervisor.failed(name, failure)
            again_s = min(pause_s, self._intervals.get(job, pause_s))
        else:
            supervisor.works(name)
        finally:
            del self._begun[job]
        if again_s is not None and self._jobs.get_job(job) is not None:
            self._jobs.modify_job(job, next_run_time=_in(again_s))


def _quiet_logger() -> logging.Logger:
    """Return a logger that leaves out what is meant so: work that is not begun beside itself."""
    logger = logging.getLogger("tillbridge.apscheduler")
    logger.setLevel(logging.ERROR)
    return logger


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
