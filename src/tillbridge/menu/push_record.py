"""The record of a call that changes the menu: from before it is sent until its end is known.

What the service accepted is acknowledged here, and nowhere else (invariant 3). A push whose end
stays unknown (time-out, failure of the service, crash) leaves its items unconfirmed: they are sent
again. A push that the service takes as a job is followed until it ends. The service remembers a job
for an hour after its last update; one that it knows no more is settled by the sync status: where
`last_synced_at` has moved since the job began, it succeeded. Specification: Menu sync job; Limits.

What the service has belongs to one integration of one store at one address. Only the menu lane
settles it, at the beginning of its round, so that nothing it pushed to an earlier storefront is
acknowledged afterwards.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.errors import Refused
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
from tillbridge.ledger.models import Push
from tillbridge.ledger.pushes import Kinship, Storefront
from tillbridge.menu.lane import MenuContext
from tillbridge.menu.plan import Step, portions
from tillbridge.service.types import PushAccepted

log = get_logger()

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
        lines = [json.dumps(["id", external_id]) for external_id in self.ids]
        for each in self.items:
            row = encode_accepted(each)
            lines.append(
                json.dumps(["item", row["body"], row["fingerprint"], row["pos_available"]])
            )
        for kind in PARTS:
            parts = getattr(self.parts, kind).values()
            lines += [json.dumps([kind, part_text(part)]) for part in parts]
        return "\n".join(lines)

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


@dataclass(frozen=True, slots=True)
class Reply:
    """The service's answer in one shape; `count` is how many items it took, None: unknown.

    The status of a job of which nobody can tell is "lost". `missing` are items that the service
    does not know.
    """

    status: str
    message: str = ""
    count: int | None = None
    missing: frozenset[str] = frozenset()


@asynccontextmanager
async def recorded(ctx: MenuContext, step: Step) -> AsyncIterator["PushRecord"]:
    """Record that the step is about to be sent; while it is, nobody else settles the record."""
    text = await asyncio.to_thread(PushContent(ids=step.ids).text)
    summary: dict[str, Any] = step.counts
    if step.kind == "patch":
        (item,) = step.items
        fields = sorted(step.fields)
        summary = {"item": item.external_id, "name": item.name, "fields": fields}
    at = ctx.clock.now_ms()
    record = PushRecord(ctx, await ctx.write(pushes.begin_push, step.kind, summary, text, at=at))
    ctx.calls.push_ids.add(record.id)
    try:
        yield record
    finally:
        ctx.calls.push_ids.discard(record.id)


@dataclass(frozen=True, slots=True)
class PushRecord:
    """A row of the ledger's pushes."""

    ctx: MenuContext
    id: int

    async def accepted(
        self,
        content: PushContent,
        state: str,
        message: str,
        also: Callable[[Connection], None] | None = None,
    ) -> None:
        """Acknowledge what the service accepted of it (and do `also`), and end the push."""
        at = self.ctx.clock.now_ms()
        *before, last = portions(content.items, PORTION) or [()]
        for portion in before:
            await self.ctx.write(menu.acknowledge_items, portion, at=at)

        def finish(connection: Connection, store: str) -> None:
            menu.acknowledge_items(connection, store, last, at=at)
            menu.acknowledge_parts(connection, store, content.parts, at=at)
            if content.ids:
                menu.forget_items(connection, store, content.ids, at=at)
                menu.clear_refusals(connection, store, content.ids)
            if also is not None:
                also(connection)
            pushes.end_push(connection, self.id, state, message, at=at)

        await self.ctx.write(finish)

    async def ended(self, state: str, message: str) -> None:
        """Record how it ended, of which nothing is acknowledged."""
        at = self.ctx.clock.now_ms()
        await self.ctx.ledger.write(
            lambda connection: pushes.end_push(connection, self.id, state, message, at=at)
        )

    async def unconfirmed(self, ids: Iterable[str], message: str, *, state: str = "lost") -> None:
        """Record that nobody knows what of these items the service has."""
        await mark_unconfirmed(self.ctx, list(ids))
        await self.ended(state, message)

    async def became_job(self, store_id: str, job: PushAccepted, content: PushContent) -> Reply:
        """Record that the push became a job, and return its end.

        Raises ServiceError where the service cannot be asked any more; the job is then resumed by
        the next round, or after a restart.
        """
        at = self.ctx.clock.now_ms()
        pending = await asyncio.to_thread(content.text)

        def remember(connection: Connection, store: str) -> None:
            pushes.push_became_job(
                connection, self.id, job_id=job.job_id, poll_url=job.poll_url, pending=pending
            )
            baseline = {"job_id": job.job_id, "synced_at": job.synced_before}
            put_fact(connection, store, _BASELINE, baseline, at=at)

        await self.ctx.write(remember)
        log.info("menu.job_started", store=self.ctx.store, job=job.job_id)
        return await follow_job(self.ctx, store_id, job.job_id, job.poll_url, at)


async def mark_unconfirmed(ctx: MenuContext, external_ids: Sequence[str]) -> None:
    """Record that nobody knows what the service has of these items."""
    for portion in portions(external_ids, PORTION):
        await ctx.write(menu.mark_unconfirmed, portion)


