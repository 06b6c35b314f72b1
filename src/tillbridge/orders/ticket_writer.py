"""Writes tickets: one after another for a store, each order once (invariant 2).

Before the POS is called the ledger says `writing`. A row that says so already, from a process that
ended or from a try whose outcome nobody knows, is asked for first (`find_ticket`), and its ticket
marked where nobody knows. The same worker takes tickets of cancelled orders back, and watches over
the deadlines.

A printer may stand in for the POS (`[stores.NAME.fallback]`). What comes out there says NOT IN
TILL. An order goes there once it has waited `after_s` seconds, and is printed once; from then on it
belongs to the people of the restaurant, and nothing of it is written to the till by itself:
somebody may be typing it there. See docs/decisions, An order on paper is taken.

Old orders wait for a person: a printer that is switched on in the evening must not print the
backlog of the day. How old an order may be is the adapter's to say; its age counts from when it was
placed, and again from when somebody last had it tried again, which is how one says that it is still
wanted.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.adapter import (
    PosFailure,
    PosOffline,
    StoreClosed,
    Ticket,
    TicketMark,
    TicketOutcomeUnknown,
)
from tillbridge.core.context import StoreContext
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker, backoff_s
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import ON_PAPER, PERHAPS_ON_PAPER_ONLY
from tillbridge.model.order import Order
from tillbridge.orders import events, reasons, state
from tillbridge.orders.intake import order_of
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.repository import OrderRepository
from tillbridge.orders.state import Phase

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

# -- The orders that wait for the POS, and which of them is next. Pure, but for being a list.
#
# Orders are written one after another in the order they were received. One in trouble waits out its
# own backoff and does not hold up those behind it. While the POS is offline only one order is tried
# now and then, each time one that was tried the least: an order that fails alone cannot pass for a
# POS that is gone.
#
# `accept_within_s` counts from when the order was received. While the process runs, time is the
# monotonic clock's. Across a restart only the wall clock shows an order's age, and it may have
# jumped meanwhile; so what is left is clamped: never more than the whole time (no jump back keeps
# an order for ever), and never less than a grace in which it is tried once more (no jump ahead
# cancels an order at once).


GRACE_S = 15.0


def remaining_s(age_ms: int, within_s: float) -> float:
    """Return how many seconds an order has left whose age by the wall clock is `age_ms`."""
    left = within_s - age_ms / 1000
    return min(within_s, max(left, min(GRACE_S, within_s)))


@dataclass(slots=True)
class QueuedOrder:
    """One order, by rank of receipt. `deadline` and `next_try` are monotonic seconds."""

    row: OrderRow  # the newest
    place: int
    phase: Phase
    deadline: float
    order: Order | None = None  # what the row's payload says, where it was read already
    next_try: float = -math.inf
    failures: int = 0
    offline: bool = False
    held: bool = False  # until a person asks for it, or its time is up
    unsure: bool = False  # the POS may have it, and did not say
    unknown_outcomes: int = 0
    may_land_until: float = -math.inf  # a write of unknown outcome may take effect until then
    paper_at: float = math.inf  # when it goes to the printer that is in
    paper_failures: int = 0
    maybe_on_paper: bool = False  # ... which may have it, from before or from a try that broke off
    # Working on it failed unexpectedly: nothing is done before then, even past its deadline.
    set_aside_until: float = -math.inf

    def outcome_unknown(self, now: float, late_write_s: float) -> None:
        """Note that a write may yet take effect; twice as long as after the one before."""
        self.unknown_outcomes += 1
        wait_s = backoff_s(self.unknown_outcomes, late_write_s, math.inf)
        self.may_land_until = max(self.may_land_until, now + wait_s)

    def due(self, pos_from: float) -> float:
        """Return when something is to be done, where the POS may be tried from `pos_from` on."""
        due = max(self.next_try, pos_from)
        if self.phase is Phase.WRITE:
            due = min(self.deadline, self.paper_at, math.inf if self.held else due)
        elif self.phase is Phase.CONFIRM:
            due = self.deadline
        return max(due, self.set_aside_until)


class WriteQueue(dict[str, QueuedOrder]):
    """The orders of one store that wait, by id."""

    def __init__(self) -> None:
        super().__init__()
        self._places = 0
        self._pos_from = -math.inf
        self.pos_failures = 0  # how often in a row the POS was found to be offline

    def add(self, row: OrderRow, phase: Phase, deadline: float) -> QueuedOrder:
        """Add an order, behind all others; one that waits already gets the row and the phase."""
        known = self.get(row.order_id)
        if known is not None:
            known.row, known.phase, known.deadline = row, phase, deadline
            known.next_try, known.held = -math.inf, False
            return known
        self._places += 1
        entry = self[row.order_id] = QueuedOrder(row, self._places, phase, deadline)
        return entry

    def any_for_pos(self) -> bool:
        """Return whether any order waits to be written or withdrawn."""
        return any(each.phase is not Phase.CONFIRM and not each.held for each in self.values())

    def hold_all(self, until: float) -> None:
        """Try nothing before `until`: the POS is offline."""
        self._pos_from = until
        self.pos_failures += 1

    def pos_answered(self) -> None:
        """Try orders as they come again: the POS has just answered."""
        if self.pos_failures:
            self.try_again()
            self.pos_failures = 0
            for each in self.values():
                if each.offline:
                    each.failures, each.offline = 0, False

    def try_again(self) -> None:
        """Let what failed because the POS was offline be tried at once, the least tried first."""
        self._pos_from = -math.inf
        for each in self.values():
            if each.offline:
                each.next_try = -math.inf

    def next(self, now: float, *, pos_there: bool) -> tuple[QueuedOrder | None, float]:
        """Return the order of which something is to be done now, and when the first is due.

        In monotonic seconds, infinity where nothing waits.
        """
        pos_from = self._pos_from if pos_there else math.inf
        dues = [(each.due(pos_from), each) for each in self.values()]
        ready = [each for due, each in dues if due <= now]
        least_tried = bool(self.pos_failures)
        chosen = min(
            ready, key=lambda each: (each.failures if least_tried else 0, each.place), default=None
        )
        return chosen, min((due for due, _each in dues), default=math.inf)


log = get_logger()

_AGAIN = frozenset({TicketMark.POSSIBLE_DUPLICATE})
_NOT_IN_TILL = frozenset({TicketMark.NOT_IN_TILL})
_LOOK_FIRST = frozenset({TicketMark.NOT_IN_TILL, TicketMark.TILL_MAY_HAVE_IT})


class MayStillLand(TicketOutcomeUnknown):
    """The POS does not have the ticket, but an earlier write of it may yet take effect."""

    def __init__(self) -> None:
        super().__init__(
            _("The till may still be writing the order: it has not answered the last try.")
        )


class TicketWriter:
    """The worker that brings one store's orders into its POS, or onto the printer instead."""

    def __init__(
        self, context: StoreContext, repository: OrderRepository, presence: PosPresence
    ) -> None:
        settings = context.settings
        self._orders = repository
        self._clock = repository.clock
        self._settings = settings.orders
        self._pos = context.pos.orders
        self.paper = None if settings.fallback is None else context.pos.fallback
        self._paper_after_s = 0.0 if settings.fallback is None else settings.fallback.after_s
        self._presence = presence
        # A ticket is enough to accept an order.
        self._accepts = settings.orders.accept == "when_written"
        self._queue = WriteQueue()
        presence.anything_to_write = self._queue.any_for_pos
        presence.on_there = self.pos_there
        self.worker = Worker("writer", self._step, repository.supervisor, repository.clock)
        self.worker.wake()

    def update(self, change: state.Change) -> None:
        """Queue the work at the POS that the order needs after this change.

        Its time counts from when it was received, or from now where a person has it tried again.
        """
        row, clock = change.after, self._clock
        phase = state.phase_of(row, self._settings.accept)
        if phase is None:
            self._queue.pop(row.order_id, None)
            return
        known = self._queue.get(row.order_id)
        now, retried = clock.monotonic(), isinstance(change.event, events.Retried)
        if known is not None and not retried:
            self._queue.add(row, phase, known.deadline)
        else:
            age_ms = 0 if retried else clock.now_ms() - row.received_at
            deadline = now + remaining_s(age_ms, self._settings.accept_within_s)
            entry = self._queue.add(row, phase, deadline)
            entry.order = change.order or entry.order
            entry.unsure = entry.maybe_on_paper = row.ticket is TicketState.WRITING
            if self.paper is not None:
                at_once = row.last_failure.partition(":")[0] in {"refused", "held"}
                entry.paper_at = now
                entry.paper_at += 0 if at_once else remaining_s(age_ms, self._paper_after_s)
            if known is None and entry.unsure and row.attempts:
                # The process may have ended while the POS was writing the order.
                since_s = max(0.0, (clock.now_ms() - row.updated_at) / 1000)
                entry.outcome_unknown(now - since_s, self._pos.late_write_s)
        self.worker.wake()

    def pos_there(self) -> None:
        """Try what waits: a probe of the POS was good."""
        self._queue.try_again()
        self.worker.wake()

    async def _step(self) -> float | None:
        """Do what is due for one order; return in how many seconds something is, None for nothing.

        An order at which this fails unexpectedly waits, and the others continue.
        """
        now = self._clock.monotonic()
        entry, next_at = self._queue.next(now, pos_there=self._presence.probe_ok)
        if entry is None:
            return None if math.isinf(next_at) else max(0.0, next_at - now)
        work = partial(self._work, entry)
        order_id = entry.row.order_id
        pause_s = await self._orders.supervisor.attempt("writer", work, order=order_id)
        if pause_s is not None:
            entry.set_aside_until = self._clock.monotonic() + pause_s
        return 0.0

    # -- one order

    async def _work(self, entry: QueuedOrder) -> None:
        row = entry.row
        late = self._clock.monotonic() >= entry.deadline
        match entry.phase:
            case state.Phase.WRITE if late:
                await self._give_up(entry, row)
            case state.Phase.WRITE if self.paper is not None and await self._is_for_paper(
                self.paper, entry, row
            ):
                pass
            case state.Phase.WRITE:
                await self._write(entry, row)
            case state.Phase.CONFIRM if late:
                entry.deadline = math.inf
                lapsed = reasons.Lapsed(
                    reasons.Lapse.NOT_CONFIRMED, self._settings.unconfirmed_reason
                )
                await self._cancel(row, lapsed, pos_has_none=False)
            case state.Phase.CONFIRM:
                pass
            case state.Phase.WITHDRAW:
                await self._withdraw(entry, row)

    async def _write(self, entry: QueuedOrder, row: OrderRow) -> None:
        """Write the ticket, unless the POS has it, or a person is to ask for it first."""
        key, pos, marks, ticket = row.order_id, self._pos, frozenset[TicketMark](), None
        try:
            if row.ticket is TicketState.WRITING:
                try:
                    ticket = await pos.find_ticket(key)
                except TicketOutcomeUnknown:
                    if not pos.marks_tickets:
                        raise
                    marks = _AGAIN
                if ticket is None and not marks and self._may_land(entry):
                    raise MayStillLand
            if ticket is None:
                if await self._is_held(pos, row):
                    entry.held, entry.offline = True, False
                    return
                if row.ticket is TicketState.WAITING:
                    if not await self._begins(row):
                        return  # it has changed: the next round looks again
                    log.info("order.writing", store=row.store, order=key)
                order = entry.order or order_of(key, row.payload)
                if marks:
                    log.warning("order.written_again", store=row.store, order=key)
                    ticket = await pos.write_marked_ticket(order, key, marks)
                else:
                    ticket = await pos.write_ticket(order, key)
        except PosFailure as failure:
            await self._failed(entry, row, failure)
        else:
            await self._has_ticket(entry, row, ticket)

    async def _is_held(self, pos: "PosRunner", row: OrderRow) -> bool:
        """Return whether the order is so old that it waits for a person; this is then reported."""
        limit_ms = pos.hold_older_than_s * 1000
        now_ms = self._clock.now_ms()
        placed_at = row.placed_at or row.received_at
        if not limit_ms or now_ms - placed_at <= limit_ms:
            return False
        asked_at = await self._orders.read(orders.last_at, row.order_id, "order.retried")
        if now_ms - max(placed_at, asked_at or 0) <= limit_ms:
            return False
        minutes = (now_ms - placed_at) // 60_000
        note = _("It was {minutes} minutes old, and nobody asked for it.").format(minutes=minutes)
        await self._orders.commit(row.order_id, events.Held(f"held: {note}"), minutes=minutes)
        return True

    async def _begins(self, row: OrderRow) -> bool:
        """Note that a write begins, before the POS is called (invariant 2); False if it ends."""
        change = await self._orders.commit(row.order_id, events.WriteBegun())
        return change is not None and state.can_be_written(change.after)

    async def _has_ticket(self, entry: QueuedOrder, row: OrderRow, ticket: Ticket) -> None:
        # First, as it happened: while the ticket is stored, the POS may be reported to be away.
        await self._pos_answered()
        entry.next_try, entry.failures, entry.offline = -math.inf, 0, False
        took_ms = self._clock.now_ms() - row.received_at
        written = events.Written(ticket.reference, self._accepts)
        await self._orders.commit(row.order_id, written, ms=took_ms)
        took_s = max(0.0, took_ms / 1000)  # a clock may be set back
        self._orders.metrics.time_to_ticket.labels(store=row.store).observe(took_s)

    async def _failed(self, entry: QueuedOrder, row: OrderRow, failure: PosFailure) -> None:
        refused = not reasons.may_pass(failure)
        if isinstance(failure, StoreClosed):
            self._presence.worker.wake()
        if refused:
            await self._pos_answered()
            if self.paper is None or not reasons.may_go_to_paper(failure):
                await self._cancel(row, failure, pos_has_none=True)
                return
        lands = isinstance(failure, MayStillLand)
        failed = events.WriteFailed(reasons.failure_note(failure), counts=not lands)
        await self._orders.commit(row.order_id, failed)
        if isinstance(failure, TicketOutcomeUnknown) and not lands:
            entry.unsure = True
            entry.outcome_unknown(self._clock.monotonic(), self._pos.late_write_s)
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
        return self._clock.monotonic() + pause

    def _may_land(self, entry: QueuedOrder) -> bool:
        """Return whether an earlier write may yet take effect, so that nothing is written now."""
        return self._clock.monotonic() < entry.may_land_until

    async def _pos_answered(self) -> None:
        self._queue.pos_answered()
        await self._presence.write_worked()

    # -- the printer that is in

    async def _is_for_paper(self, paper: "PosRunner", entry: QueuedOrder, row: OrderRow) -> bool:
        """Print the order where its time for the POS is up; return whether it is paper's now.

        Where it may be on paper already, the printer is asked first.
        """
        if entry.maybe_on_paper:
            try:
                found = await paper.find_ticket(row.order_id)
            except TicketOutcomeUnknown:
                await self._print(paper, entry, row)
                return True
            except PosFailure:
                entry.paper_at = entry.next_try = self._after(1)
                return True
            if found is not None:
                await self._is_on_paper(row, perhaps_only=entry.unsure)
                return True
            entry.maybe_on_paper = False
        if self._clock.monotonic() < entry.paper_at:
            return False
        await self._print(paper, entry, row)
        return True

    async def _print(self, paper: "PosRunner", entry: QueuedOrder, row: OrderRow) -> None:
        """Print the order unless it surely was printed; if the POS has it after all, continue."""
        key = row.order_id
        ticket, surely_none = await self._in_till(entry, row) if entry.unsure else (None, True)
        if ticket is not None:
            await self._has_ticket(entry, row, ticket)
            return
        if not await self._begins(row):
            return
        marks = _NOT_IN_TILL if surely_none else _LOOK_FIRST
        try:
            try:
                printed = await paper.find_ticket(key)
            except TicketOutcomeUnknown:
                printed, marks = None, marks | _AGAIN
            if printed is None:
                if await self._is_held(paper, row):  # the POS may still take it
                    entry.paper_at = math.inf
                    return
                await paper.write_marked_ticket(order_of(key, row.payload), key, marks)
        except PosFailure as failure:
            entry.maybe_on_paper = isinstance(failure, TicketOutcomeUnknown)
            entry.paper_failures += 1
            entry.paper_at = self._after(entry.paper_failures)
            reason = reasons.failure_note(failure)
            log.warning("order.not_on_paper", store=row.store, order=key, reason=reason)
        else:
            await self._is_on_paper(row, perhaps_only=not surely_none)

    async def _is_on_paper(self, row: OrderRow, *, perhaps_only: bool) -> None:
        reference = PERHAPS_ON_PAPER_ONLY if perhaps_only else ON_PAPER
        printed = events.Printed(reference, reasons.why_not_written(row), self._accepts)
        await self._orders.commit(row.order_id, printed)

    # -- time is up

    async def _give_up(self, entry: QueuedOrder, row: OrderRow) -> None:
        """End an order whose time is up; if the POS has it after all, continue."""
        entry.deadline = math.inf
        ticket, surely_none = await self._in_till(entry, row)
        if ticket is not None:
            entry.deadline = self._clock.monotonic() + GRACE_S  # to be confirmed
            await self._has_ticket(entry, row, ticket)
            return
        if self.paper is not None and entry.maybe_on_paper:
            surely_none = False  # the kitchen may have it: a slip says that it is off
        offline = reasons.was_offline(row.last_failure) or not self._presence.online
        lapse = reasons.Lapse.NOT_WRITTEN_OFFLINE if offline else reasons.Lapse.NOT_WRITTEN
        await self._cancel(
            row, reasons.Lapsed(lapse, note=row.last_failure), pos_has_none=surely_none
        )

    async def _in_till(self, entry: QueuedOrder, row: OrderRow) -> tuple[Ticket | None, bool]:
        """Return the ticket that the POS has, and whether it surely has none."""
        if row.ticket is TicketState.WAITING:
            return None, True
        if not self._presence.online:
            return None, False
        try:
            ticket = await self._pos.find_ticket(row.order_id)
        except PosFailure as failure:
            reason = reasons.failure_note(failure)
            log.info("order.wait", store=row.store, order=row.order_id, reason=reason)
            return None, False
        return ticket, ticket is None and not self._may_land(entry)

    async def _cancel(self, row: OrderRow, cause: reasons.Cause, *, pos_has_none: bool) -> None:
        wanted = reasons.cancellation(cause, pos_has_none=pos_has_none)
        await self._presence.cancelled(wanted)
        await self._orders.commit(row.order_id, wanted)

    # -- a ticket too many

    async def _withdraw(self, entry: QueuedOrder, row: OrderRow) -> None:
        """Take the ticket back if the POS has it, and can; the printer lets the kitchen know."""
        key, on_paper, reason = row.order_id, False, reasons.customer_text(row.reason_code)
        order = order_of(key, row.payload)
        try:
            if self.paper is not None and not await _surely_none(self.paper, key):
                on_paper = True
                await self.paper.cancel_ticket(order, key, reason)
        except PosFailure:
            entry.failures += 1
            entry.next_try = self._after(entry.failures)
            return
        ended = events.Withdrawn("taken_back")
        try:
            if row.ticket_reference == ON_PAPER:
                pass
            elif row.ticket is TicketState.WRITING and await _surely_none(self._pos, key):
                if self._may_land(entry):
                    raise MayStillLand
                await self._pos_answered()
                ended = events.Withdrawn("taken_back" if on_paper else "never_written")
            elif self._pos.cancels_tickets:
                await self._pos.cancel_ticket(order, key, reason)
                await self._pos_answered()
            else:
                ended = events.Withdrawn("left_to_person")
        except PosFailure as failure:
            if reasons.may_pass(failure):
                await self._back_off(entry, failure)
                return
            ended = events.Withdrawn("left_to_person", failure.message, failure.fix)
        await self._orders.commit(row.order_id, ended)


async def _surely_none(pos: "PosRunner", key: str) -> bool:
    try:
        return await pos.find_ticket(key) is None
    except TicketOutcomeUnknown:  # it may be there: it is taken back anyway
        return False
