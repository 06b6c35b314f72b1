"""What the POS says of tickets: news of them, and which ones it has.

News is committed first, then confirmed to the adapter. Comparing mends what no single call can see:
a POS whose writes hang while its reads answer carries out a write after everybody has given it up
(the order is there twice, or there although it was cancelled), and a ticket that staff deletes
leaves nothing that could report it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from tillbridge.adapter import (
    ListedTicket,
    PosFailure,
    RejectReason,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.core.context import StoreContext
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger import orders
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.ledger.orders import BY_HAND, is_on_paper
from tillbridge.ledger.problems import report
from tillbridge.model.order import OrderState
from tillbridge.orders import events, state
from tillbridge.orders.intake import order_of
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import cancellation, customer_text, failure_note, may_pass
from tillbridge.orders.repository import (
    UNKNOWN,
    OrderRepository,
    SetAside,
    commit,
    display_name,
)

log = get_logger()

_UNREADABLE = "pos.update_unreadable"
_MANY = "order.duplicate"
_NONE = "pos.tickets_missing"
_NAMED = 12
# How long a POS is asked for a ticket of a cancelled order that it did not have, and how often.
_LATE_MS = 3600 * 1000
_FIRST_LOOK_S = 30.0
_READ_ALL_THE_SAME_S = 60.0


class FailureLog:
    """Logs why the POS could not be read, once until it can be or says something else."""

    def __init__(self, event: str, store: str) -> None:
        self._event = event
        self._store = store
        self._note = ""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read the POS within this; a PosFailure is logged and ends the reading."""
        note = ""
        try:
            yield
        except PosFailure as failure:
            note = failure_note(failure)
            if note != self._note:
                log.warning(self._event, store=self._store, reason=note)
        self._note = note


# -- news of tickets


def commit_update(
    connection: Connection,
    store: str,
    update: TicketUpdate,
    cancelled: events.CancelRequested | None,
    now_ms: int,
) -> bool | None:
    """Commit what the POS reports, and whether it is new; None if the order is not known."""
    order_id = update.order_id
    row = orders.get_order(connection, store, order_id)
    if row is None:
        found = Found(UNKNOWN, order_id, {"order": order_id})
        report(connection, Scope.of_one(UNKNOWN, store, order_id), [found], now_ms)
        return None
    name = f"ticket.{update.status}"
    news = orders.last_at(connection, store, order_id, name) is None
    if news:
        why = {"reason": update.reason, "message": update.message} if update.reason else {}
        orders.log_event(connection, store, order_id, name, now_ms, **why)
        if row.closed_at is not None and _has_lapsed(connection, row):
            commit(connection, store, order_id, events.Reopened(), now_ms)
    commit(connection, store, order_id, cancelled or events.TicketMoved(update.status), now_ms)
    return news


def _has_lapsed(connection: Connection, row: OrderRow) -> bool:
    """Return whether nobody closed the order, but the clock, which may have jumped."""
    log_of_order = orders.read_log(connection, row.store, row.order_id)
    ends = [each for each in log_of_order if each.event in {"order.closed", "order.handled"}]
    return bool(ends) and ends[-1].detail.get("why") == "over"