async def follow_job(
    ctx: MenuContext, store_id: str, job_id: str, poll_url: str, began: int
) -> Reply:
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
            state = "success" if job.status == "success" else "failed"
            log.info("menu.job_ended", store=ctx.store, job=job_id, state=state)
            return Reply(state, job.message, job.counts.items)
        await asyncio.sleep(ctx.job_poll_s)
    return Reply("lost", _("The service has not finished the menu push for hours."))


async def _by_sync_status(ctx: MenuContext, store_id: str, job_id: str, began: int) -> Reply:
    """Return by the sync status what became of a job that the service knows no more."""
    baseline = await ctx.read(get_fact, _BASELINE)
    synced = (await ctx.service.menu_status(store_id)).last_synced_at
    log.info("menu.job_settled", store=ctx.store, job=job_id, last_synced_at=synced)
    if baseline is not None and baseline["job_id"] == job_id and baseline["synced_at"]:
        began = baseline["synced_at"] + 1
    if synced is not None and synced >= began:
        return Reply("success")
    return Reply(
        "lost", _("The service no longer knows the menu push, and shows no sync since then.")
    )


# -- what has to be settled before a menu is compared


@dataclass(frozen=True, slots=True)
class Connected:
    """The storefront that the store is connected to, and its id there; None while it is to none.

    `whole_due`: only a full push brings ledger and storefront in line. `open_pushes` are those of
    which nobody knows the end.
    """

    now: Storefront | None
    store_id: str | None
    known: Storefront | None = None
    whole_due: bool = False
    open_pushes: Sequence[Push] = ()


def read_connected(connection: Connection, store: str, base_url: str) -> Connected:
    """Return what is to be settled."""
    now = pushes.current_storefront(connection, store, base_url)
    return Connected(
        now,
        None if now is None else now.store_id,
        pushes.remembered_storefront(connection, store, pushes.MENU),
        pushes.is_whole_due(connection, store),
        pushes.running_pushes(connection, store),
    )


async def settle_storefront(ctx: MenuContext) -> Connected:
    """Bring what the ledger remembers of the menu in line with the storefront it belongs to.

    At another store or another address the accepted menu is forgotten: it never had any of it. A
    new integration of the same store may have kept it or lost it: every item is sent again, and the
    guard still compares with it.
    """
    found = await ctx.read(read_connected, ctx.base_url)
    # At once, because a push that this process carries out may end at any moment.
    stale = [each for each in found.open_pushes if each.id not in ctx.calls.push_ids]
    found = replace(found, open_pushes=stale)
    now = found.now
    if now is None or found.known == now:
        return found
    relation = pushes.kinship(found.known, now)
    at = ctx.clock.now_ms()
    if relation is not Kinship.SAME:
        ids = sorted(await ctx.read(menu.all_ids))
        log.warning("menu.storefront_changed", store=ctx.store, what=relation.value, items=len(ids))
        if relation is Kinship.OTHER:
            for portion in portions(ids, PORTION):
                await ctx.write(menu.forget_items, portion, at=at)
        else:
            await mark_unconfirmed(ctx, ids)
        parts, pending = relation is Kinship.OTHER, max(1, len(ids))
        await ctx.write(pushes.begin_anew, parts=parts, pending=pending, at=at)
        found = replace(found, whole_due=True, open_pushes=())
    await ctx.write(pushes.remember_storefront, pushes.MENU, now, at=at)
    return found


async def settle_open_pushes(ctx: MenuContext, connected: Connected) -> bool:
    """Settle the pushes whose end nobody knows: the bridge stopped, or the service was away.

    A job is followed on. What any other push carried is unconfirmed. Returns whether there were
    any. Raises ServiceError.
    """
    if connected.store_id is not None:
        for push in connected.open_pushes:
            await _settle_push(ctx, connected.store_id, push)
    return connected.store_id is not None and bool(connected.open_pushes)


async def _settle_push(ctx: MenuContext, store_id: str, push: Push) -> None:
    state, message = "lost", ""
    if push.job_id is not None:
        log.info("menu.job_resumed", store=ctx.store, job=push.job_id)
        end = await follow_job(ctx, store_id, push.job_id, push.poll_url or "", push.started_at)
        state, message = end.status, end.message
        if end.count is not None and end.count < push.summary.get("items", 0):
            state = "lost"  # some items were refused: pushing again finds which
    text = await ctx.ledger.read(lambda connection: pushes.pending_of(connection, push.id))
    content = await asyncio.to_thread(PushContent.of_text, text or "")
    record, at = PushRecord(ctx, push.id), ctx.clock.now_ms()
    if state == "success":
        await record.accepted(
            replace(content, ids=()),
            state,
            message,
            lambda connection: put_fact(connection, ctx.store, "last_synced_at", at, at=at),
        )
    else:
        await record.unconfirmed(content.all_ids, message, state=state)
    log.info("menu.push_settled", store=ctx.store, kind=push.kind, state=state)
