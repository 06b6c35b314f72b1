"""Writes tickets: one after another for a store, each order once (invariant 2).

Before the POS is called the ledger says `writing`. A row that says so already, from a life of the
process that ended or from a try whose outcome nobody knows, is asked for first (`find_ticket`).
The same worker takes tickets of cancelled orders back, and watches over the deadlines.
"""

import asyncio
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.adapter import (
    PosFailure,
    PosOffline,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
)
from tillbridge.core import supervision
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import ON_PAPER, PERHAPS_ON_PAPER_ONLY
from tillbridge.model.order import Order
from tillbridge.orders.commit import OrderRepository
from tillbridge.orders.events import order_of
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import (
    AfterFailure,
    Cancellation,
    after_failure,
    cancellation,
    failure_note,
    may_stand_in,
    was_offline,
)
from tillbridge.orders.state import (
    Printed,
    Withdrawn,
    WriteBegun,
    WriteFailed,
    Written,
    can_be_written,
    cancel_of,
    is_held,
)
from tillbridge.orders.tickets import FallbackPrinter, MayStillLand, Tickets
from tillbridge.orders.write_queue import (
    GRACE_S,
    Patience,
    Phase,
    QueuedOrder,
    WriteQueue,
    backoff_s,
    lapsed,
    phase_of,
    remaining_s,
)

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

log = get_logger()


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """The settings of [stores.NAME.orders] that writing goes by. Durations in seconds."""

    patience: Patience
    retry_s: float
    retry_cap_s: float


