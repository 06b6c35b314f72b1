"""Sends the store's settings and schedule from the restaurant's own files.

The files are read at the start and whenever they change. An unusable file changes nothing: its
previous content stays in effect, even over a restart, and a problem reports what is wrong.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection

from tillbridge.config.hours import read_pauses
from tillbridge.config.restaurant import Restaurant, StoreDetails, StoreFiles, read_store_files
from tillbridge.core.context import StoreContext
from tillbridge.core.errors import (
    ConfigError,
    ConsentLost,
    LedgerError,
    RateLimited,
    Refused,
    ServiceError,
)
from tillbridge.core.formats import money
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker, backoff_s
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.model.restaurant import (
    OpeningHours,
    Span,
    hours_from_json,
    hours_to_json,
    week_json,
)
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.stores.closure import Planned, Schedule, planned_at

Body = dict[str, Any]
Week = tuple[tuple[Span, ...], ...]


def settings_body(
    restaurant: Restaurant | None, weekly: Week | None, *, end_of_day: str = "24:00"
) -> Body:
    """Return the camelCase body: known fields, and those passed through."""
    body: Body = {} if restaurant is None else restaurant.body()
    if weekly is not None:
        body["availability"] = week_json(weekly, end_of_day=end_of_day)
    if restaurant is not None:
        _add(body, restaurant.pass_through)
    return body


def changed_part(body: Body, acknowledged: Mapping[str, Any] | None) -> Body:
    """Return the top-level fields that differ from what was accepted, each one complete."""
    known = acknowledged or {}
    return {
        key: value
        for key, value in body.items()
        if key not in known or not _same(known[key], value)
    }


def no_longer_given(body: Body, acknowledged: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return what was accepted once and is in no file now: the service keeps it."""
    gone = _leaves(acknowledged or {}).keys() - _leaves(body).keys()
    tops = ((path, path.partition(".")[0]) for path in _leaves(acknowledged or {}) if path in gone)
    return tuple(dict.fromkeys(path if top in body else top for path, top in tops))


def _leaves(body: Mapping[str, Any]) -> Body:
    """Return every value by its path: top-level fields, and those inside one."""
    leaves: Body = {}
    for key, value in body.items():
        inner = value if isinstance(value, Mapping) else None
        leaves |= {key: value} if inner is None else {f"{key}.{k}": v for k, v in inner.items()}
    return leaves


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same in JSON, where true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _add(body: Body, more: Mapping[str, Any]) -> None:
    """Add what is passed through: nothing of it is in the body, which reading it has checked."""
    for key, value in more.items():
        if isinstance(body.get(key), dict) and isinstance(value, Mapping):
            _add(body[key], value)
        else:
            body[key] = value


_MONEY = frozenset({"min_order_amount", "delivery_fee"})


def settings_lines(
    part: Mapping[str, Any], accepted: Mapping[str, Any] | None, currency: str
) -> list[str]:
    """Return a line for each field to be sent; `accepted` is the previous value."""
    before = _leaves(accepted or {})
    return [
        _line(path, value, before.get(path), currency)
        for path, value in _leaves(part).items()
        if "." not in path or path not in before or before[path] != value
    ]


def _line(path: str, value: object, before: object, currency: str) -> str:
    place, _dot, name = path.rpartition(".")
    shown = _day if place == "availability" else partial(_value, name, currency)
    change = shown(value)
    if before is not None:
        change = _("{now} (was {was})").format(now=change, was=shown(before))
    if place == "availability":
        return _("hours on {day}: {change}").format(day=name, change=change)
    return f"{path}: {change}"


def _day(spans: Any) -> str:  # noqa: ANN401 -- as accepted earlier
    return ", ".join(f"{each['open']}-{each['close']}" for each in spans) or _("closed")


def _value(name: str, currency: str, value: object) -> str:
    if name in _MONEY and isinstance(value, int) and not isinstance(value, bool):
        return money(value, currency)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


Follow = Callable[[Callable[[int], Planned]], None]

