"""Writes tickets: one after another for a store, each order once (invariant 2).

Before the POS is called the ledger says `writing`. A row that says so already, from a process that
ended or from a try whose outcome nobody knows, is asked for first (`find_ticket`). The same worker
takes tickets of cancelled orders back, and watches over the deadlines.
"""

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.adapter import PosFailure, PosOffline, StoreClosed, Ticket, TicketOutcomeUnknown
from tillbridge.config import StoreSettings
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker, crash_backoff_s
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import ON_PAPER, PERHAPS_ON_PAPER_ONLY
from tillbridge.orders.intake import order_of
from tillbridge.orders.reasons import (
    AfterFailure,
    Cause,
    Lapse,
    Lapsed,
    after_failure,
    cancellation,
    failure_note,
    may_stand_in,
    was_offline,
)
from tillbridge.orders.reconciler import PosPresence
from tillbridge.orders.repository import OrderRepository
from tillbridge.orders.state import (
    Change,
    Phase,
    Printed,
    Retried,
    Withdrawn,
    WriteBegun,
    WriteFailed,
    Written,
    can_be_written,
    cancel_of,
    phase_of,
)
from tillbridge.orders.tickets import FallbackPrinter, MayStillLand, Tickets
from tillbridge.orders.write_queue import (
    GRACE_S,
    QueuedOrder,
    WriteQueue,
    backoff_s,
    remaining_s,
)

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

log = get_logger()