class UpdateReader:
    """Reads and commits the POS's news."""

    def __init__(
        self, context: StoreContext, repository: OrderRepository, presence: PosPresence
    ) -> None:
        self._orders = repository
        self._pos = context.pos.orders
        self._every_s = self._at_rest_s = context.settings.pos.poll_s
        self._presence = presence
        self.worker = Worker("updates", self._step, repository.supervisor, repository.clock)
        self._failures = FailureLog("pos.updates_failed", repository.store)
        self._aside = SetAside("updates", repository)  # by the key of the news

    def is_woken_by_files(self) -> None:
        """Read by itself only now and then: whoever watches the folder wakes the worker."""
        self._at_rest_s = max(self._every_s, _READ_ALL_THE_SAME_S)

    async def _step(self) -> float:
        return self._at_rest_s if await self.read() else self._every_s

    async def read(self) -> bool:
        """Read and commit all there is; news at which this fails unexpectedly waits.

        Return whether nothing is left that has to be read again.
        """
        all_read = False
        with self._failures.reading():
            skip = self._aside.not_due()
            for update in await self._pos.read_updates():
                if update.key in skip:
                    continue
                try:
                    await self.apply(update)
                except LedgerError:
                    raise
                except Exception as failure:  # noqa: BLE001 -- one of them must not stop the others
                    self._aside.failed(update.key, failure, order=update.order_id)
                    continue
                self._aside.works(update.key)
                await self._pos.update_handled(update)
            bad = await self._pos.unreadable_updates()
            detail = [(each.place, {"detail": f"{each.place}: {each.text}"}) for each in bad]
            self._orders.report(_UNREADABLE, *(Found(_UNREADABLE, *each) for each in detail))
            all_read = not bad
        return all_read and self._aside.due_in() is None

    async def apply(self, update: TicketUpdate) -> None:
        """Commit a piece of news, and bring about what follows from it."""
        store, order_id = self._orders.store, update.order_id
        cancelled = None
        if update.status is TicketStatus.REJECTED:
            cancelled = cancellation(update, pos_has_none=True)
            row = await self._orders.order(order_id)
            if row is not None and row.closed_at is None:
                await self._presence.cancelled(cancelled)
        now_ms = self._orders.clock.now_ms()
        news = await self._orders.write(commit_update, update, cancelled, now_ms)
        if news is None:
            log.warning("ticket.unknown_order", store=store, order=order_id, status=update.status)
            return
        if news:
            reason = None if cancelled is None else cancelled.code
            event = f"ticket.{update.status}"
            log.info(event, store=store, order=order_id, reason=reason)


