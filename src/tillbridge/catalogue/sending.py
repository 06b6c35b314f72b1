"""One call of a plan: written down, sent, and acknowledged in the ledger when it was accepted.

The push is written down before it is sent. Where its outcome stays unknown (time-out, failure of
the service, crash), what it told is doubtful and is told again (invariant 3).
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection

from tillbridge.catalogue import codec
from tillbridge.catalogue.compare import Record
from tillbridge.catalogue.digest import ContentDigest
from tillbridge.catalogue.in_flight import InFlight
from tillbridge.catalogue.jobs import JobEnd, Jobs
from tillbridge.catalogue.narrowing import ids_of, named_in, only
from tillbridge.catalogue.pending import Pending, pending_text
from tillbridge.catalogue.plan import (
    PatchItem,
    PushBatch,
    PushFull,
    SetAvailability,
    Step,
    menus_of,
)
from tillbridge.catalogue.ports import CatalogueService
from tillbridge.clock import Clock
from tillbridge.errors import OutcomeUnknown, Refused, ServiceDown, ServiceError
from tillbridge.ledger import holds, menu, pushes
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu_refused import forgive_items
from tillbridge.ledger.menu_rows import AcceptedItem
from tillbridge.model.catalogue import Item
from tillbridge.service.types import PushAccepted

T = TypeVar("T")

ITEM_NOT_FOUND = "menu.item_not_found"
_BODY_REFUSED = frozenset({400, 413, 422})
_INCOMPLETE = frozenset({"partial", "failed", "error"})

PORTION = 1000  # items acknowledged in one commit: a delivery must not wait long for its own


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a call.

    `refused` means that nothing of it was taken; `partial` that some of it was not, of which
    `named` are known by name (the rest is acknowledged), or that nobody can tell which (none are).
    `missing` are items that the service does not know.
    """

    verdict: Literal["taken", "partial", "refused"]
    message: str = ""
    named: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Reply:
    """The service's answer in one shape; `count` is how many items it took, None: not told."""

    status: str
    message: str
    count: int | None = None
    missing: frozenset[str] = frozenset()


