"""The community's catalogue, mirrored: whole at first and once a day, and what changed between.

Specification: GET /communities/{communityId}/catalogue, `updated_since`.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tillbridge.communities.context import CommunityContext
from tillbridge.communities.overrides import lifted, over
from tillbridge.core.log import get_logger
from tillbridge.ledger.community import (
    mirrored_counts,
    put_records,
    record_keys,
)
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.models import CommunityOverride
from tillbridge.ledger.overrides import community_overrides, drop_overrides
from tillbridge.model.community import Catalogue, Record
from tillbridge.model.instant import to_iso

log = get_logger()

# Where an answer has no `as_of`: the two clocks differ a little, and a record read twice is
# no harm.
_MARGIN_MS = 60_000


class Mirror:
    """Keeps the mirror of one community. The fact `mirror` says how it is."""

    def __init__(self, context: CommunityContext) -> None:
        self._context = context
        self._one_at_a_time = asyncio.Lock()

    async def state(self) -> dict[str, Any]:
        """Return `as_of`, `whole_at` and `read_at` (ms), and the counts; {} before the first."""
        known = await self._context.ledger.read(
            lambda connection: get_fact(connection, self._context.key, "mirror")
        )
        return known if isinstance(known, dict) else {}

    async def round(self) -> dict[str, Any]:
        """Read what has changed, or all of it where that is due; return the new state.

        All of it also where the mirror is not what was noted of it: after a damaged ledger the
        notes are carried over, and the records come from the service again.
        """
        state = await self.state()
        there = await self._context.ledger.read(
            lambda connection: mirrored_counts(connection, self._context.key)
        )
        noted = all(state.get(name) == count for name, count in there.items())
        whole_at = state.get("whole_at")
        due = self._context.clock.now_ms() - self._context.settings.full_sync_s * 1000
        if not noted or not state.get("as_of") or not whole_at or whole_at <= due:
            return await self.whole()
        return await self.since(str(state["as_of"]))

    async def whole(self) -> dict[str, Any]:
        """Read all of it. Raises ServiceError, LedgerError."""
        async with self._one_at_a_time:
            asked_at = self._context.clock.now_ms()
            answer = await self._context.calls.catalogue()

            def write(connection: Connection) -> dict[str, Any]:
                change = replaced(record_keys(connection, self._context.key), answer.records)
                put_records(connection, self._context.key, change.put, change.gone)
                return self._note(connection, answer, asked_at, whole_at=asked_at)

            state = await self._context.ledger.write(write)
        log.info(
            "community.mirrored",
            community=self._context.name,
            stores=state["stores"],
            items=state["items"],
        )
        return state

    async def since(self, as_of: str) -> dict[str, Any]:
        """Read what has changed since then. Raises ServiceError, LedgerError."""
        async with self._one_at_a_time:
            asked_at = self._context.clock.now_ms()
            answer = await self._context.calls.catalogue(updated_since=as_of)
            change = advanced(answer.records)

            def write(connection: Connection) -> dict[str, Any]:
                put_records(connection, self._context.key, change.put, change.gone)
                before = get_fact(connection, self._context.key, "mirror") or {}
                return self._note(
                    connection, answer, asked_at, whole_at=before.get("whole_at", asked_at)
                )

            state = await self._context.ledger.write(write)
        log.debug(
            "community.mirror_advanced",
            community=self._context.name,
            changed=len(change.put),
            gone=len(change.gone),
        )
        return state

    def _note(
        self, connection: Connection, answer: Catalogue, asked_at: int, *, whole_at: int
    ) -> dict[str, Any]:
        """Write down how the mirror is, and drop overrides that no longer hold."""
        context = self._context
        now = context.clock.now_ms()
        overrides = community_overrides(connection, context.key).values()
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


Key = tuple[str, str]


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