# -- the tickets compared with the ledger


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
    if state.is_to_be_withdrawn(row):
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
    """Reconciles one store's tickets with the ledger; a ticket that is gone becomes news."""

    def __init__(
        self,
        context: StoreContext,
        repository: OrderRepository,
        presence: PosPresence,
        updates: UpdateReader,
    ) -> None:
        self._orders = repository
        self._pos = context.pos.orders
        self._every_s = context.settings.pos.poll_s
        self._presence = presence
        self._updates = updates
        self.worker = Worker("reconciler", self._step, repository.supervisor, repository.clock)
        self._refused: dict[str, PosFailure] = {}  # why the POS does not cancel a ticket, by record
        self._looks: dict[str, tuple[float, float]] = {}  # by order: when next, and how long after
        self._failures = FailureLog("tickets.not_compared", repository.store)

    async def _step(self) -> float | None:
        """Compare once, and mend what differs. A POS that does not answer is asked again later."""
        if self._presence.online:
            with self._failures.reading():
                if self._pos.lists_tickets:
                    await self._compare()
                elif not await self._look_for_late():
                    return None  # until a change wakes it
        return self._every_s

    # -- a POS that lists its tickets

    async def _compare(self) -> None:
        before = await self._orders.read(orders.open_orders)
        tickets = await self._pos.list_tickets()
        live: dict[str, list[ListedTicket]] = {}
        for ticket in tickets:
            if ticket.live:
                live.setdefault(ticket.key, []).append(ticket)
        self._orders.report(_MANY, *await self._cancel_surplus(live))
        gone = [
            row
            for row in missing(before, tickets)
            if await self._pos.find_ticket(row.order_id) is None
        ]
        # A POS that has none of several orders was exchanged or set up again: nobody deletes all of
        # them by hand, and to cancel them would refund every guest.
        another = len(gone) > 1 and not tickets
        named = ", ".join(display_name(row) for row in gone[:_NAMED])
        detail = {"count": len(gone), "orders": named}
        self._orders.report(_NONE, *([Found(_NONE, detail=detail)] if another else []))
        for row in () if another else gone:
            log.warning("ticket.deleted", store=self._orders.store, order=row.order_id)
            deleted = TicketUpdate(
                key=f"{row.order_id} deleted",
                order_id=row.order_id,
                status=TicketStatus.REJECTED,
                reason=RejectReason.OTHER,
                message=_("The ticket was deleted in the till."),
            )
            await self._updates.apply(deleted)

    async def _cancel_surplus(self, live: Mapping[str, Sequence[ListedTicket]]) -> list[Found]:
        """Take back what is too many; return the orders that are left in the POS several times."""
        left: list[Found] = []
        cancelled = await self._orders.read(orders.cancelled_among, live)
        for key, tickets in live.items():
            row = None
            if len(tickets) > 1 or key in cancelled:
                row = await self._orders.order(key)
            if row is None:
                continue
            surplus = surplus_of(row, await self._orders.read(orders.read_log, key), tickets)
            for ticket in surplus.tickets:
                if ticket.record not in self._refused:
                    failure = await self._cancel_ticket(row, ticket, surplus.why)
                    if failure is not None:
                        self._refused[ticket.record] = failure
            records = [each.record for each in surplus.tickets]
            failures = [self._refused[each] for each in records if each in self._refused]
            if not failures:
                continue
            if row.desired_state is OrderState.CANCELLED:
                await self._left_in_pos(row, failures[0])
                continue
            detail = {
                "order": display_name(row),
                "count": len(tickets),
                "tickets": ", ".join(each.record for each in tickets),
                "younger": ", ".join(records),
                "detail": failures[0].message or failure_note(failures[0]),
            }
            left.append(Found(_MANY, row.order_id, detail))
        return left

    # -- a POS that only finds them one by one

    async def _look_for_late(self) -> bool:
        """Ask for tickets of cancelled orders that the POS did not have, less and less often.

        Return whether there are any.
        """
        since_ms, now = self._orders.clock.now_ms() - _LATE_MS, self._orders.clock.monotonic()
        rows = await self._orders.read(orders.never_written_since, since_ms)
        self._looks = {
            row.order_id: self._looks.get(row.order_id, (-math.inf, _FIRST_LOOK_S)) for row in rows
        }
        for row in rows:
            due, pause = self._looks[row.order_id]
            if now < due or not await self._was_unknown(row):
                continue
            self._looks[row.order_id] = (now + pause, 2 * pause)
            key, found = row.order_id, await self._pos.find_ticket(row.order_id)
            if found is None:
                continue
            if not self._pos.cancels_tickets:
                await self._left_in_pos(row)
                continue
            ticket = ListedTicket(key, found.reference, found.reference, live=True)
            failure = await self._cancel_ticket(row, ticket, _("the order is cancelled"))
            if failure is not None:
                await self._left_in_pos(row, failure)
        return bool(rows)

    async def _was_unknown(self, row: OrderRow) -> bool:
        """Return whether a write of the order ended without the POS saying how, then or since."""
        entries = await self._orders.read(orders.read_log, row.order_id)
        if any(each.event in {"ticket.taken_back", "ticket.rejected"} for each in entries):
            return False
        return any(
            (each.event == "order.withdrawn" and each.detail.get("how") == "never_written")
            or (each.event == "order.wait" and "no_answer" in str(each.detail.get("reason")))
            for each in entries
        )

    # -- a ticket too many

    async def _cancel_ticket(
        self, row: OrderRow, ticket: ListedTicket, why: str
    ) -> PosFailure | None:
        """Cancel one ticket; return why the POS refuses to, None if it is cancelled."""
        order, reason = order_of(row.order_id, row.payload), customer_text(row.reason_code)
        try:
            if self._pos.lists_tickets:
                await self._pos.cancel_listed_ticket(ticket, order, reason)
            else:
                await self._pos.cancel_ticket(order, ticket.key, reason)
        except PosFailure as failure:
            if may_pass(failure):
                raise
            return failure
        taken_back = events.SurplusTicketCancelled(ticket.reference, ticket.record, why)
        await self._orders.commit(row.order_id, taken_back)
        return None

    async def _left_in_pos(self, row: OrderRow, failure: PosFailure | None = None) -> None:
        """Report it to a person, once: it is not reported again after it was seen."""
        if await self._orders.read(orders.last_at, row.order_id, "ticket.left") is None:
            event = (
                events.TicketLeft(failure.message, failure.fix) if failure else events.TicketLeft()
            )
            await self._orders.commit(row.order_id, event)