class Sender:
    """Sends single steps for one store and acknowledges what was accepted."""

    def __init__(
        self,
        ledger: Ledger,
        service: CatalogueService,
        jobs: Jobs,
        store: str,
        *,
        clock: Clock,
        in_flight: InFlight,
    ) -> None:
        self._ledger = ledger
        self._service = service
        self._jobs = jobs
        self._store = store
        self._clock = clock
        self._in_flight = in_flight

    async def send_menu(
        self,
        store_id: str,
        step: Step,
        records: Mapping[str, Record],
        left: ContentDigest | None = None,
    ) -> Sent:
        """Send a step of a menu plan. Raises ServiceError or JobLost where it was not answered.

        `left` is the digest of the plan's difference: an approval is carried over to what is left.
        """
        ids = ids_of(step)
        with self._in_flight.menu(ids):
            return await self._send_menu(store_id, step, records, left)

    async def _send_menu(
        self,
        store_id: str,
        step: Step,
        records: Mapping[str, Record],
        left: ContentDigest | None,
    ) -> Sent:
        async with self._written_down(step) as push_id:
            reply = await self._exchange(store_id, push_id, step, records)
            if isinstance(reply, Sent):
                return reply
            sent = _judge(reply, step)
            taken = _taken(step, sent)
            if taken is not None:
                await self._acknowledge(taken, records)
                await self._carry_approval(ids_of(taken), left)
            await self._end(push_id, sent.verdict, reply.message)
            return sent

    async def send_availability(self, store_id: str, step: SetAvailability) -> Sent:
        """Send an availability call of its own lane; what a menu call tells meanwhile clashes.

        The clashing items come back as `named`, and are not acknowledged.
        """
        ids = ids_of(step)
        with self._in_flight.availability(ids) as clashed:
            return await self._send_availability(store_id, step, clashed)

    async def _send_availability(
        self, store_id: str, step: SetAvailability, clashed: AbstractSet[str]
    ) -> Sent:
        async with self._written_down(step) as push_id:
            reply = await self._exchange(store_id, push_id, step, {})
            if isinstance(reply, Sent):
                return reply
            told = {
                each.external_id: each
                for each in step.items
                if each.external_id not in reply.missing and each.external_id not in clashed
            }
            await self._ledger.write(
                lambda connection: _availability(connection, self._store, told)
            )
            await self._end(push_id, "taken", reply.message)
            return Sent("taken", reply.message, frozenset(clashed), reply.missing)

    async def acknowledge_availability(self, items: Sequence[Item]) -> None:
        """Write down availability that the service has changed by itself."""
        told = {each.external_id: each for each in items}
        await self._ledger.write(lambda connection: _availability(connection, self._store, told))

    # -- the call

    async def _exchange(
        self, store_id: str, push_id: int, step: Step, records: Mapping[str, Record]
    ) -> _Reply | Sent:
        try:
            return await self._call(store_id, push_id, step, records)
        except Refused as failure:
            await self._end(push_id, "refused", failure.text)
            if failure.code == ITEM_NOT_FOUND:
                missing = named_in(failure.text, step) or ids_of(step)
                return Sent("refused", failure.text, missing=missing)
            if failure.status in _BODY_REFUSED:
                return Sent("refused", failure.text, named_in(failure.text, step))
            raise
        except (OutcomeUnknown, ServiceDown) as failure:
            await self._doubt(push_id, ids_of(step), failure.text)
            raise
        except ServiceError as failure:
            await self._end(push_id, "refused", failure.text)
            raise

    async def _call(
        self, store_id: str, push_id: int, step: Step, records: Mapping[str, Record]
    ) -> _Reply | Sent:
        match step:
            case PushFull():
                return await self._push_full(store_id, push_id, step, records)
            case PushBatch():
                body = await asyncio.to_thread(_batch_body, step)
                batch = await self._service.batch(store_id, body)
                counts = [batch.added, batch.updated, batch.deleted]
                told = [each for each in counts if each is not None]
                return _Reply(batch.status, batch.message, sum(told) if told else None)
            case PatchItem():
                body = codec.patch_body(step.item, step.before, step.fields)
                patch = await self._service.patch_item(store_id, step.item.external_id, body)
                return _Reply(patch.status, patch.message)
            case SetAvailability():
                items = codec.availability_bodies(step.items)
                answer = await self._service.set_availability(store_id, items)
                missing = frozenset(answer.not_found) & ids_of(step)
                return _Reply("success", answer.message, missing=missing)

    async def _push_full(
        self, store_id: str, push_id: int, step: PushFull, records: Mapping[str, Record]
    ) -> _Reply | Sent:
        body = await asyncio.to_thread(lambda: codec.menus_body(menus_of(step)))
        answer = await self._service.push_menus(store_id, body)
        if not isinstance(answer, PushAccepted):
            return _Reply(answer.status, answer.message, answer.counts.items)
        text = await asyncio.to_thread(lambda: pending_text(_pending(step, records)))
        end = await self._jobs.follow_new(store_id, push_id, answer, text)
        if end.state == "success":
            whole = end.items is None or end.items >= len(step.items)
            return _Reply("success" if whole else "partial", end.message, end.items)
        await self._doubt(push_id, ids_of(step), end.message, state=end.state)
        if end.state == "lost":
            raise JobLost(end)
        return Sent("refused", end.message, named_in(end.message, step))

    # -- the ledger

    @asynccontextmanager
    async def _written_down(self, step: Step) -> AsyncIterator[int]:
        """Write down that the step is about to be sent; yields the push's id."""
        kind, summary = _described(step)
        at = self._clock.now_ms()
        told = Pending(ids=tuple(ids_of(step)))
        text = await asyncio.to_thread(pending_text, told)
        push_id = await self._ledger.write(
            lambda connection: pushes.begin_push(
                connection, self._store, kind, summary, text, at=at
            )
        )
        self._in_flight.pushes.add(push_id)
        try:
            yield push_id
        finally:
            self._in_flight.pushes.discard(push_id)

    async def _end(self, push_id: int, verdict: str, message: str) -> None:
        state = {"taken": "success", "partial": "partial", "refused": "failed"}[verdict]
        at = self._clock.now_ms()
        await self._ledger.write(
            lambda connection: pushes.end_push(connection, push_id, state, message, at=at)
        )

    async def _doubt(
        self, push_id: int, ids: AbstractSet[str], message: str, *, state: str = "lost"
    ) -> None:
        at = self._clock.now_ms()
        for portion in portions(list(ids), PORTION):
            await self._ledger.write(partial(doubt_items, self._store, portion))
        await self._ledger.write(
            lambda connection: pushes.end_push(connection, push_id, state, message, at=at)
        )

    async def _carry_approval(self, taken: AbstractSet[str], left: ContentDigest | None) -> None:
        if left is None:
            return
        left.accepted(taken)
        digest = left.text
        await self._ledger.write(
            lambda connection: (
                holds.carry_approval(connection, self._store, digest)
                if digest
                else holds.drop_hold(connection, self._store)
            )
        )

    async def _acknowledge(self, step: Step, records: Mapping[str, Record]) -> None:
        if isinstance(step, SetAvailability):
            items = {each.external_id: each for each in step.items}
            await self._ledger.write(
                lambda connection: _with_records(connection, self._store, items, records)
            )
            return
        told = await asyncio.to_thread(_pending, step, records)
        await acknowledge(self._ledger, self._store, told, at=self._clock.now_ms())


