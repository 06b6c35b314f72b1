"""What the bridge looks at by the clock: its surroundings, its disk, what is too old to be kept.

The service and the clock by one small request; the public address by a nonce that has to come back;
the disk by its numbers, and the folders of the bridge by writing. What a till's folders are like is
the adapter's to say. An address of this network alone is not probed: nobody outside is expected
there.
"""

import asyncio
import errno
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import Connection

import tillbridge
from tillbridge.adapter.folders import trouble_of, try_writing
from tillbridge.config.bridge import BridgeSettings
from tillbridge.config.values import is_loopback
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext
from tillbridge.core.errors import LedgerError
from tillbridge.core.formats import days_left
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.started import command_to
from tillbridge.core.worker import Supervisor, in_thread
from tillbridge.diagnostics.checks.ledger import low_disk
from tillbridge.diagnostics.checks.public import Judgement, judged
from tillbridge.diagnostics.checks.service import Asked, ask
from tillbridge.ledger.backup import back_up, forget_old_files, trim
from tillbridge.ledger.facts import get_fact, last_change, note_addresses, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.problems import ProblemTracker, store_past
from tillbridge.ledger.prune import Pruned, cut_offs, prune
from tillbridge.service.tokens import StoreTokens
from tillbridge.setup.proposal import note_address
from tillbridge.stores.consent import note_consent
from tillbridge.stores.link import ServiceReach

if TYPE_CHECKING:
    from tillbridge.diagnostics.check import Subject
    from tillbridge.operations.bridge import Bridge

log = get_logger()

CLOCK = Scope("", frozenset({"clock.wrong"}))
DISK = Scope("", frozenset({"disk.low", "disk.not_writable"}))
CODE = "public_address.unreachable"
ADDRESS = Scope("", frozenset({CODE}))
BUDGET = Scope("", frozenset({"disk.over_budget"}))

_SERVICE_FIRST_S = 5.0
_ADDRESS_FIRST_S = 20.0  # a tunnel that starts with the machine needs a moment
_AGAIN_S = 5.0  # one probe that fails is repeated before anybody hears of it
_IN_A_ROW = 2
_DISK_EVERY_S = 15.0
_MADE_LATER = ("backups", "log")
_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def plan(bridge: BridgeContext, reach: ServiceReach, subject: "Callable[[], Subject]") -> None:
    """Plan the checks that the configuration wants; close what those that it does not have left."""
    settings, problems, scheduler = bridge.settings, bridge.problems, bridge.scheduler
    data_dir = bridge.ledger.data_dir
    scheduler.every("disk", _DISK_EVERY_S, lambda: look_at_disk(data_dir, problems))
    base_url = settings.service.base_url
    if every_s := settings.diagnostics.service_probe_every_s:
        service = ServiceProbe(partial(ask, base_url), reach, problems, every_s)
        first_s = min(_SERVICE_FIRST_S, every_s)
        scheduler.every("service", every_s, service.probe, first_s=first_s)
    else:
        problems.report(CLOCK, ())
    every_s = settings.diagnostics.probe_every_s
    if wants_probing(settings.receiver.public_url, base_url, every_s):
        address = AddressProbe(
            settings.receiver.public_url,
            lambda: judged(subject()),
            bridge.ledger,
            problems,
            bridge.clock,
            every_s,
        )
        first_s = min(_ADDRESS_FIRST_S, every_s)
        scheduler.every("public_address", every_s, address.probe, first_s=first_s)
    else:
        problems.report(ADDRESS, ())  # of a run whose address was another


def _varied(every_s: float, jitter: Callable[[], float]) -> float:
    return every_s * (0.9 + 0.2 * jitter())


