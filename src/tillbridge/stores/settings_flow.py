"""Keeps the store's settings and schedule as the restaurant's own files say.

The files are read at the start and whenever they change. One that cannot be used changes nothing:
what it said before counts, over a restart too, and a problem says what is wrong with it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Connection

from tillbridge.config import ScheduleSettings
from tillbridge.config.hours import read_pauses
from tillbridge.config.restaurant import StoreFiles, StoreWords, read_store_files
from tillbridge.core.clock import Clock
from tillbridge.core.errors import (
    ConfigError,
    ConsentLost,
    LedgerError,
    RateLimited,
    Refused,
    ServiceError,
)
from tillbridge.core.log import get_logger
from tillbridge.core.supervision import Supervisor
from tillbridge.core.worker import Worker
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.model.hours import OpeningHours, hours_from_json, hours_to_json
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.client import ServiceClient
from tillbridge.stores.schedule import Schedule, planned_at
from tillbridge.stores.settings_body import Body, changed_part, no_longer_said, settings_body
from tillbridge.stores.standing import Planned

Follow = Callable[[Callable[[int], Planned]], None]

_AGAIN_FIRST_S, _AGAIN_CAP_S = 5.0, 300.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class SettingsRules:
    """What a store's configuration says about its files and its schedule."""

    files: StoreFiles
    schedule: ScheduleSettings
    end_of_day: str = "24:00"


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """What would be sent: `part` of `body`; `accepted` is what the service took before.

    `unsaid` names what was accepted once and is said no more; `notes` are sentences.
    """

    body: Body
    part: Body
    accepted: Body
    unsaid: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SettingsFlow:
    """One store. `on_schedule` is told each new schedule; `service_store_id` as in `keeper`."""

    def __init__(
        self,
        store: str,
        rules: SettingsRules,
        client: ServiceClient,
        service_store_id: Callable[[], str | None],
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
        on_schedule: Follow,
    ) -> None:
        self._store = store
        self._rules = rules
        self._client = client
        self._service_store_id = service_store_id
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._words = StoreWords()
        self._failures = 0
        self._lock = asyncio.Lock()
        self._on_schedule = on_schedule
        self.worker = Worker("settings", self._step, Supervisor(store, desk), clock)
        self.worker.wake()

    @property
    def files(self) -> StoreFiles:
        """Where the files are."""
        return self._rules.files

    @property
    def hours(self) -> OpeningHours | None:
        """The hours in force; None where no file tells any."""
        return self._words.hours

    @property
    def schedule(self) -> Schedule:
        """The schedule in force."""
        chosen = self._rules.schedule
        return Schedule(
            self._words.hours if chosen.follow_hours else None,
            tuple(read_pauses(chosen.pauses)),
            chosen.last_orders_min,
            self._rules.files.timezone or (self._words.hours.timezone if self._words.hours else ""),
        )

    def changed(self) -> None:
        """A file has changed, or the service is back: read, and send what differs."""
        self._failures = 0
        self.worker.wake()

    async def recall(self) -> None:
        """Take up the hours of the last run, and let the schedule be followed."""
        kept = await self._ledger.read(lambda db: get_fact(db, self._store, "store_hours"))
        if self._words.hours is None and self._rules.files.paths():
            self._words = StoreWords(hours=hours_from_json(kept))
        self._on_schedule(partial(planned_at, self.schedule))

    async def plan(self, *, full: bool = False) -> SettingsPlan:
        """Return what would be sent now. Raises ConfigError with all that is wrong, LedgerError."""
        return await self._plan(await self._read(), full=full)

    async def push(self, *, full: bool = False) -> SettingsPlan:
        """Send what differs, or everything. As `plan`; raises ServiceError too."""
        async with self._lock:
            plan = await self.plan(full=full)
            await self._send(plan)
            return plan

    # -- inside

    async def _step(self) -> float | None:
        """Read, follow, send. Return after how many seconds to try again; None for no timer."""
        async with self._lock:
            try:
                words = await self._read()
            except ConfigError as fault:
                log.warning("store.file_unreadable", store=self._store, detail=str(fault))
                self._desk.open("store.file_unreadable", self._store, detail=str(fault))
                return None
            self._desk.close("store.file_unreadable", self._store)
            try:
                await self._take(words)
                self._on_schedule(partial(planned_at, self.schedule))
                await self._send(await self._plan(words))
            except (ServiceError, LedgerError) as failure:
                return self._after(failure)
            return None

    async def _read(self) -> StoreWords:
        today = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date()
        return await asyncio.to_thread(read_store_files, self._rules.files, today=today)

    async def _take(self, words: StoreWords) -> None:
        """Let the words count from now on, and keep the hours for the next life."""
        if words.hours != self._words.hours and words.hours is not None:
            kept, at = hours_to_json(words.hours), self._clock.now_ms()
            await self._ledger.write(
                lambda db: put_fact(db, self._store, "store_hours", kept, at=at)
            )
        if words != self._words:
            for note in words.notes:
                log.info("store.file_note", store=self._store, note=note)
            log.info("store.files_read", store=self._store)
        self._words = words

    async def _plan(self, words: StoreWords, *, full: bool = False) -> SettingsPlan:
        weekly = None if words.hours is None else words.hours.weekly
        body = settings_body(words.restaurant, weekly, end_of_day=self._rules.end_of_day)
        fact = await self._ledger.read(lambda db: get_fact(db, self._store, "store_settings"))
        accepted: Body = fact["body"] if isinstance(fact, dict) else {}
        part = body if full else changed_part(body, accepted)
        return SettingsPlan(body, part, accepted, no_longer_said(body, accepted), words.notes)

    async def _send(self, plan: SettingsPlan) -> None:
        store_id = self._service_store_id()
        if plan.part and store_id is not None:
            await self._keep(plan.accepted, pending=plan.part)
            await self._client.put_settings(store_id, plan.part)
            await self._keep({**plan.accepted, **plan.part}, sent=True)
            log.info("store.settings_sent", store=self._store, keys=sorted(plan.part))
        elif store_id is not None:
            await self._keep(plan.accepted)
        self._failures = 0
        self._desk.close("store.settings_not_sent", self._store)

    async def _keep(
        self, accepted: Body, pending: Body | None = None, *, sent: bool = False
    ) -> None:
        at = self._clock.now_ms()

        def write(db: Connection) -> None:
            before = get_fact(db, self._store, "store_settings") or {}
            fact = {
                "body": accepted,
                "pending": sorted(pending or ()),
                "sent_at": at if sent else before.get("sent_at"),
            }
            if fact != before:
                put_fact(db, self._store, "store_settings", fact, at=at)

        await self._ledger.write(write)

    def _after(self, failure: ServiceError | LedgerError) -> float | None:
        log.warning(
            "store.settings_not_sent",
            store=self._store,
            failure=type(failure).__name__,
            detail=failure.text,
        )
        match failure:
            case ConsentLost():
                return None  # it is sent once the merchant has consented again
            case Refused(code=code) if code == NOT_INTEGRATED:
                return None  # and this, once the store is integrated again
            case RateLimited():
                return failure.retry_after_s
            case Refused():
                self._desk.open("store.settings_not_sent", self._store, detail=failure.text)
                return None  # until the file changes
        self._failures += 1
        return min(_AGAIN_CAP_S, _AGAIN_FIRST_S * 2.0 ** min(self._failures - 1, 10))
