"""The community's catalogue, mirrored: whole at first and once a day, and what changed between.

Specification: GET /communities/{communityId}/catalogue, `updated_since`.
"""

import asyncio
from typing import Any

from sqlalchemy import Connection

from tillbridge.communities.availability import lifted, over
from tillbridge.communities.merging import advanced, replaced
from tillbridge.communities.shared import Shared
from tillbridge.core.log import get_logger
from tillbridge.ledger.community import (
    drop_word,
    get_words,
    mirrored_counts,
    put_records,
    record_keys,
)
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.model.community import Catalogue
from tillbridge.model.instant import to_iso

log = get_logger()

# Where an answer tells no `as_of`: the two clocks differ a little, and a record told twice is
# no harm.
_MARGIN_MS = 60_000


class Mirror:
    """Keeps the mirror of one community. The fact `mirror` says how it is."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._one_at_a_time = asyncio.Lock()

    async def state(self) -> dict[str, Any]:
        """Return `as_of`, `whole_at` and `read_at` (ms), and the counts; {} before the first."""
        known = await self._shared.ledger.read(
            lambda connection: get_fact(connection, self._shared.key, "mirror")
        )
        return known if isinstance(known, dict) else {}

    async def round(self) -> dict[str, Any]:
        """Read what has changed, or all of it where that is due; return the new state.

        All of it also where the mirror is not what was noted of it: after a damaged ledger the
        notes are carried over, and the records come from the service again.
        """
        state = await self.state()
        there = await self._shared.ledger.read(
            lambda connection: mirrored_counts(connection, self._shared.key)
        )
        noted = all(state.get(name) == count for name, count in there.items())
        whole_at = state.get("whole_at")
        due = self._shared.clock.now_ms() - self._shared.settings.full_sync_s * 1000
        if not noted or not state.get("as_of") or not whole_at or whole_at <= due:
            return await self.whole()
        return await self.since(str(state["as_of"]))

    async def whole(self) -> dict[str, Any]:
        """Read all of it. Raises ServiceError, LedgerError."""
        async with self._one_at_a_time:
            asked_at = self._shared.clock.now_ms()
            answer = await self._shared.calls.catalogue()

            def write(connection: Connection) -> dict[str, Any]:
                change = replaced(record_keys(connection, self._shared.key), answer.records)
                put_records(connection, self._shared.key, change.put, change.gone)
                return self._note(connection, answer, asked_at, whole_at=asked_at)

            state = await self._shared.ledger.write(write)
        log.info(
            "community.mirrored",
            community=self._shared.name,
            stores=state["stores"],
            items=state["items"],
        )
        return state

    async def since(self, as_of: str) -> dict[str, Any]:
        """Read what has changed since then. Raises ServiceError, LedgerError."""
        async with self._one_at_a_time:
            asked_at = self._shared.clock.now_ms()
            answer = await self._shared.calls.catalogue(updated_since=as_of)
            change = advanced(answer.records)

            def write(connection: Connection) -> dict[str, Any]:
                put_records(connection, self._shared.key, change.put, change.gone)
                before = get_fact(connection, self._shared.key, "mirror") or {}
                return self._note(
                    connection, answer, asked_at, whole_at=before.get("whole_at", asked_at)
                )

            state = await self._shared.ledger.write(write)
        log.debug(
            "community.mirror_advanced",
            community=self._shared.name,
            told=len(change.put),
            gone=len(change.gone),
        )
        return state

    def _note(
        self, connection: Connection, answer: Catalogue, asked_at: int, *, whole_at: int
    ) -> dict[str, Any]:
        """Write down how the mirror is, and let go of words that no longer hold."""
        shared = self._shared
        now = shared.clock.now_ms()
        words = get_words(connection, shared.key)
        items = {each.record_id: each for each in answer.records if each.kind == "item"}
        for item_id in over(words, now):
            drop_word(connection, shared.key, item_id)
        for item_id in lifted(words, items, asked_at=asked_at, now_ms=now):
            log.info("community.restored_elsewhere", community=shared.name, item=item_id)
            drop_word(connection, shared.key, item_id)
        state = {
            "as_of": answer.as_of or to_iso(asked_at - _MARGIN_MS),
            "whole_at": whole_at,
            "read_at": now,
            **mirrored_counts(connection, shared.key),
        }
        put_fact(connection, shared.key, "mirror", state, at=now)
        return state
