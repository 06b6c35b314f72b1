"""What is done every hour: forgetting, and keeping the data folder within what it may take."""

import asyncio

from tillbridge.config import BridgeSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.ledger.backup import forget_old_files, trim
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.prune import Pruned, cut_offs, prune

log = get_logger()


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


async def keep_budget(ledger: Ledger, desk: ProblemTracker, settings: BridgeSettings) -> None:
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
