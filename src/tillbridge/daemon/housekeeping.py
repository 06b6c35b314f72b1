"""What is done every hour: forgetting, and keeping the data folder within what it may take."""

import asyncio

from sqlalchemy import Connection

from tillbridge.config import BridgeSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.spans import days_left
from tillbridge.ledger.backup import forget_old_files, trim
from tillbridge.ledger.facts import get_fact, last_change
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.problems import ProblemTracker, store_past
from tillbridge.ledger.prune import Pruned, cut_offs, prune
from tillbridge.service.tokens import TokenKeeper
from tillbridge.stores.consent import note_consent

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


async def keep_budget(ledger: Ledger, tracker: ProblemTracker, settings: BridgeSettings) -> None:
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
        tracker.open("disk.over_budget", used=-(-trimmed.used // _MIB), budget=budget)
    else:
        tracker.close("disk.over_budget")


_DAY_MS = 86_400_000


async def count_down(
    store: str,
    keeper: TokenKeeper,
    ledger: Ledger,
    tracker: ProblemTracker,
    *,
    clock: Clock,
    warn_days: float,
) -> None:
    """Open or close the problems that the calendar alone decides; to be called now and then."""
    tokens = await keeper.tokens()
    if tokens is None:
        tracker.open("consent.missing", store)
        return
    tracker.close("consent.missing", store)
    now = clock.now_ms()
    await note_consent(ledger, store, tokens, at_ms=now)
    left_ms = tokens.consent_expires_at_ms - now
    # That it has ended is the service's to say: some refresh a consent for longer than seven days.
    if left_ms <= warn_days * _DAY_MS and keeper.lost is None:
        tracker.open("consent.ending", store, left=days_left(left_ms))
    else:
        tracker.close("consent.ending", store)


_BRIEF_MS = 30_000  # a restart is no outage


def keep_downtime(connection: Connection, now_ms: int) -> None:
    """Keep the time since the bridge last ran, if it is worth telling; call it before `running`.

    A bridge that was killed has told no end: then its last sign of life counts.
    """
    running = get_fact(connection, "", "running")
    if not isinstance(running, dict):
        return
    stopped = running.get("stopped_at")
    if not isinstance(stopped, int):
        stopped = last_change(connection)
    if isinstance(stopped, int) and now_ms - stopped >= _BRIEF_MS:
        store_past(
            connection,
            PastProblem(code="bridge.stopped", store="", subject="", since=stopped, until=now_ms),
        )
