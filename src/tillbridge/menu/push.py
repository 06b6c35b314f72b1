"""Push a plan: step after step, each acknowledged as soon as the service accepted it.

Each call is recorded before it is sent (`PushRecord`). A step that is refused is narrowed down to
the items it is refused for; the others go through. An item counts as refused only when it was
refused by itself while something else of the same plan was taken: a service that refuses everything
says nothing about a single item.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.menu import codec
from tillbridge.menu.assess import Assessment
from tillbridge.menu.compare import Record
from tillbridge.menu.context import MenuContext
from tillbridge.menu.diff import ContentDigest
from tillbridge.menu.narrowing import (
    Reply,
    Sent,
    divide,
    ids_of,
    judge,
    lacking_in,
    named_in,
    only,
    singly,
    taken_of,
)
from tillbridge.menu.plan import (
    PatchItem,
    PushBatch,
    PushFull,
    SetAvailability,
    Step,
    menus_of,
)
from tillbridge.menu.precedence import (
    apply_latest_availability,
    availability_in,
    availability_of,
)
from tillbridge.menu.push_record import JobLost, PushContent, PushRecord
from tillbridge.model.catalogue import Item
from tillbridge.service.types import PushAccepted

log = get_logger()

MOST_CALLS = 80  # while narrowing one step down
ITEM_NOT_FOUND = "menu.item_not_found"
_BODY_REFUSED = frozenset({400, 413, 422})
_REFERENCE_REFUSED = frozenset({400, 404, 422})
Records = Mapping[str, Record]

_STATES = {"taken": "success", "partial": "partial", "refused": "failed"}


@dataclass(slots=True)
class PushResult:
    """What came of a plan.

    `drifted` are items that the service turned out not to know. `failure` is why something of the
    plan was not taken, in words ("" if all was taken or is refused item by item). `reservation` is
    what the service did not take of items that it did, in its words. `lacks`: it was refused for
    something that the service has taken before and does not know now.
    """

    taken: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    failure: str = ""
    reservation: str = ""
    lacks: bool = False


async def push(ctx: MenuContext, store_id: str, assessment: Assessment) -> PushResult:
    """Carry the plan out; an approval stands for what is left of it.

    Raises ServiceError or JobLost; what was accepted until then stays acknowledged.
    """
    left = None
    if assessment.approved:
        left = await asyncio.to_thread(ContentDigest, assessment.comparison.changes)
    pusher = Pusher(ctx, store_id, assessment.comparison.records, left)
    for step in assessment.plan.steps:
        await pusher.push_step(step)
    await pusher.record_refusals()
    return pusher.result


async def send_availability(ctx: MenuContext, store_id: str, items: Sequence[Item]) -> Sent:
    """Send an availability call of its own lane, whose turn it is.

    Items of which a menu call under way carries another availability come back as `named`, and are
    not acknowledged.
    """
    step = SetAvailability(tuple(items))
    with ctx.calls.availability(availability_in(step)) as clashed:
        async with _recorded(ctx, step) as record:
            reply = await Pusher(ctx, store_id).exchange(record, step)
            if isinstance(reply, Sent):
                return reply
            left_out = reply.missing | clashed
            sent = {each.external_id: each for each in items if each.external_id not in left_out}
            at = ctx.clock.now_ms()
            await record.accepted(
                PushContent(),
                "success",
                reply.message,
                lambda connection: acknowledge_availability(connection, ctx.store, sent, at=at),
            )
            ctx.calls.sent.update((key, availability_of(each)) for key, each in sent.items())
            return Sent("taken", reply.message, frozenset(clashed), reply.missing)


@dataclass(slots=True)
class Pusher:
    """Carries out one plan. `left` is the digest of what is left of an approved difference."""

    ctx: MenuContext
    store_id: str
    records: Records = field(default_factory=dict)
    left: ContentDigest | None = None
    result: PushResult = field(default_factory=PushResult)

    async def push_step(self, step: Step) -> None:
        """Send the step, divided as often as it takes to find what is refused."""
        wanted = ids_of(step) - self.result.refused.keys()
        if self.result.lacks or (ids_of(step) and not wanted):
            return
        if wanted != ids_of(step):
            step = only(step, wanted)
        queue: deque[Step] = deque([step])
        blamed: dict[str, str] = {}
        result, taken, repeated = self.result, False, False
        for _call_number in range(MOST_CALLS):
            if not queue:
                break
            part = queue.popleft()
            sent = await self.send_step(part)
            result.drifted |= sent.missing
            taken |= sent.verdict != "refused" or bool(sent.missing)
            if sent.reserved:
                result.reservation = sent.message or _("it does not say what.")
            if sent.verdict == "taken" or sent.missing:
                result.taken += len(ids_of(part) - sent.missing)
                continue
            if sent.again and not repeated:
                repeated = True  # a failed job: the whole menu once more
                queue.appendleft(part)
                continue
            result.failure = result.failure or sent.message
            if sent.lacks:  # no item is to blame
                result.lacks = True
                return
            if smaller := _smaller(part, sent):
                queue.extendleft(reversed(smaller))
            else:
                blamed |= dict.fromkeys(ids_of(part), sent.message)
        if queue:
            result.failure = result.failure or _("Too much of the menu is refused.")
        elif blamed and (taken or result.taken or len(ids_of(step)) == 1):
            self._blame(step, blamed)

    def _blame(self, step: Step, blamed: Mapping[str, str]) -> None:
        undeletable = step.delete if isinstance(step, PushBatch) else ()
        result = self.result
        result.refused |= {key: why for key, why in blamed.items() if key not in undeletable}
        if result.refused and not blamed.keys() & set(undeletable):
            result.failure = ""

    async def record_refusals(self) -> None:
        """Record what the service refused item by item: it is not sent again as it is."""
        refusals = {
            key: menu.Refusal(
                self.records[key].fingerprint or 0, why, self.records[key].from_export.name
            )
            for key, why in self.result.refused.items()
            if key in self.records
        }
        if refusals:
            log.warning("menu.refused", store=self.ctx.store, items=len(refusals))
            at = self.ctx.clock.now_ms()
            await self.ctx.write(menu.refuse_items, refusals, at=at)

    async def send_step(self, step: Step) -> Sent:
        """Send a step. Raises ServiceError or JobLost where it was not answered.

        What the availability lane sent since the plan was made is in it; where that is all the step
        carries, nothing is sent.
        """
        calls = self.ctx.calls
        with ExitStack() as under_way:
            async with calls.turn:
                step = apply_latest_availability(step, calls.sent)
                if isinstance(step, SetAvailability):
                    return await self._send_unsent(step)
                carried = await asyncio.to_thread(availability_in, step)
                under_way.enter_context(calls.menu(carried))
            return await self._send(step)

    async def _send_unsent(self, step: SetAvailability) -> Sent:
        """Acknowledge what the availability lane has sent already, and send the rest."""
        sent, at = self.ctx.calls.sent, self.ctx.clock.now_ms()
        already = {each.external_id: each for each in step.items if each.external_id in sent}
        if already:
            await self.ctx.write(acknowledge_read_availability, already, self.records, at=at)
        rest = tuple(each for each in step.items if each.external_id not in already)
        return await self._send(SetAvailability(rest)) if rest else Sent("taken")

    async def _send(self, step: Step) -> Sent:
        async with _recorded(self.ctx, step) as record:
            reply = await self.exchange(record, step)
            if isinstance(reply, Sent):
                return reply
            sent = judge(reply, step)
            await self._acknowledge(record, taken_of(step, sent), sent.verdict, reply.message)
            return sent

    async def _acknowledge(
        self, record: PushRecord, taken: Step | None, verdict: str, message: str
    ) -> None:
        """Acknowledge what was taken of a step; an approval stands for what is left of its plan."""
        store, left, content, at = self.ctx.store, self.left, PushContent(), self.ctx.clock.now_ms()
        if taken is not None and not isinstance(taken, SetAvailability):
            content = await asyncio.to_thread(content_of, taken, self.records)
        if taken is not None and left is not None:
            left.accepted(ids_of(taken))

        def also(connection: Connection) -> None:
            if isinstance(taken, SetAvailability):
                items = {each.external_id: each for each in taken.items}
                acknowledge_read_availability(connection, store, items, self.records, at=at)
            if taken is None or left is None:
                return
            if left.text:
                pushes.carry_approval(connection, store, left.text)
            else:
                pushes.drop_hold(connection, store)

        await record.accepted(content, _STATES[verdict], message, also)

    async def exchange(self, record: PushRecord, step: Step) -> Reply | Sent:
        """Make the call; where nothing of it is to be acknowledged, its record has ended."""
        try:
            return await self._call(record, step)
        except Refused as failure:
            await record.refused(failure.text)
            if failure.code == ITEM_NOT_FOUND:
                missing = named_in(failure.text, step) or ids_of(step)
                return Sent("refused", failure.text, missing=missing)
            if failure.status in _REFERENCE_REFUSED and lacking_in(failure.text, step):
                return Sent("refused", failure.text, lacks=True)
            if failure.status in _BODY_REFUSED:
                return Sent("refused", failure.text, named_in(failure.text, step))
            raise
        except (OutcomeUnknown, ServiceDown) as failure:
            await record.unconfirmed(ids_of(step), failure.text)
            raise
        except ServiceError as failure:
            await record.refused(failure.text)
            raise

    async def _call(self, record: PushRecord, step: Step) -> Reply | Sent:
        service, store_id = self.ctx.service, self.store_id
        match step:
            case PushFull():
                return await self._call_full(record, step)
            case PushBatch():
                updates = [(each, step.before.get(each.external_id)) for each in step.update]
                body = await asyncio.to_thread(
                    codec.batch_body, step.add, updates, step.delete, step.parts
                )
                batch = await service.batch(store_id, body)
                counts = [batch.added, batch.updated, batch.deleted]
                known = [each for each in counts if each is not None]
                return Reply(batch.status, batch.message, sum(known) if known else None)
            case PatchItem():
                body = codec.patch_body(step.item, step.before, step.fields)
                patch = await service.patch_item(store_id, step.item.external_id, body)
                return Reply(patch.status, patch.message)
            case SetAvailability():
                items = codec.availability_bodies(step.items)
                answer = await service.set_availability(store_id, items)
                missing = frozenset(answer.not_found) & ids_of(step)
                return Reply("success", answer.message, missing=missing)

    async def _call_full(self, record: PushRecord, step: PushFull) -> Reply | Sent:
        body = await asyncio.to_thread(lambda: codec.menus_body(menus_of(step)))
        answer = await self.ctx.service.push_menus(self.store_id, body)
        if not isinstance(answer, PushAccepted):
            return Reply(answer.status, answer.message, answer.counts.items)
        content = await asyncio.to_thread(content_of, step, self.records)
        end = await record.became_job(self.store_id, answer, content)
        if end.state == "success":
            whole = end.items is None or end.items >= len(step.items)
            return Reply("success" if whole else "partial", end.message, end.items)
        await record.unconfirmed(ids_of(step), end.message, state=end.state)
        if end.state == "lost":
            raise JobLost(end)
        return Sent("refused", end.message, named_in(end.message, step), again=True)


def _smaller(part: Step, sent: Sent) -> tuple[Step, ...]:
    """Return what to send next for a part that was not taken whole."""
    if sent.verdict == "partial" and sent.named and sent.named != ids_of(part):
        return singly(part, sent.named)  # the rest was taken
    return divide(part, sent.named)


@asynccontextmanager
async def _recorded(ctx: MenuContext, step: Step) -> AsyncIterator[PushRecord]:
    """Record that the step is about to be sent; while it is, nobody else settles the record."""
    kind, summary = _described(step)
    record = await PushRecord.begin(ctx, kind, summary, ids_of(step))
    ctx.calls.push_ids.add(record.id)
    try:
        yield record
    finally:
        ctx.calls.push_ids.discard(record.id)


def _described(step: Step) -> tuple[str, dict[str, Any]]:
    match step:
        case PushFull():
            return "full", {"items": len(step.items), "menus": len(step.menus)}
        case PushBatch():
            counts = {"add": len(step.add), "update": len(step.update), "delete": len(step.delete)}
            return "batch", counts
        case PatchItem():
            summary = {"item": step.item.external_id, "name": step.item.name}
            return "patch", {**summary, "fields": sorted(step.fields)}
        case SetAvailability():
            return "availability", {"items": len(step.items)}


# -- what is acknowledged


def content_of(step: PushFull | PushBatch | PatchItem, records: Records) -> PushContent:
    """Return what is acknowledged once the step is accepted."""
    match step:
        case PushFull():
            return PushContent((), tuple(_accepted(step.items, records)), step.parts)
        case PushBatch():
            items = (*step.add, *step.update)
            return PushContent(step.delete, tuple(_accepted(items, records)), step.parts)
        case PatchItem():
            return PushContent((), tuple(_accepted((step.item,), records)))


def _accepted(items: Sequence[Item], records: Records) -> Iterator[AcceptedItem]:
    for item in items:
        record = records[item.external_id]
        yield AcceptedItem.of(item, record.from_export, record.fingerprint)


def acknowledge_availability(
    connection: Connection, store: str, sent: Mapping[str, Item], *, at: int
) -> None:
    """Acknowledge availability alone: where the items come from stays as it is."""
    accepted = [
        replace(known, item=_with_availability(known.item, sent[external_id]))
        for external_id, known in menu.items_by_id(connection, store, sent).items()
    ]
    menu.change_items(connection, store, accepted, at=at)


def acknowledge_read_availability(
    connection: Connection,
    store: str,
    sent: Mapping[str, Item],
    records: Records,
    *,
    at: int,
) -> None:
    """Acknowledge availability that a reading of the export gave.

    Where other changes of the item still wait, its record is left open, so that each reading
    finds it anew.
    """
    accepted = []
    for external_id, known in menu.items_by_id(connection, store, sent).items():
        item, record = sent[external_id], records[external_id]
        if _with_availability(known.item, item) == item:
            now = AcceptedItem.of(item, record.from_export, record.fingerprint)
        else:
            in_export = _with_availability(known.pos_item, record.from_export)
            now = AcceptedItem.of(_with_availability(known.item, item), in_export, None)
        accepted.append(replace(now, doubtful=known.doubtful))
    menu.change_items(connection, store, accepted, at=at)


def _with_availability(item: Item, other: Item) -> Item:
    return replace(item, available=other.available, snooze_until=other.snooze_until)
