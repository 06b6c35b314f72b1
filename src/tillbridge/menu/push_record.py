"""The record of a call that changes the menu: from before it is sent until its end is known.

What the service accepted is acknowledged here, and nowhere else (invariant 3). A push whose end
stays unknown (time-out, failure of the service, crash) leaves its items unconfirmed: they are sent
again. A push that the service takes as a job is followed until it ends. The service remembers a job
for an hour after its last update; one that it knows no more is settled by the sync status: where
`last_synced_at` has moved since the job began, it succeeded. Specification: Menu sync job; Limits.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection

from tillbridge.core.errors import BridgeError, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_codec import (
    PARTS,
    AcceptedItem,
    Parts,
    decode_accepted,
    encode_accepted,
    part_from,
    part_text,
)
from tillbridge.menu.context import MenuContext
from tillbridge.service.types import PushAccepted

log = get_logger()

T = TypeVar("T")

PORTION = 1000  # items in one commit: a delivery must not wait long for its own
JOB_NOT_FOUND = "menu.job_not_found"
GIVE_UP_S = 2 * 3600.0  # a job that has not ended by then has been forgotten by the service
_BASELINE = "menu_job"  # the fact that holds what `last_synced_at` was when the job began


@dataclass(frozen=True, slots=True)
class PushContent:
    """What a push carries: `ids` of items alone, or items and parts to be acknowledged.

    Of content that is acknowledged, `ids` are removed and the rest is there.
    """

    ids: tuple[str, ...] = ()
    items: tuple[AcceptedItem, ...] = ()
    parts: Parts = field(default_factory=Parts)

    @property
    def all_ids(self) -> frozenset[str]:
        """The ids of every item."""
        return frozenset(self.ids) | {each.item.external_id for each in self.items}

    def text(self) -> str:
        """Return it as the ledger has it: one JSON array a line.

        So a menu of 20,000 items is never encoded or decoded in one go, which would hold the
        interpreter, and with it the event loop.
        """
        return "\n".join(self._lines())

    @classmethod
    def of_text(cls, text: str) -> "PushContent":
        """Return what `text` wrote."""
        ids: list[str] = []
        items: list[AcceptedItem] = []
        parts: dict[str, dict[str, Any]] = {kind: {} for kind in PARTS}
        for line in text.splitlines():
            kind, *values = json.loads(line)
            if kind == "id":
                ids.append(values[0])
            elif kind == "item":
                body, fingerprint, pos_available = values
                items.append(decode_accepted(body, fingerprint, pos_available=pos_available))
            else:
                part: Any = part_from(kind, values[0])
                parts[kind][part.external_id] = part
        return cls(tuple(ids), tuple(items), Parts(**parts))

    def _lines(self) -> Iterator[str]:
        for external_id in self.ids:
            yield json.dumps(["id", external_id])
        for accepted in self.items:
            row = encode_accepted(accepted)
            yield json.dumps(["item", row["body"], row["fingerprint"], row["pos_available"]])
        for kind in PARTS:
            for part in getattr(self.parts, kind).values():
                yield json.dumps([kind, part_text(part)])


class PushRecord:
    """A row of the ledger's pushes."""

    def __init__(self, ctx: MenuContext, push_id: int) -> None:
        self._ctx = ctx
        self.id = push_id

    @classmethod
    async def begin(
        cls, ctx: MenuContext, kind: str, summary: Mapping[str, Any], ids: Collection[str]
    ) -> "PushRecord":
        """Record that a push of these items is about to be sent."""
        text = await asyncio.to_thread(PushContent(ids=tuple(ids)).text)
        at = ctx.clock.now_ms()
        return cls(ctx, await ctx.write(pushes.begin_push, kind, summary, text, at=at))

    async def accepted(
        self,
        content: PushContent,
        state: str,
        message: str,
        also: Callable[[Connection], None] | None = None,
    ) -> None:
        """Acknowledge what the service accepted of it (and do `also`), and end the push."""
        at = self._ctx.clock.now_ms()
        *before, last = portions(content.items, PORTION) or [()]
        for portion in before:
            await self._ctx.write(menu.acknowledge_items, portion, at=at)

        def finish(connection: Connection, store: str) -> None:
            menu.acknowledge_items(connection, store, last, at=at)
            menu.acknowledge_parts(connection, store, content.parts, at=at)
            menu.forget_items(connection, store, content.ids, at=at)
            menu.clear_refusals(connection, store, content.ids)
            if also is not None:
                also(connection)
            pushes.end_push(connection, self.id, state, message, at=at)

        await self._ctx.write(finish)

    async def refused(self, message: str) -> None:
        """Record that the service took nothing of it."""
        await self._end("failed", message)

    async def unconfirmed(self, ids: Iterable[str], message: str, *, state: str = "lost") -> None:
        """Record that nobody knows what of these items the service has."""
        await mark_unconfirmed(self._ctx, list(ids))
        await self._end(state, message)

    async def became_job(self, store_id: str, job: PushAccepted, content: PushContent) -> "JobEnd":
        """Record that the push became a job, and return its end.

        Raises ServiceError where the service cannot be asked any more; the job is then resumed by
        the next round, or after a restart.
        """
        at = self._ctx.clock.now_ms()
        pending = await asyncio.to_thread(content.text)

        def remember(connection: Connection, store: str) -> None:
            pushes.push_became_job(
                connection, self.id, job_id=job.job_id, poll_url=job.poll_url, pending=pending
            )
            baseline = {"job_id": job.job_id, "synced_at": job.synced_before}
            put_fact(connection, store, _BASELINE, baseline, at=at)

        await self._ctx.write(remember)
        log.info("menu.job_started", store=self._ctx.store, job=job.job_id)
        return await follow_job(self._ctx, store_id, job.job_id, job.poll_url, at)

    async def _end(self, state: str, message: str) -> None:
        at = self._ctx.clock.now_ms()
        await self._ctx.ledger.write(
            lambda connection: pushes.end_push(connection, self.id, state, message, at=at)
        )


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended; `lost` where nobody can tell. `message` is the service's own.

    `items` is how many items it took, None where the service does not say.
    """

    state: Literal["success", "failed", "lost"]
    message: str = ""
    items: int | None = None


class JobLost(BridgeError):
    """The service no longer knows the job, and shows no sync since it began."""

    def __init__(self, end: JobEnd) -> None:
        super().__init__(end.message)


async def follow_job(
    ctx: MenuContext, store_id: str, job_id: str, poll_url: str, began: int
) -> JobEnd:
    """Poll the job until it ends. Raises ServiceError."""
    give_up = ctx.clock.monotonic() + GIVE_UP_S
    while ctx.clock.monotonic() < give_up:
        try:
            job = await ctx.service.menu_job(store_id, job_id, poll_url=poll_url)
        except Refused as failure:
            if failure.code != JOB_NOT_FOUND:
                raise
            return await _by_sync_status(ctx, store_id, job_id, began)
        if job.ended:
            state: Literal["success", "failed"] = "success" if job.status == "success" else "failed"
            log.info("menu.job_ended", store=ctx.store, job=job_id, state=state)
            return JobEnd(state, job.message, job.counts.items)
        await asyncio.sleep(ctx.job_poll_s)
    return JobEnd("lost", _("The service has not finished the menu push for hours."))


async def _by_sync_status(ctx: MenuContext, store_id: str, job_id: str, began: int) -> JobEnd:
    """Return by the sync status what became of a job that the service knows no more."""
    baseline = await ctx.read(get_fact, _BASELINE)
    synced = (await ctx.service.menu_status(store_id)).last_synced_at
    log.info("menu.job_settled", store=ctx.store, job=job_id, last_synced_at=synced)
    if baseline is not None and baseline["job_id"] == job_id and baseline["synced_at"]:
        began = baseline["synced_at"] + 1
    if synced is not None and synced >= began:
        return JobEnd("success")
    return JobEnd(
        "lost", _("The service no longer knows the menu push, and shows no sync since then.")
    )


async def mark_unconfirmed(ctx: MenuContext, external_ids: Sequence[str]) -> None:
    """Record that nobody knows what the service has of these items."""
    for portion in portions(external_ids, PORTION):
        await ctx.write(menu.mark_unconfirmed, portion)


async def refresh_records(ctx: MenuContext, accepted: Sequence[AcceptedItem]) -> None:
    """Record where items come from now whose content the service has already."""
    for portion in portions(accepted, PORTION):
        await ctx.write(menu.refresh_items, portion)


def portions(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values in portions of at most `size`."""
    return [values[start : start + size] for start in range(0, len(values), size)]
