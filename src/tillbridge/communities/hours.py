"""Pushing the stores' opening hours to the community, whenever what it shows would differ.

Specification: PUT /communities/{communityId}/stores/{storeId}/hours; Store hours: `timezone`,
`weekly` (an empty day is closed), `overrides[]` of {date, closed, reason}. How a date with other
hours is written is not shown. Unless a field for it is named, such hours are in the week while it
holds their date: today and the six days after it are each weekday once, so for seven days from
today the community shows what the file says. A file that cannot be read changes nothing: what was
pushed stays.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from tillbridge.communities import CommunityContext
from tillbridge.config.restaurant import StoreFiles, read_store_files
from tillbridge.core.errors import BridgeError, ConfigError, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.model.restaurant import DatedHours, OpeningHours, Span, week_json, zone_of

log = get_logger()

_WEEK_DAYS = 7
_PROBLEM = "community.hours_not_pushed"
_QUIET_MS = 1000  # a file that was written a moment ago may be half written

_Signature = tuple[tuple[str, int, int], ...]


def local_date(timezone: str, now_ms: int) -> date:
    """Return the date at `now_ms` where the store is."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone_of(timezone)).date()


def hours_body(hours: OpeningHours, today: date, *, hours_field: str = "") -> dict[str, Any]:
    """Return the body of PUT .../hours as of `today`; dates that are over are left out.

    `hours_field` is the name of an override's own hours, "" where there is none.
    """
    coming = [each for each in hours.overrides if each.day >= today]
    coming.sort(key=lambda each: each.day)
    weekly = hours.weekly if hours_field else _week_from(hours, coming, today)
    return {
        "timezone": hours.timezone,
        "weekly": week_json(weekly),
        "overrides": [
            _override(each, hours_field) for each in coming if hours_field or not each.spans
        ],
    }


def digest(body: Mapping[str, Any]) -> str:
    """Return a digest of a body."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _week_from(
    hours: OpeningHours, coming: Sequence[DatedHours], today: date
) -> tuple[tuple[Span, ...], ...]:
    """Return the week with the dated hours of the next seven days in place of the usual ones."""
    last = today + timedelta(days=_WEEK_DAYS - 1)
    dated = {each.day.weekday(): each.spans for each in coming if each.spans and each.day <= last}
    return tuple(dated.get(number, usual) for number, usual in enumerate(hours.weekly))


def _override(each: DatedHours, hours_field: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "date": each.day.isoformat(),
        "closed": not each.spans,
        "reason": each.reason,
    }
    if each.spans:
        week = (each.spans,) + ((),) * (_WEEK_DAYS - 1)
        body[hours_field] = week_json(week)["monday"]
    return body


@dataclass(frozen=True, slots=True)
class StoreHours:
    """A store's hours as the community is to have them; `pushed_at` (ms): it has these."""

    store: str
    body: Mapping[str, Any]
    pushed_at: int | None


