"""Compares the tickets in the POS with the ledger, and mends what no single call can see.

A POS whose writes hang while its reads answer carries out a write after everybody has given it up:
the order is there twice, or there although it was cancelled. And a ticket that staff deletes
leaves nothing that could tell of it.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tillbridge.adapter import (
    ListedTicket,
    PosFailure,
    RejectReason,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger import orders
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.ledger.orders import BY_HAND, is_on_paper
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.commit import OrderRepository
from tillbridge.orders.events import order_of
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.problems import called
from tillbridge.orders.reasons import AfterFailure, after_failure, customer_text, failure_note
from tillbridge.orders.state import TicketLeft, TicketTakenBack, is_to_be_withdrawn

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

log = get_logger()

_MANY = "order.duplicate"
_NONE = "pos.tickets_missing"
_NAMED = 12
# How long a POS is asked for a ticket of a cancelled order that it did not have, and how often.
_LATE_MS = 3600 * 1000
_FIRST_LOOK_S = 30.0


@dataclass(frozen=True, slots=True)
class Surplus:
    """The tickets of one order that have to leave the POS, oldest first, and why."""

    tickets: tuple[ListedTicket, ...]
    why: str = ""


def surplus_of(
    row: OrderRow, log_of_order: Sequence[LogEntry], live: Sequence[ListedTicket]
) -> Surplus:
    """Return which of an order's live tickets are too many. The oldest one is the order's own.

    Of a cancelled order all are, but for one that was left to a person. The writer takes back the
    ticket of an order that is being cancelled.
    """
    if row.desired_state is not OrderState.CANCELLED:
        return Surplus(tuple(live[1:]), _("the till has carried out a write twice"))
    if is_to_be_withdrawn(row):
        return Surplus(())
    ended = [each.detail.get("how") for each in log_of_order if each.event == "order.withdrawn"]
    left = live[1:] if ended and ended[-1] == "left_to_person" else live
    return Surplus(tuple(left), _("the order is cancelled"))


def missing(rows: Sequence[OrderRow], tickets: Sequence[ListedTicket]) -> list[OrderRow]:
    """Return the open orders whose ticket was in the POS, and is not listed in any state."""
    listed = {ticket.key for ticket in tickets}
    return [
        row
        for row in rows
        if row.ticket is TicketState.WRITTEN
        and row.desired_state is not OrderState.CANCELLED
        and row.ticket_reference != BY_HAND
        and not is_on_paper(row)
        and row.order_id not in listed
    ]


class TicketReconciler:
    """Reconciles one store's tickets. `on_update` takes what follows as news from the POS."""

    def __init__(
        self,
        repository: OrderRepository,
        pos: "PosRunner",
        presence: PosPresence,
        on_update: Callable[[TicketUpdate], Awaitable[None]],
    ) -> None:
        self._orders = repository
        self._pos = pos
        self._presence = presence
        self._on_update = on_update
        self._refused: dict[
            str, PosFailure
        ] = {}  # by record: why the POS does not cancel that ticket
        self._looks: dict[str, tuple[float, float]] = {}  # by order: when next, and how long after
        self._failing = ""

    async def reconcile(self) -> None:
        """Compare once, and mend what differs. A POS that does not answer is asked again later."""
        if not self._presence.online:
            return
        try:
            if self._pos.lists_tickets:
                await self._compare()
            else:
                await self._look_for_late()
        except PosFailure as failure:
            note = failure_note(failure)
            if note != self._failing:
                log.warning("tickets.not_compared", store=self._orders.store, reason=note)
            self._failing = note
        else:
            self._failing = ""

    # -- a POS that lists its tickets

    async def _compare(self) -> None:
        before = await self._orders.ledger.read(
            lambda connection: orders.open_orders(connection, self._orders.store)
        )
        tickets = await self._pos.list_tickets()
        live: dict[str, list[ListedTicket]] = {}
        for ticket in tickets:
            if ticket.live:
                live.setdefault(ticket.key, []).append(ticket)
        self._orders.tracker.report(
            Scope(self._orders.store, frozenset({_MANY})), await self._several(live)
        )
        gone = [
            row
            for row in missing(before, tickets)
            if await self._pos.find_ticket(row.order_id) is None
        ]
        if self._is_another_pos(gone, tickets):
            return
        for row in gone:
            log.warning("ticket.deleted", store=self._orders.store, order=row.order_id)
            await self._on_update(_deleted(row.order_id))

    def _is_another_pos(self, gone: Sequence[OrderRow], tickets: Sequence[ListedTicket]) -> bool:
        """Return whether the POS has none of several orders: it was exchanged or set up anew.

        Nobody deletes all of them by hand, and to cancel them would refund every guest.
        """
        another = len(gone) > 1 and not tickets
        detail = {"count": len(gone), "orders": ", ".join(called(row) for row in gone[:_NAMED])}
        self._orders.tracker.report(
            Scope(self._orders.store, frozenset({_NONE})),
            [Found(_NONE, detail=detail)] if another else [],
        )
        return another

    async def _several(self, live: Mapping[str, Sequence[ListedTicket]]) -> list[Found]:
        """Take back what is too many; return the orders that are left in the POS several times."""
        left: list[Found] = []
        cancelled = await self._orders.ledger.read(
            lambda connection: orders.cancelled_among(connection, self._orders.store, live)
        )
        for key, tickets in live.items():
            if len(tickets) > 1 or key in cancelled:
                row, entries = await self._order(key)
                if row is None:
                    continue
                surplus = surplus_of(row, entries, tickets)
                taken = [await self._take_back(row, each, surplus.why) for each in surplus.tickets]
                if not all(taken):
                    left += await self._left(row, tickets, surplus)
        return left

    async def _order(self, order_id: str) -> tuple[OrderRow | None, list[LogEntry]]:
        store = self._orders.store
        return await self._orders.ledger.read(
            lambda connection: (
                orders.get_order(connection, store, order_id),
                orders.read_log(connection, store, order_id),
            )
        )

    async def _take_back(self, row: OrderRow, ticket: ListedTicket, why: str) -> bool:
        """Cancel one ticket; return whether it is cancelled."""
        if ticket.record in self._refused:
            return False
        order = order_of(row.order_id, row.payload)
        reason = customer_text(row.reason_code or ReasonCode.OTHER)
        try:
            await self._pos.cancel_listed_ticket(ticket, order, reason)
        except PosFailure as failure:
            if after_failure(failure) is AfterFailure.RETRY:
                raise
            self._refused[ticket.record] = failure
            return False
        await self._taken_back(row, ticket.reference, ticket.record, why)
        return True

    async def _left(
        self, row: OrderRow, tickets: Sequence[ListedTicket], surplus: Surplus
    ) -> list[Found]:
        """Return what a person has to know of tickets that the POS does not cancel."""
        failures = [
            self._refused[each.record] for each in surplus.tickets if each.record in self._refused
        ]
        failure = failures[0] if failures else None
        if row.desired_state is OrderState.CANCELLED:
            await self._left_in_pos(row, failure)
            return []
        detail = {
            "order": called(row),
            "count": len(tickets),
            "tickets": ", ".join(each.record for each in tickets),
            "younger": ", ".join(each.record for each in surplus.tickets),
            "detail": (failure.message or failure_note(failure)) if failure else "",
        }
        return [Found(_MANY, row.order_id, detail)]

    # -- a POS that only finds them one by one

    async def _look_for_late(self) -> None:
        """Ask for tickets of cancelled orders that the POS did not have, less and less often."""
        now_ms, now = self._orders.clock.now_ms(), self._orders.clock.monotonic()
        rows = await self._orders.ledger.read(
            lambda connection: orders.never_written_since(
                connection, self._orders.store, now_ms - _LATE_MS
            )
        )
        self._looks = {
            row.order_id: self._looks.get(row.order_id, (-math.inf, _FIRST_LOOK_S)) for row in rows
        }
        for row in rows:
            due, pause = self._looks[row.order_id]
            if now >= due and await self._was_unknown(row):
                self._looks[row.order_id] = (now + pause, 2 * pause)
                await self._take_back_late(row)

    async def _was_unknown(self, row: OrderRow) -> bool:
        """Return whether a write of the order ended without the POS saying how, then or since."""
        _row, entries = await self._order(row.order_id)
        if any(each.event in {"ticket.taken_back", "ticket.rejected"} for each in entries):
            return False
        return any(
            (each.event == "order.withdrawn" and each.detail.get("how") == "never_written")
            or (each.event == "order.wait" and "no_answer" in str(each.detail.get("reason")))
            for each in entries
        )

    async def _take_back_late(self, row: OrderRow) -> None:
        ticket = await self._pos.find_ticket(row.order_id)
        if ticket is None:
            return
        if not self._pos.cancels_tickets:
            await self._left_in_pos(row)
            return
        reason = customer_text(row.reason_code or ReasonCode.OTHER)
        try:
            await self._pos.cancel_ticket(order_of(row.order_id, row.payload), row.order_id, reason)
        except PosFailure as failure:
            if after_failure(failure) is AfterFailure.RETRY:
                raise
            await self._left_in_pos(row, failure)
            return
        await self._taken_back(row, ticket.reference, ticket.reference, _("the order is cancelled"))

    async def _left_in_pos(self, row: OrderRow, failure: PosFailure | None = None) -> None:
        """Let a person know, once: whoever has seen it is not told again."""
        _row, entries = await self._order(row.order_id)
        if not any(each.event == "ticket.left" for each in entries):
            words = TicketLeft(failure.message, failure.fix) if failure else TicketLeft()
            await self._orders.commit(row.order_id, words)

    async def _taken_back(self, row: OrderRow, reference: str, record: str, why: str) -> None:
        await self._orders.commit(row.order_id, TicketTakenBack(reference, record, why))
        log.warning(
            "ticket.taken_back",
            store=self._orders.store,
            order=row.order_id,
            record=record,
            why=why,
        )


def _deleted(order_id: str) -> TicketUpdate:
    return TicketUpdate(
        key=f"{order_id} deleted",
        order_id=order_id,
        status=TicketStatus.REJECTED,
        reason=RejectReason.OTHER,
        message=_("The ticket was deleted in the till."),
    )