class TicketWriter:
    """The worker that brings one store's orders into its POS."""

    def __init__(
        self,
        repository: OrderRepository,
        settings: StoreSettings,
        pos: "PosRunner",
        presence: PosPresence,
        paper: FallbackPrinter | None = None,
    ) -> None:
        self._orders = repository
        self._settings = settings.orders
        self._pos = pos
        self._presence = presence
        self._paper = paper
        # A ticket is enough to accept an order.
        self._accepts = settings.orders.accept == "when_written"
        self._tickets = Tickets(repository, pos)
        self._queue = WriteQueue()
        self.worker = Worker("writer", self._step, repository.supervisor, repository.clock)
        self.worker.wake()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    def take(self, change: Change) -> None:
        """Do what there is to do at the POS for the order as it is after this change.

        Its time counts from when it was received, or from now where a person has it tried again.
        """
        row, clock = change.after, self._orders.clock
        phase = phase_of(row, self._settings.accept)
        if phase is None:
            self._queue.pop(row.order_id, None)
            return
        known = self._queue.get(row.order_id)
        now, retried = clock.monotonic(), isinstance(change.event, Retried)
        if known is not None and not retried:
            self._queue.add(row, phase, known.deadline)
        else:
            age_ms = 0 if retried else clock.now_ms() - row.received_at
            deadline = now + remaining_s(age_ms, self._settings.accept_within_s)
            entry = self._queue.add(row, phase, deadline)
            entry.order = change.order or entry.order
            entry.unsure = entry.maybe_on_paper = row.ticket is TicketState.WRITING
            if self._paper is not None:
                at_once = row.last_failure.partition(":")[0] in {"refused", "held"}
                entry.paper_at = now
                entry.paper_at += 0 if at_once else remaining_s(age_ms, self._paper.after_s)
            if known is None and entry.unsure and row.attempts:
                # The process may have ended while the POS was writing the order.
                since_s = max(0.0, (clock.now_ms() - row.updated_at) / 1000)
                entry.outcome_unknown(now - since_s, self._pos.late_write_s)
        self.worker.wake()

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
        """Write what is due; return in how many seconds something is, None for nothing.

        An order at which this fails unexpectedly waits, and the others go on.
        """
        while not self._draining:
            there = self._presence.probe_ok
            now = self._orders.clock.monotonic()
            entry, next_at = self._queue.next(now, pos_there=there)
            if entry is None:
                return None if math.isinf(next_at) else max(0.0, next_at - now)
            self._idle.clear()
            try:
                work, order_id = partial(self._work, entry), entry.row.order_id
                if await self._orders.supervisor.attempt("writer", work, order=order_id):
                    entry.crashes = 0
                else:
                    entry.crashes += 1
                    pause = crash_backoff_s(entry.crashes)
                    entry.set_aside_until = self._orders.clock.monotonic() + pause
            finally:
                self._idle.set()
        return None

    # -- one order

    async def _work(self, entry: QueuedOrder) -> None:
        row = entry.row
        late = self._orders.clock.monotonic() >= entry.deadline
        match entry.phase:
            case Phase.WRITE if late:
                await self._give_up(entry, row)
            case Phase.WRITE if self._paper is not None:
                await self._write_or_print(self._paper, entry, row)
            case Phase.WRITE:
                await self._write(entry, row)
            case Phase.CONFIRM if late:
                entry.deadline = math.inf
                lapsed = Lapsed(Lapse.NOT_CONFIRMED, self._settings.unconfirmed_reason)
                await self._cancel(row, lapsed, pos_has_none=False)
            case Phase.CONFIRM:
                pass
            case Phase.WITHDRAW:
                await self._withdraw(entry, row)

    async def _write(self, entry: QueuedOrder, row: OrderRow) -> None:
        ask_first = row.ticket is TicketState.WRITING
        if not ask_first and await self._tickets.is_held(row):
            entry.held, entry.offline = True, False
            return
        if not ask_first:
            if not await self._begins(row):
                return  # it has changed: the next round looks again
            log.info("order.writing", store=self._orders.store, order=row.order_id)
        may_land = self._orders.clock.monotonic() < entry.may_land_until
        try:
            order = entry.order or order_of(row.order_id, row.payload)
            ticket = await self._tickets.write(row, order, ask_first=ask_first, may_land=may_land)
        except PosFailure as failure:
            await self._failed(entry, row, failure)
            return
        if ticket is None:
            entry.held, entry.offline = True, False
            return
        await self._has_ticket(entry, row, ticket)

    async def _begins(self, row: OrderRow) -> bool:
        """Note that a write begins, before the POS is called (invariant 2); False where it ends."""
        change = await self._orders.commit(row.order_id, WriteBegun())
        return change is not None and can_be_written(change.after)

    async def _has_ticket(self, entry: QueuedOrder, row: OrderRow, ticket: Ticket) -> None:
        # First, as it happened: while the ticket is stored, the POS may be reported to be away.
        await self._pos_answered()
        entry.next_try, entry.failures, entry.offline = -math.inf, 0, False
        took_ms = self._orders.clock.now_ms() - row.received_at
        await self._orders.commit(
            row.order_id, Written(ticket.reference, self._accepts), ms=took_ms
        )
        took_s = max(0.0, took_ms / 1000)  # a clock may be set back
        self._orders.metrics.time_to_ticket.labels(store=self._orders.store).observe(took_s)

    async def _failed(self, entry: QueuedOrder, row: OrderRow, failure: PosFailure) -> None:
        refused = after_failure(failure) is AfterFailure.CANCEL
        if isinstance(failure, StoreClosed):
            self._presence.probe_soon()
        if refused:
            await self._pos_answered()
            if self._paper is None or not may_stand_in(failure):
                await self._cancel(row, failure, pos_has_none=True)
                return
        lands = isinstance(failure, MayStillLand)
        await self._orders.commit(
            row.order_id, WriteFailed(failure_note(failure), counts=not lands)
        )
        if isinstance(failure, TicketOutcomeUnknown) and not lands:
            entry.unsure = True
            entry.outcome_unknown(self._orders.clock.monotonic(), self._pos.late_write_s)
        await self._back_off(entry, failure)
        if refused:
            entry.paper_at = -math.inf  # there is no point in waiting

    async def _back_off(self, entry: QueuedOrder, failure: PosFailure) -> None:
        entry.failures += 1
        entry.offline = isinstance(failure, PosOffline)
        entry.next_try = self._after(entry.failures)
        if entry.offline:
            self._queue.hold_all(self._after(self._queue.pos_failures + 1))
            await self._presence.write_failed(failure)

    def _after(self, failures: int) -> float:
        """Return when the next try is due after so many failures in a row (monotonic seconds)."""
        pause = backoff_s(failures, self._settings.retry_s, self._settings.retry_cap_s)
        return self._orders.clock.monotonic() + pause

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
                entry.paper_at = entry.next_try = self._after(1)
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
        if not await self._begins(row):
            return
        try:
            printed = await paper.print(row, till_may_have_it=not surely_none)
        except PosFailure as failure:
            entry.maybe_on_paper = isinstance(failure, TicketOutcomeUnknown)
            entry.paper_failures += 1
            entry.paper_at = self._after(entry.paper_failures)
            reason = failure_note(failure)
            store, order_id = self._orders.store, row.order_id
            log.warning("order.not_on_paper", store=store, order=order_id, reason=reason)
            return
        if printed is None:  # a person is to ask for it first; the POS may still take it
            entry.paper_at = math.inf
            return
        await self._is_on_paper(row, perhaps_only=not surely_none)

    async def _is_on_paper(self, row: OrderRow, *, perhaps_only: bool) -> None:
        reference = PERHAPS_ON_PAPER_ONLY if perhaps_only else ON_PAPER
        why = row.last_failure.partition(": ")[2] or row.last_failure or _("it did not answer")
        await self._orders.commit(row.order_id, Printed(reference, why, self._accepts))

    # -- time is up

    async def _give_up(self, entry: QueuedOrder, row: OrderRow) -> None:
        """End an order whose time is up; but where the POS has it after all, it goes on."""
        entry.deadline = math.inf
        ticket, surely_none = await self._in_till(entry, row)
        if ticket is not None:
            entry.deadline = self._orders.clock.monotonic() + GRACE_S  # to be confirmed
            await self._has_ticket(entry, row, ticket)
            return
        if self._paper is not None and entry.maybe_on_paper:
            surely_none = False  # the kitchen may have it: a slip says that it is off
        offline = was_offline(row.last_failure) or not self._presence.online
        lapse = Lapse.NOT_WRITTEN_OFFLINE if offline else Lapse.NOT_WRITTEN
        await self._cancel(row, Lapsed(lapse, note=row.last_failure), pos_has_none=surely_none)

    async def _in_till(self, entry: QueuedOrder, row: OrderRow) -> tuple[Ticket | None, bool]:
        """Return the ticket that the POS has, and whether it surely has none."""
        if row.ticket is TicketState.WAITING:
            return None, True
        if not self._presence.online:
            return None, False
        try:
            ticket = await self._pos.find_ticket(row.order_id)
        except PosFailure as failure:
            reason = failure_note(failure)
            log.info("order.wait", store=self._orders.store, order=row.order_id, reason=reason)
            return None, False
        may_land = self._orders.clock.monotonic() < entry.may_land_until
        return ticket, ticket is None and not may_land

    async def _cancel(self, row: OrderRow, cause: Cause, *, pos_has_none: bool) -> None:
        cancelled = cancellation(cause)
        await self._presence.cancelled(cancelled)
        await self._orders.commit(row.order_id, cancel_of(cancelled, pos_has_none=pos_has_none))

    # -- a ticket too many

    async def _withdraw(self, entry: QueuedOrder, row: OrderRow) -> None:
        try:
            on_paper = self._paper is not None and await self._paper.take_back(row)
        except PosFailure:
            entry.failures += 1
            entry.next_try = self._after(entry.failures)
            return
        may_land = self._orders.clock.monotonic() < entry.may_land_until
        try:
            ended = Withdrawn(
                await self._tickets.withdraw(row, on_paper=on_paper, may_land=may_land)
            )
        except PosFailure as failure:
            if after_failure(failure) is AfterFailure.RETRY:
                await self._back_off(entry, failure)
                return
            ended = Withdrawn("left_to_person", failure.message, failure.fix)
        else:
            await self._pos_answered()
        await self._orders.commit(row.order_id, ended)
