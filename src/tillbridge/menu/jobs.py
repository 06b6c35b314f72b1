"""Menu sync jobs: polled every few seconds until they end. Specification: Menu sync job; Limits.

A job is kept an hour after its last update; one that the service knows no more is settled by the
sync status: where `last_synced_at` has moved since the job began, it succeeded.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.errors import Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import pushes
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import Push
from tillbridge.menu.ports import CatalogueService
from tillbridge.service.types import PushAccepted

log = get_logger()

JOB_NOT_FOUND = "menu.job_not_found"
GIVE_UP_S = 2 * 3600.0  # a job that has not ended by then has been forgotten by the service
_BASELINE = "menu_job"  # the fact that holds what `last_synced_at` was when the job began


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended; `lost` where nobody can tell. `message` holds the service's own words.

    `items` is how many items it took, None where that is not told.
    """

    state: Literal["success", "failed", "lost"]
    message: str = ""
    items: int | None = None


class Jobs:
    """Follows the jobs of one store."""

    def __init__(
        self, ledger: Ledger, service: CatalogueService, store: str, *, clock: Clock, poll_s: float
    ) -> None:
        self._ledger = ledger
        self._service = service
        self._store = store
        self._clock = clock
        self._poll_s = poll_s

    async def follow_new(
        self, store_id: str, push_id: int, accepted: PushAccepted, pending: str
    ) -> JobEnd:
        """Write down that the push became a job, and return its end.

        Raises ServiceError where the service cannot be asked any more; the job is then resumed by
        the next round, or after a restart.
        """
        at = self._clock.now_ms()

        def remember(connection: Connection) -> None:
            pushes.push_became_job(
                connection,
                push_id,
                job_id=accepted.job_id,
                poll_url=accepted.poll_url,
                pending=pending,
            )
            baseline = {"job_id": accepted.job_id, "synced_at": accepted.synced_before}
            put_fact(connection, self._store, _BASELINE, baseline, at=at)

        await self._ledger.write(remember)
        log.info("menu.job_started", store=self._store, job=accepted.job_id)
        return await self._follow(store_id, accepted.job_id, accepted.poll_url, at)

    async def follow(self, store_id: str, push: Push) -> JobEnd:
        """Return the end of a job that was running when the bridge stopped. Raises ServiceError."""
        log.info("menu.job_resumed", store=self._store, job=push.job_id)
        return await self._follow(store_id, push.job_id or "", push.poll_url or "", push.started_at)

    async def _follow(self, store_id: str, job_id: str, poll_url: str, began: int) -> JobEnd:
        give_up = self._clock.monotonic() + GIVE_UP_S
        while self._clock.monotonic() < give_up:
            try:
                job = await self._service.menu_job(store_id, job_id, poll_url=poll_url)
            except Refused as failure:
                if failure.code != JOB_NOT_FOUND:
                    raise
                return await self._settle(store_id, job_id, began)
            if job.ended:
                state: Literal["success", "failed"] = (
                    "success" if job.status == "success" else "failed"
                )
                log.info("menu.job_ended", store=self._store, job=job_id, state=state)
                return JobEnd(state, job.message, job.counts.items)
            await asyncio.sleep(self._poll_s)
        return JobEnd("lost", _("The service has not finished the menu push for hours."))

    async def _settle(self, store_id: str, job_id: str, began: int) -> JobEnd:
        """Decide by the sync status what became of a job that the service knows no more."""
        baseline = await self._ledger.read(
            lambda connection: get_fact(connection, self._store, _BASELINE)
        )
        synced = (await self._service.menu_status(store_id)).last_synced_at
        log.info("menu.job_settled", store=self._store, job=job_id, last_synced_at=synced)
        if synced is not None:
            if baseline is not None and baseline["job_id"] == job_id and baseline["synced_at"]:
                done = synced > baseline["synced_at"]
            else:
                done = synced >= began
            if done:
                return JobEnd("success")
        return JobEnd(
            "lost", _("The service no longer knows the menu push, and shows no sync since then.")
        )