@dataclass(frozen=True, slots=True)
class ServiceProbe:
    """Asks the service every `every_s` seconds, and measures the clock by its answer."""

    ask: Callable[[], Awaitable[Asked]]
    reach: ServiceReach
    tracker: ProblemTracker
    every_s: float
    jitter: Callable[[], float] = random.random

    async def probe(self) -> float:
        """Probe once, and return in how many seconds to do it again."""
        asked = await self.ask()
        again = self.reach.probed(answers=asked.answers, fix=asked.fix)
        if asked.skew_s is not None:
            self.tracker.report(CLOCK, asked.clock_problems())
        return min(_AGAIN_S, self.every_s) if again else _varied(self.every_s, self.jitter)


async def look_at_disk(data_dir: Path, tracker: ProblemTracker) -> None:
    """Look at the room on the disk, and write into the bridge's own folders."""
    found = await in_thread(partial(disk_problems, data_dir))
    if tracker.is_open("ledger.unwritable"):  # one cause is one problem
        found = [each for each in found if each.subject != str(data_dir)]
    tracker.report(DISK, found)


def disk_problems(data_dir: Path) -> list[Found]:
    """Return what is wrong with the data folder's disk and the folders in it. Blocks."""
    found = []
    if (low := low_disk(data_dir)) is not None:
        found.append(low)
    for folder in (data_dir, *(data_dir / name for name in _MADE_LATER)):
        if folder != data_dir and not folder.exists():
            continue
        failure = try_writing(folder)
        if failure is not None and failure.errno not in _DISK_FULL:
            trouble = trouble_of(folder, failure)
            detail = {"detail": trouble.text, "remedy": trouble.fix}
            found.append(Found("disk.not_writable", str(folder), detail))
    return found


@dataclass(slots=True)
class AddressProbe:
    """Keeps the fact `public_address` and the problem `public_address.unreachable`."""

    url: str  # the public address
    look: Callable[[], Awaitable[Judgement]]
    ledger: Ledger
    tracker: ProblemTracker
    clock: Clock
    every_s: float
    jitter: Callable[[], float] = random.random
    _failed: int = 0  # probes in a row
    _reached: bool | None = None  # as it was logged

    async def probe(self) -> float:
        """Probe once, and return in how many seconds to do it again."""
        judgement = await self.look()
        if judgement.reachable:
            self._failed = 0
            self._log(reached=True, cause=judgement.cause)
            self.tracker.report(ADDRESS, ())
            try:
                await note_address(self.ledger, self.url, self.clock.now_ms(), judgement.cause)
            except LedgerError:
                log.warning("public_address.not_noted")
        elif judgement.reachable is False:
            self._failed += 1
            if self._failed < _IN_A_ROW:
                return min(_AGAIN_S, self.every_s)
            self._log(reached=False, cause=judgement.cause)
            detail = {"detail": judgement.text, "remedy": judgement.fix}
            self.tracker.report(ADDRESS, [Found(CODE, "", detail)])
        # Without a verdict what was known stands.
        return _varied(self.every_s, self.jitter)

    def _log(self, *, reached: bool, cause: str) -> None:
        if reached is self._reached:
            return
        event = "public_address.reached" if reached else "public_address.unreachable"
        (log.info if reached else log.warning)(event, cause=cause)
        self._reached = reached


def wants_probing(public_url: str, base_url: str, every_s: float) -> bool:
    """Return whether there is an address that the internet is to reach.

    A service on this very machine (the sandbox) comes to it another way.
    """
    local = any(is_loopback(urlsplit(url).hostname or "") for url in (public_url, base_url))
    return every_s > 0 and not local


async def forget(
    ledger: Ledger, settings: BridgeSettings, clock: Clock, only: Collection[str] | None = None
) -> None:
    """Remove personal data and history that are older than they may be; `only` as for `prune`."""
    now = clock.now_ms()
    before = cut_offs(
        now,
        keep_personal_data_days=settings.keep_personal_data_days,
        keep_history_days=settings.keep_history_days,
    )
    total = Pruned()
    try:
        while batch := await ledger.write(prune, before, only=only):
            total += batch
        files = forget_old_files(ledger.data_dir, before=before.personal_data)
    except (LedgerError, OSError) as failure:
        log.warning("ledger.not_pruned", detail=str(failure))
        return
    if total or files:
        log.info("ledger.pruned", emptied=total.emptied, forgotten=total.forgotten, files=files)


