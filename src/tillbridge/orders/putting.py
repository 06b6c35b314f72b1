"""Brings one order into the POS: looked for where it may be there, marked where nobody knows."""

from tillbridge.adapter import Ticket, TicketMark, TicketOutcomeUnknown
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.orders import OrderRow
from tillbridge.orders.events import order_of
from tillbridge.orders.holding import LateOrders
from tillbridge.orders.ports import OrderPos

log = get_logger()

_DUPLICATE = frozenset({TicketMark.POSSIBLE_DUPLICATE})


class MayStillLand(TicketOutcomeUnknown):
    """The POS does not have the ticket, but an earlier write of it may yet take effect."""

    def __init__(self) -> None:
        super().__init__(
            _("The till may still be writing the order: it has not answered the last try.")
        )


async def put(
    pos: OrderPos, late: LateOrders, row: OrderRow, *, ask_first: bool, may_land: bool = False
) -> Ticket | None:
    """Write the ticket, unless the POS has it; None where a person is to ask for it first.

    Where nobody knows whether it was written before, it is written with a mark that says so.
    `may_land`: an earlier write may yet take effect, so nothing is written now (MayStillLand).
    Raises PosFailure.
    """
    order, order_id = order_of(row.order_id, row.payload), row.order_id
    if not ask_first:
        return await pos.write_ticket(order, order_id)
    try:
        ticket = await pos.find_ticket(order_id)
    except TicketOutcomeUnknown:
        if not pos.marks_tickets:
            raise
        if await late.holds(row):
            return None
        log.warning("order.written_again", store=row.store, order=order_id)
        return await pos.write_marked_ticket(order, order_id, _DUPLICATE)
    if ticket is not None:
        return ticket
    if may_land:
        raise MayStillLand
    if await late.holds(row):
        return None
    return await pos.write_ticket(order, order_id)
