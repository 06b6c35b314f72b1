"""Takes the ticket of a cancelled order back out of the POS."""

from tillbridge.adapter import TicketOutcomeUnknown
from tillbridge.ledger.orders import ON_PAPER, OrderRow, TicketState
from tillbridge.model.order import ReasonCode
from tillbridge.orders.events import order_of
from tillbridge.orders.ports import OrderPos
from tillbridge.orders.putting import MayStillLand
from tillbridge.orders.reasons import customer_text
from tillbridge.orders.state import HowEnded


async def _surely_none(pos: OrderPos, key: str) -> bool:
    try:
        return await pos.find_ticket(key) is None
    except TicketOutcomeUnknown:  # it may be there: it is taken back all the same
        return False


async def withdraw(
    pos: OrderPos, row: OrderRow, *, on_paper: bool, may_land: bool = False
) -> HowEnded:
    """Take the ticket back if the POS has it, and can; return how it ended. Raises PosFailure.

    `on_paper`: the printer that stands in for the POS had it, and has told the kitchen. `may_land`:
    a write may yet take effect, so a POS that does not have the ticket is asked again later.
    """
    key = row.order_id
    if row.ticket_reference == ON_PAPER:
        return "taken_back"
    if row.ticket is TicketState.WRITING and await _surely_none(pos, key):
        if may_land:
            raise MayStillLand
        return "taken_back" if on_paper else "never_written"
    if not pos.cancels_tickets:
        return "left_to_person"
    reason = customer_text(row.reason_code or ReasonCode.OTHER)
    await pos.cancel_ticket(order_of(key, row.payload), key, reason)
    return "taken_back"