_AGAIN_FIRST_S, _AGAIN_CAP_S = 5.0, 300.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """What would be sent: `part` of `body`; `accepted` is what the service accepted before.

    `unsaid` names what was accepted once and is missing now; `notes` are sentences.
    """

    body: Body
    part: Body
    accepted: Body
    unsaid: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SettingsFlow:
    """One store. `on_schedule` takes each new schedule; `service_store_id` as in `reconciler`."""

    def __init__(
        self,
        context: StoreContext,
        service_store_id: Callable[[], str | None],
        *,
        on_schedule: Follow,
    ) -> None:
        self._store = context.store
        self.files = StoreFiles.of(context.settings, context.bridge.base_dir)
        self._chosen = context.settings.schedule
        self._end_of_day = context.bridge.settings.assumptions.end_of_day
        self._client = context.service
        self._service_store_id = service_store_id
        self._ledger = context.bridge.ledger
        self._problems = context.bridge.problems
        self._clock = context.bridge.clock
        self._details = StoreDetails()
        self._failures = 0
        self._lock = asyncio.Lock()
        self._on_schedule = on_schedule
        self.worker = Worker("settings", self._step, context.supervisor, context.bridge.clock)
        self.worker.wake()

    @property
    def hours(self) -> OpeningHours | None:
        """The current opening hours; None if no file has any."""
        return self._details.hours

    @property
    def schedule(self) -> Schedule:
        """The current schedule."""
        chosen = self._chosen
        return Schedule(
            self._details.hours if chosen.follow_hours else None,
            tuple(read_pauses(chosen.pauses)),
            chosen.last_orders_min,
            self.files.timezone or (self._details.hours.timezone if self._details.hours else ""),
        )

    def changed(self) -> None:
        """A file has changed, or the service is back: read, and send what differs."""
        self._failures = 0
        self.worker.wake()

    async def recall(self) -> None:
        """Take over the hours of the last run, and follow the schedule."""
        stored = await self._ledger.get_fact(self._store, "store_hours")
        if self._details.hours is None and self.files.paths():
            self._details = StoreDetails(hours=hours_from_json(stored))
        self._on_schedule(partial(planned_at, self.schedule))

    async def plan(self, *, full: bool = False) -> SettingsPlan:
        """Return what would be sent now. Raises ConfigError with all mistakes, LedgerError."""
        return await self._plan(await self._read(), full=full)

    async def push(self, *, full: bool = False) -> SettingsPlan:
        """Send what differs, or everything. As `plan`; also raises ServiceError."""
        async with self._lock:
            plan = await self.plan(full=full)
            await self._send(plan)
            return plan

    # -- inside

    async def _step(self) -> float | None:
        """Read, follow, send. Return after how many seconds to try again; None for no timer."""
        async with self._lock:
            try:
                details = await self._read()
            except ConfigError as fault:
                log.warning("store.file_unreadable", store=self._store, detail=str(fault))
                self._report("store.file_unreadable", str(fault))
                return None
            self._report("store.file_unreadable")
            try:
                await self._adopt(details)
                self._on_schedule(partial(planned_at, self.schedule))
                await self._send(await self._plan(details))
            except (ServiceError, LedgerError) as failure:
                return self._after(failure)
            return None

    async def _read(self) -> StoreDetails:
        today = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date()
        return await asyncio.to_thread(read_store_files, self.files, today=today)

    async def _adopt(self, details: StoreDetails) -> None:
        """Use the details from now on, and store the hours for the next start."""
        if details.hours != self._details.hours and details.hours is not None:
            hours, at = hours_to_json(details.hours), self._clock.now_ms()
            await self._ledger.put_fact(self._store, "store_hours", hours, at=at)
        if details != self._details:
            for note in details.notes:
                log.info("store.file_note", store=self._store, note=note)
            log.info("store.files_read", store=self._store)
        self._details = details

    async def _plan(self, details: StoreDetails, *, full: bool = False) -> SettingsPlan:
        weekly = None if details.hours is None else details.hours.weekly
        body = settings_body(details.restaurant, weekly, end_of_day=self._end_of_day)
        fact = await self._ledger.get_fact(self._store, "store_settings", dict)
        accepted: Body = fact["body"] if fact else {}
        part = body if full else changed_part(body, accepted)
        return SettingsPlan(body, part, accepted, no_longer_given(body, accepted), details.notes)

    async def _send(self, plan: SettingsPlan) -> None:
        store_id = self._service_store_id()
        if plan.part and store_id is not None:
            await self._store_accepted(plan.accepted, pending=plan.part)
            await self._client.put_settings(store_id, plan.part)
            await self._store_accepted({**plan.accepted, **plan.part}, sent=plan.part)
            log.info("store.settings_sent", store=self._store, keys=sorted(plan.part))
        elif store_id is not None:
            await self._store_accepted(plan.accepted)
        self._failures = 0
        self._report("store.settings_not_sent")

    def _report(self, code: str, detail: str = "") -> None:
        found = [Found(code, detail={"detail": detail})] if detail else []
        self._problems.report(Scope.of_one(code, self._store), found)

    async def _store_accepted(
        self, accepted: Body, pending: Body | None = None, *, sent: Body | None = None
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
            if sent and "name" in sent:  # otherwise the next look would fetch it
                put_fact(db, self._store, "service_store_name", sent["name"], at=at)

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
                return None  # sent once the merchant has consented again
            case Refused(code=code) if code == NOT_INTEGRATED:
                return None  # sent once the store is integrated again
            case RateLimited():
                return failure.retry_after_s
            case Refused():
                self._report("store.settings_not_sent", failure.text)
                return None  # until the file changes
        self._failures += 1
        return backoff_s(self._failures, _AGAIN_FIRST_S, _AGAIN_CAP_S)