class Hours:
    """Pushes the hours of the member stores that have files of their own."""

    def __init__(self, context: CommunityContext) -> None:
        shared = context.bridge
        self._context = context
        self._files: dict[str, StoreFiles] = {}
        self._hours_field = shared.settings.assumptions.override_hours_field
        for store in context.members() if context.settings.push_hours else ():
            files = StoreFiles.of(shared.settings.stores[store], shared.base_dir)
            if files.paths():
                self._files[store] = files
        # By store: what its files contained, and in which state.
        self._known: dict[str, tuple[_Signature, OpeningHours | None]] = {}
        self._in_vain: dict[str, str] = {}
        self._one_at_a_time = asyncio.Lock()

    async def round(self) -> None:
        """Push what differs from what was pushed. Raises ServiceError, LedgerError."""
        async with self._one_at_a_time:
            for store, service_id in self._connected():
                try:
                    await self._push_changed(store, service_id)
                except (ConfigError, Refused) as failure:
                    self._report(store, failure)

    async def push_all(self) -> None:
        """Push the hours of every store, changed or not. Raises BridgeError."""
        async with self._one_at_a_time:
            self._in_vain.clear()
            for store, service_id in self._connected():
                if (body := await self._body(store)) is not None:
                    await self._push(store, service_id, body)

    async def listed(self) -> list[StoreHours]:
        """Return the hours as they are to be. Raises ConfigError if a file cannot be read."""
        pushed = await self._context.fact("hours")
        found = []
        for store in self._context.members():
            body = await self._body(store) if store in self._files else None
            if body is not None:
                then = pushed.get(store, {})
                same = then.get("digest") == digest(body)
                found.append(StoreHours(store, body, then.get("pushed_at") if same else None))
        return found

    # -- inside

    async def _push_changed(self, store: str, service_id: str) -> None:
        if await asyncio.to_thread(self._is_being_written, store):
            return
        if (body := await self._body(store)) is None:
            return
        wanted = digest(body)
        if (await self._context.fact("hours")).get(store, {}).get("digest") == wanted:
            self._context.report(_PROBLEM, store)
        elif self._in_vain.get(store) != wanted:
            try:
                await self._push(store, service_id, body)
            except Refused:
                self._in_vain[store] = wanted  # the same hours will never be taken
                raise

    async def _push(self, store: str, service_id: str, body: Mapping[str, Any]) -> None:
        context = self._context
        await context.calls.put_hours(service_id, body)
        at = context.bridge.clock.now_ms()
        self._in_vain.pop(store, None)

        def note(connection: Connection) -> None:
            known = get_fact(connection, context.key, "hours") or {}
            known[store] = {"digest": digest(body), "pushed_at": at}
            put_fact(connection, context.key, "hours", known, at=at)

        await context.bridge.ledger.write(note)
        context.report(_PROBLEM, store)
        log.info("community.hours_pushed", community=context.name, store=store)

    def _connected(self) -> Iterator[tuple[str, str]]:
        """Yield the connected stores that have files, each with its id at the service."""
        for store, service_id in self._context.service_ids.items():
            if store in self._files:
                yield store, service_id

    async def _body(self, store: str) -> dict[str, Any] | None:
        if (hours := await self._hours(store)) is None:
            return None
        if not hours.timezone:
            raise ConfigError(
                _("The opening hours have no time zone. A community needs one."),
                fix=_("Set timezone in the store's table or in its hours file."),
            )
        today = local_date(hours.timezone, self._context.bridge.clock.now_ms())
        return hours_body(hours, today, hours_field=self._hours_field)

    async def _hours(self, store: str) -> OpeningHours | None:
        """Return the store's hours, read again if its files have changed."""
        files = self._files[store]
        signature = await asyncio.to_thread(_signature, files)
        if store not in self._known or self._known[store][0] != signature:
            today = local_date(files.timezone or "", self._context.bridge.clock.now_ms())
            read = await asyncio.to_thread(read_store_files, files, today=today)
            self._known[store] = signature, read.hours
        return self._known[store][1]

    def _is_being_written(self, store: str) -> bool:
        now = self._context.bridge.clock.now_ms()
        return any(
            0 <= now - at // 1_000_000 < _QUIET_MS
            for _path, at, _size in _signature(self._files[store])
        )

    def _report(self, store: str, failure: BridgeError) -> None:
        detail = {
            "member": store,
            "community": self._context.name,
            "detail": failure.text,
            "remedy": failure.fix
            or _("Correct the hours file. The bridge sends it as soon as it changes."),
        }
        self._context.report(_PROBLEM, store, Found(_PROBLEM, store, detail))


def _signature(files: StoreFiles) -> _Signature:
    found = []
    for path in files.paths():
        try:
            state = path.stat()
            found.append((str(path), state.st_mtime_ns, state.st_size))
        except OSError:
            found.append((str(path), 0, -1))
    return tuple(found)
