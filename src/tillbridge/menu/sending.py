"""One call of a plan: written down, sent, and acknowledged in the ledger when it was accepted.

The push is written down before it is sent. Where its outcome stays unknown (time-out, failure of
the service, crash), what it told is doubtful and is told again (invariant 3).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, OutcomeUnknown, Refused, ServiceDown, ServiceError
from tillbridge.ledger import pushes
from tillbridge.ledger.ledger import Ledger
from tillbridge.menu import codec
from tillbridge.menu.acknowledging import (
    acknowledge,
    availability_read,
    availability_told,
    doubt,
    pending_of,
)
from tillbridge.menu.compare import Record
from tillbridge.menu.diff import ContentDigest
from tillbridge.menu.jobs import JobEnd, Jobs
from tillbridge.menu.narrowing import Reply, Sent, ids_of, judge, lacking_in, named_in, taken_of
from tillbridge.menu.pending import Pending, pending_text
from tillbridge.menu.plan import (
    PatchItem,
    PushBatch,
    PushFull,
    SetAvailability,
    Step,
    menus_of,
)
from tillbridge.menu.ports import CatalogueService
from tillbridge.menu.precedence import (
    InFlight,
    apply_latest_availability,
    availability_in,
    availability_of,
)
from tillbridge.model.catalogue import Item
from tillbridge.service.types import PushAccepted

ITEM_NOT_FOUND = "menu.item_not_found"
_BODY_REFUSED = frozenset({400, 413, 422})
_REFERENCE_REFUSED = frozenset({400, 404, 422})


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

        What the availability lane told since the plan was made is said in its words; where that is
        all the step says, nothing is sent.
        `left` is the digest of the plan's difference: an approval is carried over to what is left.
        """
        with ExitStack() as under_way:
            async with self._in_flight.turn:
                step = apply_latest_availability(step, self._in_flight.told)
                if isinstance(step, SetAvailability):
                    return await self._send_what_is_left(store_id, step, records, left)
                words = await asyncio.to_thread(availability_in, step)
                under_way.enter_context(self._in_flight.menu(words))
            return await self._send_menu(store_id, step, records, left)

    async def _send_what_is_left(
        self,
        store_id: str,
        step: SetAvailability,
        records: Mapping[str, Record],
        left: ContentDigest | None,
    ) -> Sent:
        """Acknowledge what the availability lane has told already, and send the rest."""
        told = self._in_flight.told.keys() & ids_of(step)
        if told:
            already = tuple(each for each in step.items if each.external_id in told)
            await self._acknowledge(SetAvailability(already), records)
        rest = tuple(each for each in step.items if each.external_id not in told)
        if not rest:
            return Sent("taken")
        return await self._send_menu(store_id, SetAvailability(rest), records, left)

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
            sent = judge(reply, step)
            taken = taken_of(step, sent)
            if taken is not None:
                await self._acknowledge(taken, records)
                await self._carry_approval(ids_of(taken), left)
            await self._end(push_id, sent.verdict, reply.message)
            return sent

    async def send_availability(self, store_id: str, step: SetAvailability) -> Sent:
        """Send an availability call of its own lane, whose turn it is.

        What a menu call tells meanwhile, and otherwise, clashes.
        The clashing items come back as `named`, and are not acknowledged.
        """
        with self._in_flight.availability(availability_in(step)) as clashed:
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
            at = self._clock.now_ms()
            await self._ledger.write(
                lambda connection: availability_told(connection, self._store, told, at=at)
            )
            self._in_flight.told.update((key, availability_of(each)) for key, each in told.items())
            await self._end(push_id, "taken", reply.message)
            return Sent("taken", reply.message, frozenset(clashed), reply.missing)

    async def acknowledge_availability(self, items: Sequence[Item]) -> None:
        """Write down availability that the service has changed by itself."""
        told = {each.external_id: each for each in items}
        at = self._clock.now_ms()
        await self._ledger.write(
            lambda connection: availability_told(connection, self._store, told, at=at)
        )

    # -- the call

    async def _exchange(
        self, store_id: str, push_id: int, step: Step, records: Mapping[str, Record]
    ) -> Reply | Sent:
        try:
            return await self._call(store_id, push_id, step, records)
        except Refused as failure:
            await self._end(push_id, "refused", failure.text)
            if failure.code == ITEM_NOT_FOUND:
                missing = named_in(failure.text, step) or ids_of(step)
                return Sent("refused", failure.text, missing=missing)
            if failure.status in _REFERENCE_REFUSED and lacking_in(failure.text, step):
                return Sent("refused", failure.text, lacks=True)
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
    ) -> Reply | Sent:
        match step:
            case PushFull():
                return await self._push_full(store_id, push_id, step, records)
            case PushBatch():
                body = await asyncio.to_thread(_batch_body, step)
                batch = await self._service.batch(store_id, body)
                counts = [batch.added, batch.updated, batch.deleted]
                told = [each for each in counts if each is not None]
                return Reply(batch.status, batch.message, sum(told) if told else None)
            case PatchItem():
                body = codec.patch_body(step.item, step.before, step.fields)
                patch = await self._service.patch_item(store_id, step.item.external_id, body)
                return Reply(patch.status, patch.message)
            case SetAvailability():
                items = codec.availability_bodies(step.items)
                answer = await self._service.set_availability(store_id, items)
                missing = frozenset(answer.not_found) & ids_of(step)
                return Reply("success", answer.message, missing=missing)

    async def _push_full(
        self, store_id: str, push_id: int, step: PushFull, records: Mapping[str, Record]
    ) -> Reply | Sent:
        body = await asyncio.to_thread(lambda: codec.menus_body(menus_of(step)))
        answer = await self._service.push_menus(store_id, body)
        if not isinstance(answer, PushAccepted):
            return Reply(answer.status, answer.message, answer.counts.items)
        text = await asyncio.to_thread(lambda: pending_text(pending_of(step, records)))
        end = await self._jobs.follow_new(store_id, push_id, answer, text)
        if end.state == "success":
            whole = end.items is None or end.items >= len(step.items)
            return Reply("success" if whole else "partial", end.message, end.items)
        await self._doubt(push_id, ids_of(step), end.message, state=end.state)
        if end.state == "lost":
            raise JobLost(end)
        return Sent("refused", end.message, named_in(end.message, step), again=True)

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
        await doubt(self._ledger, self._store, list(ids))
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
                pushes.carry_approval(connection, self._store, digest)
                if digest
                else pushes.drop_hold(connection, self._store)
            )
        )

    async def _acknowledge(self, step: Step, records: Mapping[str, Record]) -> None:
        if isinstance(step, SetAvailability):
            items = {each.external_id: each for each in step.items}
            at = self._clock.now_ms()
            await self._ledger.write(
                lambda connection: availability_read(connection, self._store, items, records, at=at)
            )
            return
        told = await asyncio.to_thread(pending_of, step, records)
        await acknowledge(self._ledger, self._store, told, at=self._clock.now_ms())


class JobLost(BridgeError):
    """The service no longer knows the job, and shows no sync since it began."""

    def __init__(self, end: JobEnd) -> None:
        super().__init__(end.message)


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
            summary = {"item": step.item.external_id, "name": step.item.name}
            return "patch", {**summary, "fields": sorted(step.fields)}
        case SetAvailability():
            return "availability", {"items": len(step.items)}
