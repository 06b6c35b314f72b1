"""What has to be settled before a menu is compared: whose menu the ledger knows, and open pushes.

What the service has belongs to one integration of one store at one address. Only the menu lane
settles it, at the beginning of its round, so that nothing it pushed to an earlier storefront is
acknowledged afterwards.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes, storefront
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.models import Push
from tillbridge.ledger.storefront import Kinship, Storefront
from tillbridge.menu.context import MenuContext
from tillbridge.menu.push_record import (
    PORTION,
    PushContent,
    PushRecord,
    follow_job,
    mark_unconfirmed,
    portions,
)

log = get_logger()


@dataclass(frozen=True, slots=True)
class Connected:
    """The storefront that the store is connected to; None while it is to none.

    `whole_due`: only a full push brings ledger and storefront in line. `open_pushes` are those of
    which nobody knows the end.
    """

    now: Storefront | None
    known: Storefront | None = None
    whole_due: bool = False
    open_pushes: Sequence[Push] = ()

    @property
    def store_id(self) -> str | None:
        """The store's id at the service."""
        return None if self.now is None else self.now.store_id


def read_connected(connection: Connection, store: str, base_url: str) -> Connected:
    """Return what is to be settled."""
    return Connected(
        storefront.current_storefront(connection, store, base_url),
        storefront.remembered_storefront(connection, store, storefront.MENU),
        storefront.is_whole_due(connection, store),
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
    relation = storefront.kinship(found.known, now)
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
        await ctx.write(storefront.begin_anew, parts=parts, pending=pending, at=at)
        found = replace(found, whole_due=True, open_pushes=())
    await ctx.write(storefront.remember_storefront, storefront.MENU, now, at=at)
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
        state, message = end.state, end.message
        if end.items is not None and end.items < push.summary.get("items", 0):
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
