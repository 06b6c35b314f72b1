"""What is done now and then: forgetting, and comparing whole menus at a quiet hour."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from tillbridge.clock import Clock
from tillbridge.config import BridgeSettings, StoreSettings
from tillbridge.errors import LedgerError
from tillbridge.ledger.backup import forget_old_files
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.prune import Pruned, cut_offs, prune
from tillbridge.log import get_logger

log = get_logger()


class Housekeeping:
    """A schedule in memory. A run that was missed (sleep, a clock that jumped) is made up once."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"misfire_grace_time": None, "coalesce": True}
        )

    def hourly(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` now and every hour."""
        now = datetime.now(UTC)
        self._scheduler.add_job(work, IntervalTrigger(hours=1), next_run_time=now)

    def daily(self, stores: Mapping[str, StoreSettings], work: Callable[[str], None]) -> None:
        """Call `work(store)` at each store's `full_compare`, in the store's local time."""
        for name, settings in stores.items():
            hour, _colon, minute = settings.menu.full_compare.partition(":")
            zone = None if settings.timezone is None else ZoneInfo(settings.timezone)
            self._scheduler.add_job(
                work, CronTrigger(hour=int(hour), minute=int(minute), timezone=zone), args=[name]
            )

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
