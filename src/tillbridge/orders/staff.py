"""What a person asks for about one order: try it again, cancel it, leave it to that person."""

from sqlalchemy import Connection

from tillbridge.errors import BridgeError
from tillbridge.i18n import _
from tillbridge.ledger import order_log, orders
from tillbridge.ledger.orders import UNWRITTEN, OrderRow, TicketState, is_on_paper
from tillbridge.log import get_logger
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders import marks
from tillbridge.orders.aftermath import bring_about
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.lifecycle import is_final
from tillbridge.orders.ports import OrderEffects
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import ByPerson, cancellation
from tillbridge.orders.telling import Teller
from tillbridge.orders.writing import TicketWriter

log = get_logger()

# What is told of a single order until somebody has seen to it.
OF_ONE_ORDER = ("order.not_written", "order.held", "order.not_in_till", "order.not_withdrawn")


class StaffRequests:
    """Does for one store's orders what `tillbridge orders retry`, `cancel` and `done` ask for."""

    def __init__(
        self,
        books: StoreBooks,
        effects: OrderEffects,
        presence: PosPresence,
        writer: TicketWriter,
        teller: Teller,
    ) -> None:
        self._books = books
        self._effects = effects
        self._presence = presence
        self._writer = writer
        self._teller = teller

    async def retry(self, order_id: str, *, by: str) -> str:
        """Try at once what is left to do for the order; one that was given up is taken up again.

        Returns a sentence for whoever asked. Raises BridgeError where there is nothing to try.
        """
        row = await self._known(order_id)
        if row.told is OrderState.CANCELLED:
            raise BridgeError(
                _("Order {order} is cancelled at the service.").format(order=order_id),
                fix=_("Ask the customer to order again."),
            )
        if row.told is OrderState.COMPLETED:
            raise BridgeError(_("Order {order} is completed.").format(order=order_id))
        if row.ticket is TicketState.WITHDRAWN:
            raise BridgeError(
                _("The ticket of order {order} was taken back out of the till.").format(
                    order=order_id
                ),
                fix=_("Write it by hand if it is still wanted."),
            )
        if row.closed_at is not None and row.ticket is TicketState.WRITTEN:
            raise BridgeError(_("Nothing is left to do for order {order}.").format(order=order_id))
        now_ms = self._books.clock.now_ms()
        reopened = await self._books.keep(
            lambda connection: _reopen(connection, row.store, order_id, now_ms, by=by)
        )
        log.info("order.retried", store=self._books.store, order=order_id)
        self._books.desk.close("order.held", self._books.store, order_id)
        if reopened is not None:
            self._writer.take(reopened, afresh=True)
        self._teller.service_back()
        self._teller.nudge(order_id)
        if reopened is not None and reopened.ticket in UNWRITTEN:
            return _("Order {order} is being written to the till.").format(order=order_id)
        return _("Order {order} is being told to the service.").format(order=order_id)

    async def cancel(self, order_id: str, code: ReasonCode, *, by: str) -> str:
        """Cancel the order, in the POS too where it can; return a sentence for whoever asked.

        Raises BridgeError where it is over already.
        """
        row = await self._known(order_id)
        if is_final(row.told) or row.closed_at is not None:
            raise BridgeError(
                _("Order {order} is over already.").format(order=order_id),
                fix=_("Look at it with: tillbridge orders show {order}").format(order=order_id),
            )
        cancelled = cancellation(ByPerson(code))
        await bring_about(cancelled, self._effects, self._presence)
        now_ms = self._books.clock.now_ms()
        changed = await self._books.keep(
            lambda connection: marks.cancel(
                connection, row, cancelled, now_ms, pos_has_none=False, by=by
            )
        )
        log.warning("order.to_cancel", store=self._books.store, order=order_id, code=code)
        self._writer.take(changed or row)
        self._teller.nudge(order_id)
        return _("Order {order} is being cancelled.").format(order=order_id)

    async def done(self, order_id: str, how: marks.ByHand, *, by: str) -> str:
        """Stop trying: `by` has typed the order into the till, or settled it in some other way.

        Returns a sentence for whoever asked. Raises BridgeError where it is over already, or the
        till has the ticket that was "typed".
        """
        row = await self._known(order_id)
        on_paper = is_on_paper(row)
        if row.closed_at is not None and not on_paper:
            raise BridgeError(
                _("Order {order} is over already.").format(order=order_id),
                fix=_("Look at it with: tillbridge orders show {order}").format(order=order_id),
            )
        typed = how == "typed"
        waits = row.ticket in UNWRITTEN or on_paper
        if typed and (not waits or row.wanted is OrderState.CANCELLED):
            raise BridgeError(
                _("Order {order} does not wait for the till.").format(order=order_id),
                fix=_("Look at it with: tillbridge orders show {order}").format(order=order_id),
            )
        now_ms = self._books.clock.now_ms()
        changed = await self._books.keep(
            lambda connection: marks.mark_handled(connection, row, how, now_ms, by=by)
        )
        log.warning("order.handled", store=self._books.store, order=order_id, how=how)
        for problem in OF_ONE_ORDER:
            self._books.desk.close(problem, self._books.store, order_id)
        self._writer.take(changed or row)
        self._teller.nudge(order_id)
        if typed:
            return _("Order {order} counts as written by hand; the service is told.").format(
                order=order_id
            )
        return _("Order {order} is left to you: the bridge does nothing more for it.").format(
            order=order_id
        )

    async def _known(self, order_id: str) -> OrderRow:
        row = await self._books.order(order_id)
        if row is None:
            raise BridgeError(
                _("There is no order {order}.").format(order=order_id),
                fix=_("See which there are with: tillbridge orders list"),
            )
        return row


def _reopen(
    connection: Connection, store: str, order_id: str, now_ms: int, *, by: str
) -> OrderRow | None:
    """Take an order up again that was given up, unless the service has finished it meanwhile."""
    row = orders.get_order(connection, store, order_id)
    if row is None or is_final(row.told):
        return row
    given_up = row.wanted is OrderState.CANCELLED or row.closed_at is not None
    if given_up:
        orders.update_order(
            connection,
            store,
            order_id,
            now_ms,
            # The POS is asked whether it has it before anything is written.
            ticket=TicketState.WRITING,
            wanted=OrderState.CREATED if row.wanted is OrderState.CANCELLED else row.wanted,
            reason_code=None,
            message="",
            closed_at=None,
        )
    order_log.log_event(connection, store, order_id, "order.retried", now_ms, by=by)
    return orders.get_order(connection, store, order_id)