def plan_back_up(bridge: BridgeContext) -> None:
    """Plan the daily backup, where the configuration wants one."""
    settings, ledger = bridge.settings.bridge, bridge.ledger

    async def copy() -> None:
        try:
            saved = await asyncio.to_thread(
                back_up, ledger.data_dir, at=bridge.clock.now_ms(), newest=settings.keep_backups
            )
        except (OSError, sqlite3.Error) as failure:
            log.error("ledger.not_backed_up", detail=str(failure))
            return
        log.info("ledger.backed_up", file=saved.name)

    if settings.backup_at is not None:
        supervisor = Supervisor("", bridge.problems)
        bridge.scheduler.daily("back_up", settings.backup_at, None, copy, supervisor=supervisor)


_MIB = 1024 * 1024


async def enforce_budget(ledger: Ledger, tracker: ProblemTracker, settings: BridgeSettings) -> None:
    """Hold the data folder within what it may take; tell where that cannot be done."""
    budget = settings.disk_budget_mib
    try:
        trimmed = await asyncio.to_thread(trim, ledger.data_dir, budget * _MIB)
    except OSError as failure:
        log.warning("disk.not_looked_at", detail=str(failure))
        return
    if trimmed.gone:
        log.info("disk.trimmed", gone=trimmed.gone, used_mib=trimmed.used // _MIB)
    is_over = trimmed.used > budget * _MIB
    detail = {"used": -(-trimmed.used // _MIB), "budget": budget}
    tracker.report(BUDGET, [Found("disk.over_budget", "", detail)] if is_over else ())


_DAY_MS = 86_400_000


async def count_down(bridge: BridgeContext, store: str, tokens: StoreTokens) -> None:
    """Report what the calendar alone decides of a consent; to be called now and then."""
    found_tokens = await tokens.tokens()
    found = []
    if found_tokens is None:
        found.append(Found("consent.missing"))
    else:
        now = bridge.clock.now_ms()
        await note_consent(bridge.ledger, store, found_tokens, at_ms=now)
        left_ms = found_tokens.consent_expires_at_ms - now
        # That it has ended is the service's to say: some refresh a consent for longer than 7 days.
        is_short = left_ms <= bridge.settings.service.consent_warn_days * _DAY_MS
        if is_short and tokens.lost is None:
            found.append(Found("consent.ending", detail={"left": days_left(left_ms)}))
    bridge.problems.report(Scope(store, frozenset({"consent.missing", "consent.ending"})), found)


_BRIEF_MS = 30_000  # a restart is no outage


def record_downtime(connection: Connection, now_ms: int) -> None:
    """Record the time since the bridge last ran, if worth reporting; call it before `running`.

    A bridge that was killed has noted no end: then its last sign of life counts.
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


async def note_running(bridge: "Bridge", *, stopped: bool) -> None:
    """Write down since when the bridge runs, or that it has stopped, for `status`."""
    at = bridge.clock.now_ms()
    fact: dict[str, Any] = {
        "pid": os.getpid(),
        "started_at": bridge.started_at,
        "version": tillbridge.__version__,
        "start": command_to("start"),
    }
    if stopped:
        fact["stopped_at"] = at
    # What evidence is bound to: seen at another address it proves nothing.
    addresses: dict[str, str | None] = {
        f"store_id/{name}": found.service_store_id for name, found in bridge.stores.items()
    }
    if bridge.is_set_up:
        addresses["base_url"] = bridge.settings.service.base_url
        addresses["public_url"] = bridge.settings.receiver.public_url

    def write(connection: Connection) -> None:
        if not stopped:
            record_downtime(connection, at)
            note_addresses(connection, addresses, at)
        put_fact(connection, "", "running", fact, at=at)

    # It is for people only, and the problem is open already.
    with suppress(LedgerError):
        await bridge.ledger.write(write)
