"""Pushes of which nobody knows the end: the bridge stopped, or the service went, in the middle.

A job is followed on. What any other push told is doubtful, and is told again.
"""

import asyncio
from dataclasses import replace

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import pushes
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.models import Push
from tillbridge.menu.acknowledging import acknowledge, doubt
from tillbridge.menu.jobs import Jobs
from tillbridge.menu.pending import pending_from
from tillbridge.menu.shared import Shared

log = get_logger()


class OpenPushes:
    """The pushes of one store that this process does not carry out now."""

    def __init__(self, shared: Shared, jobs: Jobs) -> None:
        self._shared = shared
        self._store = shared.store
        self._ledger = shared.ledger
        self._jobs = jobs

    async def settle(self, store_id: str) -> bool:
        """Settle all of them; return whether there were any. Raises ServiceError."""
        running = await self._ledger.read(
            lambda connection: pushes.running_pushes(connection, self._store)
        )
        stale = [each for each in running if each.id not in self._shared.in_flight.pushes]
        for push in stale:
            await self._settle(store_id, push)
        return bool(stale)

    async def _settle(self, store_id: str, push: Push) -> None:
        state, message = "lost", ""
        if push.job_id is not None:
            end = await self._jobs.follow(store_id, push)
            state, message = end.state, end.message
            if end.items is not None and end.items < push.summary.get("items", 0):
                state = "lost"  # some items were refused: pushing again tells which
        text = await self._ledger.read(lambda connection: pushes.pending_of(connection, push.id))
        pending = await asyncio.to_thread(pending_from, text or "")
        at = self._shared.clock.now_ms()
        if state == "success":
            await acknowledge(self._ledger, self._store, replace(pending, ids=()), at=at)
        else:
            await doubt(self._ledger, self._store, list(pending.all_ids))

        def finish(connection: Connection) -> None:
            pushes.end_push(connection, push.id, state, message, at=at)
            if state == "success":
                put_fact(connection, self._store, "last_synced_at", at, at=at)

        await self._ledger.write(finish)
        log.info("menu.push_settled", store=self._store, kind=push.kind, state=state)
