"""What is done now and then: forgetting, and comparing whole menus at a quiet hour."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from tillbridge.clock import Clock
from tillbridge.config import BridgeSettings, StoreSettings
from tillbridge.errors import LedgerError
from tillbridge.ledger.backup import forget_old_files
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.ledger.disk_budget import trim
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.prune import Pruned, cut_offs, prune
from tillbridge.log import get_logger

log = get_logger()

_LATE = timedelta(seconds=1)


class Housekeeping:
    """A schedule in memory. A run that was missed (sleep, a clock that jumped) is made up once."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"misfire_grace_time": None, "coalesce": True}
        )
        self._late_since: float | None = None
        self._begun_at: dict[int, float] = {}  # work that is being done, by a number of its own

    def hourly(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` now and every hour."""

        async def do() -> None:
            number = max(self._begun_at, default=0) + 1
            self._begun_at[number] = time.monotonic()
            try:
                await work()
            finally:
                del self._begun_at[number]

        now = datetime.now(UTC)
        self._scheduler.add_job(do, IntervalTrigger(hours=1), next_run_time=now)

    def daily(self, stores: Mapping[str, StoreSettings], work: Callable[[str], None]) -> None:
        """Call `work(store)` at each store's `full_compare`, in the store's local time."""
        for name, settings in stores.items():
            hour, _colon, minute = settings.menu.full_compare.partition(":")
            zone = None if settings.timezone is None else ZoneInfo(settings.timezone)
            self._scheduler.add_job(
                work, CronTrigger(hour=int(hour), minute=int(minute), timezone=zone), args=[name]
            )

    @property
    def busy_since(self) -> float | None:
        """Since when (monotonic, s) the oldest work is being done; None: none is."""
        return min(self._begun_at.values(), default=None)

    def late_since(self) -> float | None:
        """Look whether what is due has begun: since when (monotonic, s) it has not, or None.

        Looking makes up for a wall clock that has jumped: the scheduler sleeps by the other one.
        """
        self._scheduler.wakeup()
        late = datetime.now(UTC) - _LATE
        if not any(job.next_run_time < late for job in self._scheduler.get_jobs()):
            self._late_since = None
        elif self._late_since is None:
            self._late_since = time.monotonic()
        return self._late_since

    def start(self) -> None:
        """Begin, in the running loop."""
        self._scheduler.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._scheduler.shutdown(wait=False)


async def forget(ledger: Ledger, settings: BridgeSettings, clock: Clock) -> None:
    """Remove personal data and history that are older than they may be."""
    now = clock.now_ms()
    before = cut_offs(
        now,
        keep_personal_data_days=settings.keep_personal_data_days,
        keep_history_days=settings.keep_history_days,
    )
    total = Pruned()
    try:
        while batch := await ledger.write(lambda connection: prune(connection, before)):
            total += batch
        files = forget_old_files(ledger.data_dir, before=before.personal_data)
    except (LedgerError, OSError) as failure:
        log.warning("ledger.not_pruned", detail=str(failure))
        return
    if total or files:
        log.info("ledger.pruned", emptied=total.emptied, forgotten=total.forgotten, files=files)


_MIB = 1024 * 1024


async def keep_budget(ledger: Ledger, desk: ProblemDesk, settings: BridgeSettings) -> None:
    """Keep the data folder within what it may take; tell where that cannot be done."""
    budget = settings.disk_budget_mib
    try:
        trimmed = await asyncio.to_thread(trim, ledger.data_dir, budget * _MIB)
    except OSError as failure:
        log.warning("disk.not_looked_at", detail=str(failure))
        return
    if trimmed.gone:
        log.info("disk.trimmed", gone=trimmed.gone, used_mib=trimmed.used // _MIB)
    if trimmed.used > budget * _MIB:
        desk.open("disk.over_budget", used=-(-trimmed.used // _MIB), budget=budget)
    else:
        desk.close("disk.over_budget")