class TicketWriter:
    """The worker that brings one store's orders into its POS."""

    def __init__(
        self,
        repository: OrderRepository,
        policy: WritePolicy,
        pos: "PosRunner",
        presence: PosPresence,
        paper: FallbackPrinter | None = None,
    ) -> None:
        self._orders = repository
        self._policy = policy
        self._pos = pos
        self._presence = presence
        self._paper = paper
        # A ticket is enough to accept an order.
        self._accepts = policy.patience.accept == "when_written"
        self._tickets = Tickets(repository, pos)
        self._queue = WriteQueue()
        self.worker = Worker("writer", self._step, repository.supervisor, repository.clock)
        self.worker.wake()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    # -- what others tell it

    def take(self, row: OrderRow, *, order: Order | None = None, afresh: bool = False) -> None:
        """Do what there is to do for the order of this row, the newest one.

        Its time counts from when it was received, or from now where a person has it tried afresh.
        `order` is what its payload says, where that is known already.
        """
        age_ms = 0 if afresh else self._orders.clock.now_ms() - row.received_at
        within_s = self._policy.patience.accept_within_s
        deadline = self._orders.clock.monotonic() + remaining_s(age_ms, within_s)
        phase = self._phase(row)
        if phase is None:
            self._queue.drop(row.order_id)
        else:
            known = self._queue.get(row.order_id)
            if known is not None and not afresh:
                deadline = known.deadline
            entry = self._queue.add(row, phase, deadline)
            entry.order = order or entry.order
            if known is None or afresh:
                self._take_up(entry, row, age_ms)
            if known is None and not afresh and entry.unsure and row.attempts:
                self._may_have_been_sent(entry, row)
            self.worker.wake()

    def _take_up(self, entry: QueuedOrder, row: OrderRow, age_ms: int) -> None:
        """Note what is known of an order from before, and when it goes to paper."""
        entry.unsure = entry.maybe_on_paper = row.ticket is TicketState.WRITING
        if self._paper is not None:
            left_s = remaining_s(age_ms, self._paper.after_s)
            at_once = row.last_failure.partition(":")[0] in {"refused", "held"}
            entry.paper_at = self._orders.clock.monotonic() + (0 if at_once else left_s)

    def _may_have_been_sent(self, entry: QueuedOrder, row: OrderRow) -> None:
        """Note that the process may have ended while the POS was writing the order."""
        age_s = max(0.0, (self._orders.clock.now_ms() - row.updated_at) / 1000)
        entry.outcome_unknown(self._orders.clock.monotonic() - age_s, self._pos.late_write_s)

    def anything_to_write(self) -> bool:
        """Return whether any order waits for the POS."""
        return self._queue.any_for_pos()

    def pos_there(self) -> None:
        """Try what waits: a probe of the POS was good."""
        self._queue.try_again()
        self.worker.wake()

    async def drain(self) -> None:
        """Begin nothing more, and wait for the call to the POS that is under way."""
        self._draining = True
        await self._idle.wait()

    async def _step(self) -> float | None:
        """Write what is due; return in how many seconds something is, None for nothing."""
        while not self._draining:
            there = self._presence.probe_ok
            now = self._orders.clock.monotonic()
            entry = self._queue.next(now, pos_there=there)
            if entry is None:
                next_at = self._queue.next_at(pos_there=there)
                return None if math.isinf(next_at) else max(0.0, next_at - now)
            self._idle.clear()
            try:
                await self._work_contained(entry)
            finally:
                self._idle.set()
        return None

    # -- one order

    def _phase(self, row: OrderRow) -> Phase | None:
        return phase_of(row, self._policy.patience.accept)

    async def _work_contained(self, entry: QueuedOrder) -> None:
        """Do what is due; an order at which this fails unexpectedly waits, and the others go on."""
        work = partial(self._work, entry)
        if await self._orders.supervisor.attempt("writer", work, order=entry.order_id):
            entry.crashes = 0
        else:
            entry.crashes += 1
            entry.set_aside_until = self._orders.clock.monotonic() + supervision.backoff_s(
                entry.crashes
            )

    async def _work(self, entry: QueuedOrder) -> None:
        row = entry.row
        late = self._orders.clock.monotonic() >= entry.deadline
        match entry.phase:
            case Phase.WRITE if late:
                await self._give_up_writing(entry, row)
            case Phase.WRITE if self._paper is not None:
                await self._write_or_print(self._paper, entry, row)
            case Phase.WRITE:
                await self._write(entry, row)
            case Phase.CONFIRM if late:
                await self._give_up(entry, row, pos_has_none=False)
            case Phase.CONFIRM:
                pass
            case Phase.WITHDRAW:
                await self._withdraw(entry, row)

    async def _write(self, entry: QueuedOrder, row: OrderRow) -> None:
        order_id = row.order_id
        ask_first = row.ticket is TicketState.WRITING
        if not ask_first and await self._tickets.is_held(row):
            entry.held, entry.offline = True, False
            return
        if not ask_first:
            if not await self._begins(order_id):
                return  # it has changed: the next round looks again
            log.info("order.writing", store=self._orders.store, order=order_id)
        try:
            order = entry.order or order_of(order_id, row.payload)
            ticket = await self._tickets.write(
                row, order, ask_first=ask_first, may_land=self._may_land(entry)
            )
        except PosFailure as failure:
            await self._failed(entry, row, failure)
            return
        if ticket is None:
            entry.held, entry.offline = True, False
            return
        await self._has_ticket(entry, row, ticket)

    def _may_land(self, entry: QueuedOrder) -> bool:
        return self._orders.clock.monotonic() < entry.may_land_until

    async def _has_ticket(self, entry: QueuedOrder, row: OrderRow, ticket: Ticket) -> None:
        # First, as it happened: while the ticket is kept, its news may tell that the POS is away.
        await self._pos_answered()
        entry.next_try, entry.failures, entry.offline = -math.inf, 0, False
        await self._orders.commit(row.order_id, Written(ticket.reference, self._accepts))
        took_ms = self._orders.clock.now_ms() - row.received_at
        log.info(
            "order.written",
            store=self._orders.store,
            order=row.order_id,
            reference=ticket.reference,
            ms=took_ms,
        )
        took_s = max(0.0, took_ms / 1000)  # a clock may be set back
        self._orders.metrics.time_to_ticket.labels(store=self._orders.store).observe(took_s)

    async def _begins(self, order_id: str) -> bool:
        """Note that a write begins, before the POS is called (invariant 2); False where it ends."""
        change = await self._orders.commit(order_id, WriteBegun())
        return change is not None and can_be_written(change.after)

    async def _failed(self, entry: QueuedOrder, row: OrderRow, failure: PosFailure) -> None:
        refused = after_failure(failure) is AfterFailure.CANCEL
        if isinstance(failure, StoreClosed):
            self._presence.probe_soon()
        if refused:
            await self._pos_answered()
            if self._paper is None or not may_stand_in(failure):
                await self._cancel(row, cancellation(failure), pos_has_none=True)
                return
        note = failure_note(failure)
        if note != row.last_failure and not is_held(row):
            log.warning("order.wait", store=self._orders.store, order=row.order_id, reason=note)
        lands = isinstance(failure, MayStillLand)
        await self._orders.commit(row.order_id, WriteFailed(note, counts=not lands))
        if isinstance(failure, TicketOutcomeUnknown) and not lands:
            entry.unsure = True
            entry.outcome_unknown(self._orders.clock.monotonic(), self._pos.late_write_s)
        await self._back_off(entry, failure)
        if refused:
            entry.paper_at = -math.inf  # there is no point in waiting

    async def _back_off(self, entry: QueuedOrder, failure: PosFailure) -> None:
        now = self._orders.clock.monotonic()
        entry.failures += 1
        entry.offline = isinstance(failure, PosOffline)
        entry.next_try = now + self._pause(entry.failures)
        if entry.offline:
            self._queue.hold_all(now + self._pause(self._queue.pos_failures + 1))
            await self._presence.write_failed(failure)

    def _pause(self, failures: int) -> float:
        return backoff_s(failures, self._policy.retry_s, self._policy.retry_cap_s)

    async def _pos_answered(self) -> None:
        self._queue.pos_answered()
        await self._presence.write_worked()

    # -- the printer that stands in

    async def _write_or_print(
        self, paper: FallbackPrinter, entry: QueuedOrder, row: OrderRow
    ) -> None:
        """Write into the POS, unless the order's time for that is up, or it is on paper already."""
        if entry.maybe_on_paper:
            try:
                found = await paper.find(row.order_id)
            except TicketOutcomeUnknown:
                await self._print(paper, entry, row)
                return
            except PosFailure:
                entry.paper_at = self._orders.clock.monotonic() + self._pause(1)
                entry.next_try = entry.paper_at
                return
            if found is not None:
                await self._is_on_paper(row, perhaps_only=entry.unsure)
                return
            entry.maybe_on_paper = False
        if self._orders.clock.monotonic() >= entry.paper_at:
            await self._print(paper, entry, row)
        else:
            await self._write(entry, row)

    async def _print(self, paper: FallbackPrinter, entry: QueuedOrder, row: OrderRow) -> None:
        """Print the order; but where the POS has it after all, it goes on."""
        ticket, surely_none = await self._in_till(entry, row) if entry.unsure else (None, True)
        if ticket is not None:
            await self._has_ticket(entry, row, ticket)
            return
        if not await self._begins(row.order_id):
            return
        try:
            printed = await paper.print(row, till_may_have_it=not surely_none)
        except PosFailure as failure:
            entry.maybe_on_paper = isinstance(failure, TicketOutcomeUnknown)
            entry.paper_failures += 1
            entry.paper_at = self._orders.clock.monotonic() + self._pause(entry.paper_failures)
            log.warning(
                "order.not_on_paper",
                store=self._orders.store,
                order=row.order_id,
                reason=failure_note(failure),
            )
            return
        if printed is None:  # a person is to ask for it first; the POS may still take it
            entry.paper_at = math.inf
            return
        await self._is_on_paper(row, perhaps_only=not surely_none)

    async def _is_on_paper(self, row: OrderRow, *, perhaps_only: bool) -> None:
        reference = PERHAPS_ON_PAPER_ONLY if perhaps_only else ON_PAPER
        why = row.last_failure.partition(": ")[2] or row.last_failure or _("it did not answer")
        await self._orders.commit(row.order_id, Printed(reference, why, self._accepts))
        log.warning("order.on_paper", store=self._orders.store, order=row.order_id)

    # -- time is up

    async def _give_up_writing(self, entry: QueuedOrder, row: OrderRow) -> None:
        """End an order whose time is up; but where the POS has it after all, it goes on."""
        entry.deadline = math.inf
        ticket, surely_none = await self._in_till(entry, row)
        if ticket is not None:
            entry.deadline = self._orders.clock.monotonic() + GRACE_S  # to be confirmed
            await self._has_ticket(entry, row, ticket)
            return
        if self._paper is not None and entry.maybe_on_paper:
            surely_none = False  # the kitchen may have it: it is told that it is off
        await self._give_up(entry, row, pos_has_none=surely_none)

    async def _in_till(self, entry: QueuedOrder, row: OrderRow) -> tuple[Ticket | None, bool]:
        """Return the ticket that the POS has, and whether it surely has none."""
        if row.ticket is TicketState.WAITING:
            return None, True
        if not self._presence.online:
            return None, False
        try:
            ticket = await self._pos.find_ticket(row.order_id)
        except PosFailure as failure:
            log.info(
                "order.wait",
                store=self._orders.store,
                order=row.order_id,
                reason=failure_note(failure),
            )
            return None, False
        return ticket, ticket is None and not self._may_land(entry)

    async def _give_up(self, entry: QueuedOrder, row: OrderRow, *, pos_has_none: bool) -> None:
        entry.deadline = math.inf
        cause = lapsed(
            self._policy.patience,
            written=row.ticket is TicketState.WRITTEN,
            wanted=row.desired_state,
            offline=was_offline(row.last_failure) or not self._presence.online,
            note=row.last_failure,
        )
        if cause is not None:
            await self._cancel(row, cancellation(cause), pos_has_none=pos_has_none)

    async def _cancel(self, row: OrderRow, cancelled: Cancellation, *, pos_has_none: bool) -> None:
        await self._presence.cancelled(cancelled)
        await self._orders.commit(row.order_id, cancel_of(cancelled, pos_has_none=pos_has_none))
        log.warning(
            "order.to_cancel", store=self._orders.store, order=row.order_id, code=cancelled.code
        )

    # -- a ticket too many

    async def _withdraw(self, entry: QueuedOrder, row: OrderRow) -> None:
        ended: Withdrawn
        try:
            on_paper = self._paper is not None and await self._paper.take_back(row)
        except PosFailure:
            entry.failures += 1
            entry.next_try = self._orders.clock.monotonic() + self._pause(entry.failures)
            return
        try:
            how = await self._tickets.withdraw(
                row, on_paper=on_paper, may_land=self._may_land(entry)
            )
            ended = Withdrawn(how)
        except PosFailure as failure:
            if after_failure(failure) is AfterFailure.RETRY:
                await self._back_off(entry, failure)
                return
            ended = Withdrawn("left_to_person", failure.message, failure.fix)
        else:
            await self._pos_answered()
        await self._orders.commit(row.order_id, ended)
        log.info("order.withdrawn", store=self._orders.store, order=row.order_id, how=ended.how)
