"""The community's catalogue, mirrored here, and this bridge's own availability of its items.

Specification: GET /communities/{communityId}/catalogue, `updated_since`: whole at first and once a
day, and what changed between. PATCH /communities/{communityId}/catalogue/items/{itemId}: an
override is stored first, then pushed until the service has taken it; a snooze ends by itself.
"Effective availability is the AND of merchant-side and community-side availability".
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tillbridge.communities import CommunityContext
from tillbridge.core.errors import Refused
from tillbridge.core.log import get_logger
from tillbridge.ledger.community import mirrored_counts, put_records, record_keys
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.models import CommunityOverride
from tillbridge.ledger.pushes import drop_overrides, get_overrides, put_override, settle_override
from tillbridge.model.community import Catalogue, Record
from tillbridge.model.instant import to_iso
from tillbridge.service.caller import LATE_S

log = get_logger()

# Where an answer has no `as_of`: the two clocks differ a little, and a record read twice is
# no harm.
_MARGIN_MS = 60_000

Key = tuple[str, str]


# -- overrides


def both(merchant: bool | None, community: bool | None) -> bool | None:  # noqa: FBT001 -- the two sides
    """Return the AND of the two sides; one that says no is enough, whatever the other is."""
    if merchant is False or community is False:
        return False
    return True if merchant and community else None


def holds(override: CommunityOverride, now_ms: int) -> bool:
    """Whether an override takes its item off sale now."""
    return not override.available and (override.until is None or override.until > now_ms)


def item_availability(
    record: Record, override: CommunityOverride | None, now_ms: int
) -> dict[str, Any]:
    """Return how an item is at `now_ms`, as commands show it. None: nothing is known.

    `own` is this bridge's override alone, `catalogue_available` what the community's catalogue had
    last (both sides as of then), `available` what holds now.
    """
    off = override is not None and holds(override, now_ms)
    until = override.until if override is not None and off else None
    return {
        "available": both(record.available, not off),
        "own": {
            "available": not off,
            "until": None if until is None else to_iso(until),
            "told": override is None or override.sent_at is not None,
        },
        "catalogue_available": record.available,
    }


def to_push(overrides: Iterable[CommunityOverride], now_ms: int) -> tuple[CommunityOverride, ...]:
    """Return the overrides that the service does not have yet, oldest first."""
    waiting = [each for each in overrides if each.sent_at is None and not _is_over(each, now_ms)]
    return tuple(sorted(waiting, key=lambda each: (each.at, each.external_id)))


def over(overrides: Iterable[CommunityOverride], now_ms: int) -> tuple[str, ...]:
    """Return the items whose snooze has ended: the service restores them by itself."""
    return tuple(each.external_id for each in overrides if _is_over(each, now_ms))


def lifted(
    overrides: Iterable[CommunityOverride],
    items: Mapping[str, Record],
    *,
    asked_at: int,
    now_ms: int,
) -> tuple[str, ...]:
    """Return the items that somebody else has restored in the community.

    `items` are those of an answer that was asked for at `asked_at`: where one is on sale although
    our override, taken before then, says otherwise, the override is no longer the community's.
    """
    return tuple(
        each.external_id
        for each in overrides
        if each.sent_at is not None
        and each.sent_at < asked_at
        and holds(each, now_ms)
        and each.external_id in items
        and items[each.external_id].available is True
    )


def _is_over(override: CommunityOverride, now_ms: int) -> bool:
    return not override.available and override.until is not None and override.until <= now_ms


class CommunityOverrides:
    """The overrides of one community."""

    def __init__(self, context: CommunityContext) -> None:
        self._context = context

    async def set(self, item_id: str, *, available: bool, until: int | None, by: str) -> None:
        """Store an override; the next `push` sends it. Raises LedgerError."""
        context, at = self._context, self._context.bridge.clock.now_ms()
        name, key = context.name, context.key
        override = CommunityOverride(
            store=key, external_id=item_id, available=available, until=until, by=by, at=at
        )
        await context.bridge.ledger.write(put_override, override=override)
        log.info("community.override_set", community=name, item=item_id, available=available)

    async def all(self) -> dict[str, CommunityOverride]:
        """Return the overrides, by item id."""
        context = self._context
        return await context.bridge.ledger.read(get_overrides, context.key, CommunityOverride)

    async def push(self) -> None:
        """Send what the service does not have yet. Raises ServiceError, LedgerError.

        The override of an item that the community does not have any more is dropped.
        """
        context = self._context
        overrides = (await self.all()).values()
        for item_id in over(overrides, context.bridge.clock.now_ms()):
            await self._drop(item_id)
        for override in to_push(overrides, context.bridge.clock.now_ms()):
            try:
                if override.available:
                    await context.calls.restore(override.external_id)
                else:
                    await context.calls.take_off(override.external_id, until_ms=override.until)
            except Refused as failure:
                if failure.status != 404:
                    raise
                log.warning(
                    "community.item_gone", community=context.name, item=override.external_id
                )
                await self._drop(override.external_id)
                continue
            if asyncio.get_running_loop().time() < context.calls.unanswered_at + LATE_S:
                continue  # an earlier call may arrive after this one, which is made once more then
            at = context.bridge.clock.now_ms()
            await context.bridge.ledger.write(settle_override, sent=override, at=at)
            log.info("community.override_pushed", community=context.name, item=override.external_id)

    async def _drop(self, item_id: str) -> None:
        await self._context.bridge.ledger.write(
            drop_overrides, store=self._context.key, external_ids=[item_id], kind=CommunityOverride
        )


# -- the mirror


class Mirror:
    """Keeps the mirror of one community. The fact `mirror` says how it is."""

    def __init__(self, context: CommunityContext) -> None:
        self._context = context
        self._one_at_a_time = asyncio.Lock()

    async def state(self) -> dict[str, Any]:
        """Return `as_of`, `whole_at` and `read_at` (ms), and the counts; {} before the first."""
        return await self._context.fact("mirror")

    async def round(self) -> dict[str, Any]:
        """Read what has changed, or all of it where that is due; return the new state.

        All of it also where the mirror is not what was noted of it: after a damaged ledger the
        notes are carried over, and the records come from the service again.
        """
        state = await self.state()
        there = await self._context.bridge.ledger.read(mirrored_counts, community=self._context.key)
        noted = all(state.get(name) == count for name, count in there.items())
        due = self._context.bridge.clock.now_ms() - self._context.settings.full_sync_s * 1000
        if not noted or not state.get("as_of") or (state.get("whole_at") or 0) <= due:
            return await self.whole()
        return await self._read(str(state["as_of"]))

    async def whole(self) -> dict[str, Any]:
        """Read all of it. Raises ServiceError, LedgerError."""
        return await self._read(None)

    async def _read(self, as_of: str | None) -> dict[str, Any]:
        """Read what has changed since then, None: all of it."""
        context = self._context
        async with self._one_at_a_time:
            asked_at = context.bridge.clock.now_ms()
            answer = await context.calls.catalogue(updated_since=as_of)

            def write(connection: Connection) -> dict[str, Any]:
                before = get_fact(connection, context.key, "mirror") or {}
                if as_of is None:
                    change = replaced(record_keys(connection, context.key), answer.records)
                    whole_at = asked_at
                else:
                    change = advanced(answer.records)
                    whole_at = before.get("whole_at", asked_at)
                put_records(connection, context.key, change.put, change.gone)
                return self._note(connection, answer, asked_at, whole_at=whole_at)

            state = await context.bridge.ledger.write(write)
        if as_of is None:
            counts = {"stores": state["stores"], "items": state["items"]}
            log.info("community.mirrored", community=context.name, **counts)
        else:
            changed = len(answer.records)
            log.debug("community.mirror_advanced", community=context.name, changed=changed)
        return state

    def _note(
        self, connection: Connection, answer: Catalogue, asked_at: int, *, whole_at: int
    ) -> dict[str, Any]:
        """Write down how the mirror is, and drop overrides that no longer hold."""
        context = self._context
        now = context.bridge.clock.now_ms()
        overrides = get_overrides(connection, context.key, CommunityOverride).values()
        items = {each.record_id: each for each in answer.records if each.kind == "item"}
        restored = lifted(overrides, items, asked_at=asked_at, now_ms=now)
        for item_id in restored:
            log.info("community.restored_elsewhere", community=context.name, item=item_id)
        ended = [*over(overrides, now), *restored]
        drop_overrides(connection, context.key, ended, CommunityOverride)
        state = {
            "as_of": answer.as_of or to_iso(asked_at - _MARGIN_MS),
            "whole_at": whole_at,
            "read_at": now,
            **mirrored_counts(connection, context.key),
        }
        put_fact(connection, context.key, "mirror", state, at=now)
        return state


@dataclass(frozen=True, slots=True)
class Change:
    """Records to write, and keys to remove."""

    put: tuple[Record, ...]
    gone: tuple[Key, ...]


def replaced(known: Collection[Key], answer: Iterable[Record]) -> Change:
    """Return what a whole answer changes: what it does not list is gone."""
    there = {_key(each): each for each in answer if not each.removed}
    return Change(tuple(there.values()), tuple(key for key in known if key not in there))


def advanced(answer: Iterable[Record]) -> Change:
    """Return what an incremental answer changes: what it does not list stays as it is."""
    last = {_key(each): each for each in answer}
    return Change(
        tuple(each for each in last.values() if not each.removed),
        tuple(key for key, each in last.items() if each.removed),
    )


def _key(record: Record) -> Key:
    return (record.kind, record.record_id)