class JobLost(Exception):
    """The service no longer knows the job, and shows no sync since it began."""

    def __init__(self, end: JobEnd) -> None:
        super().__init__(end.message)
        self.text = end.message


async def acknowledge(ledger: Ledger, store: str, told: Pending, *, at: int) -> None:
    """Write down what the service accepted: `told.ids` are removed, items and parts are there."""
    for portion in portions(told.items, PORTION):
        await ledger.write(partial(_acknowledge_items, store, portion, at))

    def rest(connection: Connection) -> None:
        menu.acknowledge_parts(connection, store, told.parts, at=at)
        menu.forget_items(connection, store, told.ids)
        forgive_items(connection, store, told.ids)

    await ledger.write(rest)


def portions(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values in portions of at most `size`."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _judge(reply: _Reply, step: Step) -> Sent:
    if reply.status not in _INCOMPLETE:
        return Sent("taken", reply.message, missing=reply.missing)
    named = named_in(reply.message, step)
    told = len(ids_of(step))
    if reply.count is not None and reply.count == told:
        return Sent("taken", reply.message)  # what was not taken is no item
    if named and reply.count is not None and reply.count != told - len(named):
        named = frozenset()  # the message does not name them all
    return Sent("partial", reply.message, named)


def _taken(step: Step, sent: Sent) -> Step | None:
    """Return what of the step is to be acknowledged."""
    if sent.verdict == "taken":
        return only(step, ids_of(step) - sent.missing) if sent.missing else step
    if sent.verdict == "partial" and sent.named and sent.named != ids_of(step):
        return only(step, ids_of(step) - sent.named)
    return None


def _accepted(items: Sequence[Item], records: Mapping[str, Record]) -> Iterator[AcceptedItem]:
    for item in items:
        record = records[item.external_id]
        yield AcceptedItem.of(item, record.from_export, record.fingerprint)


def _availability(connection: Connection, store: str, told: Mapping[str, Item]) -> None:
    """Acknowledge availability alone: where the items come from stays as it is."""
    known = menu.items_by_id(connection, store, told)
    menu.refresh_items(
        connection,
        store,
        [
            replace(each, item=_with_availability(each.item, told[external_id]))
            for external_id, each in known.items()
        ],
    )


def _with_records(
    connection: Connection, store: str, told: Mapping[str, Item], records: Mapping[str, Record]
) -> None:
    """Acknowledge availability told from a reading of the export.

    Where other changes of the item still wait, its record is left open, so that each reading
    tells it anew.
    """
    accepted = []
    for external_id, known in menu.items_by_id(connection, store, told).items():
        item, record = told[external_id], records[external_id]
        if _with_availability(known.item, item) == item:
            now = AcceptedItem.of(item, record.from_export, record.fingerprint)
        else:
            said = _with_availability(known.pos_item, record.from_export)
            now = AcceptedItem.of(_with_availability(known.item, item), said, None)
        accepted.append(replace(now, doubtful=known.doubtful))
    menu.refresh_items(connection, store, accepted)


def _with_availability(item: Item, other: Item) -> Item:
    return replace(item, available=other.available, snooze_until=other.snooze_until)


def _batch_body(step: PushBatch) -> codec.Body:
    updates = [(each, step.before.get(each.external_id)) for each in step.update]
    return codec.batch_body(step.add, updates, step.delete, step.parts)


def _described(step: Step) -> tuple[str, dict[str, Any]]:
    match step:
        case PushFull():
            return "full", {"items": len(step.items), "menus": len(step.menus)}
        case PushBatch():
            counts = {"add": len(step.add), "update": len(step.update), "delete": len(step.delete)}
            return "batch", counts
        case PatchItem():
            return "patch", {"item": step.item.external_id, "fields": sorted(step.fields)}
        case SetAvailability():
            return "availability", {"items": len(step.items)}


def _pending(step: PushFull | PushBatch | PatchItem, records: Mapping[str, Record]) -> Pending:
    """Return what is acknowledged once the step is accepted."""
    match step:
        case PushFull():
            return Pending((), tuple(_accepted(step.items, records)), step.parts)
        case PushBatch():
            items = (*step.add, *step.update)
            return Pending(step.delete, tuple(_accepted(items, records)), step.parts)
        case PatchItem():
            return Pending((), tuple(_accepted((step.item,), records)))


def _acknowledge_items(
    store: str, accepted: Sequence[AcceptedItem], at: int, connection: Connection
) -> None:
    menu.acknowledge_items(connection, store, accepted, at=at)


def doubt_items(store: str, external_ids: Sequence[str], connection: Connection) -> None:
    """Mark a portion of items whose state at the service is unknown (a job for the writer)."""
    menu.doubt_items(connection, store, external_ids)
