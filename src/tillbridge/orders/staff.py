"""What a person asks for about one order: try it again, cancel it, leave it to that person."""

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.commit import OrderRepository
from tillbridge.orders.lifecycle import Call, Standing, is_final, next_call
from tillbridge.orders.notifier import ServiceNotifier
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.problems import called
from tillbridge.orders.reasons import ByPerson, cancellation
from tillbridge.orders.state import ByHand, Handled, Retried, cancel_of
from tillbridge.orders.ticket_writer import TicketWriter

log = get_logger()


class StaffRequests:
    """Does for one store's orders what `tillbridge orders retry`, `cancel` and `done` ask for."""

    def __init__(
        self,
        repository: OrderRepository,
        presence: PosPresence,
        writer: TicketWriter,
        notifier: ServiceNotifier,
    ) -> None:
        self._orders = repository
        self._presence = presence
        self._writer = writer
        self._notifier = notifier

    async def retry(self, order_id: str, *, by: str) -> str:
        """Try at once what is left to do for the order; one that was given up is taken up again.

        A call that the service refused is made again. Returns a sentence for whoever asked. Raises
        BridgeError where there is nothing to try.
        """
        row = await self._known(order_id)
        order = called(row)
        if row.service_state is OrderState.CANCELLED:
            raise BridgeError(
                _("Order {order} is cancelled at the service.").format(order=order),
                fix=_("Ask the customer to order again."),
            )
        if row.service_state is OrderState.COMPLETED:
            raise BridgeError(_("Order {order} is completed.").format(order=order))
        cancel_again = Call.CANCEL.value in row.refused
        if row.ticket is TicketState.WITHDRAWN and not cancel_again:
            raise BridgeError(
                _("The ticket of order {order} was taken back out of the till.").format(
                    order=order
                ),
                fix=_("Write it by hand if it is still wanted."),
            )
        if row.closed_at is not None and row.ticket is TicketState.WRITTEN and _all_told(row):
            raise BridgeError(_("Nothing is left to do for order {order}.").format(order=order))
        change = await self._orders.commit(order_id, Retried(by))
        log.info("order.retried", store=self._orders.store, order=order_id)
        after = row if change is None else change.after
        self._writer.take(after, afresh=True)
        self._notifier.service_back()
        self._notifier.take(after)
        if cancel_again:
            return _("The service is asked once more to cancel order {order}.").format(order=order)
        if after.ticket in UNWRITTEN:
            return _("Order {order} is being written to the till.").format(order=order)
        return _("Order {order} is being told to the service.").format(order=order)

    async def cancel(self, order_id: str, code: ReasonCode, *, by: str) -> str:
        """Cancel the order, in the POS too where it can; return a sentence for whoever asked.

        Raises BridgeError where the service has finished it already.
        """
        row = await self._known(order_id)
        if is_final(row.service_state):
            raise _over(row)
        cancelled = cancellation(ByPerson(code))
        await self._presence.cancelled(cancelled)
        await self._orders.commit(order_id, cancel_of(cancelled, pos_has_none=False, by=by))
        log.warning("order.to_cancel", store=self._orders.store, order=order_id, code=code)
        return _("Order {order} is being cancelled.").format(order=called(row))

    async def done(self, order_id: str, how: ByHand, *, by: str) -> str:
        """Stop trying: `by` has typed the order into the till, or settled it in some other way.

        Returns a sentence for whoever asked. Raises BridgeError where it is over already, or the
        till has the ticket that was "typed".
        """
        row = await self._known(order_id)
        on_paper = is_on_paper(row)
        if row.closed_at is not None and not on_paper and not row.unseen:
            raise _over(row)
        waits = (row.ticket in UNWRITTEN and row.closed_at is None) or on_paper
        if how == "typed" and (not waits or row.desired_state is OrderState.CANCELLED):
            raise BridgeError(
                _("Order {order} does not wait for the till.").format(order=called(row)),
                fix=_fix(row),
            )
        await self._orders.commit(order_id, Handled(how, by))
        log.warning("order.handled", store=self._orders.store, order=order_id, how=how)
        if how == "typed":
            return _("Order {order} counts as written by hand; the service is told.").format(
                order=called(row)
            )
        return _("Order {order} is left to you: the bridge does nothing more for it.").format(
            order=called(row)
        )

    async def _known(self, order_id: str) -> OrderRow:
        row = await self._orders.order(order_id)
        if row is None:
            raise BridgeError(
                _("There is no order {order}.").format(order=order_id),
                fix=_("See which there are with: tillbridge orders list"),
            )
        return row


def _all_told(row: OrderRow) -> bool:
    """Return whether the service knows all that was wanted, or nobody is to tell it any more."""
    standing = Standing(row.service_state, frozenset({row.service_state}))
    return is_on_paper(row) or next_call(standing, row.desired_state) is None


def _over(row: OrderRow) -> BridgeError:
    return BridgeError(_("Order {order} is over already.").format(order=called(row)), fix=_fix(row))


def _fix(row: OrderRow) -> str:
    return _("Look at it with: tillbridge orders show {order}").format(order=row.order_id)
