"""What is done with one order's ticket in a POS, and on the printer that stands in for it.

A ticket is looked for where it may be there, and marked where nobody knows. Old orders wait for a
person: a printer that is switched on in the evening must not print the backlog of the day. How old
an order may be is the adapter's to say; its age counts from when it was placed, and anew from when
somebody last had it tried again, which is how one says that it is still wanted.
"""

from typing import TYPE_CHECKING

from tillbridge.adapter import Ticket, TicketMark, TicketOutcomeUnknown
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import ON_PAPER
from tillbridge.model.order import Order, ReasonCode
from tillbridge.orders.intake import order_of
from tillbridge.orders.reasons import customer_text
from tillbridge.orders.repository import OrderRepository
from tillbridge.orders.state import Held, HowWithdrawn

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

OFFLINE = "fallback.offline"
_DUPLICATE = frozenset({TicketMark.POSSIBLE_DUPLICATE})
_NOT_IN_TILL = frozenset({TicketMark.NOT_IN_TILL})
_LOOK_FIRST = frozenset({TicketMark.NOT_IN_TILL, TicketMark.TILL_MAY_HAVE_IT})

log = get_logger()


class MayStillLand(TicketOutcomeUnknown):
    """The POS does not have the ticket, but an earlier write of it may yet take effect."""

    def __init__(self) -> None:
        super().__init__(
            _("The till may still be writing the order: it has not answered the last try.")
        )


class Tickets:
    """The tickets of one store in its POS, or on its printer."""

    def __init__(self, repository: OrderRepository, pos: "PosRunner") -> None:
        self._orders = repository
        self._pos = pos

    async def is_held(self, row: OrderRow) -> bool:
        """Return whether the order is so old that it waits for a person, who then hears of it."""
        limit_ms = self._pos.hold_older_than_s * 1000
        now_ms = self._orders.clock.now_ms()
        placed_at = row.placed_at or row.received_at
        if not limit_ms or now_ms - placed_at <= limit_ms:
            return False
        asked_at = await self._orders.read(orders.last_at, row.order_id, "order.retried")
        if now_ms - max(placed_at, asked_at or 0) <= limit_ms:
            return False
        minutes = (now_ms - placed_at) // 60_000
        note = "held: " + _("It was {minutes} minutes old, and nobody asked for it.").format(
            minutes=minutes
        )
        await self._orders.commit(row.order_id, Held(note), minutes=minutes)
        return True

    async def write(
        self, row: OrderRow, order: Order, *, ask_first: bool, may_land: bool
    ) -> Ticket | None:
        """Write the ticket, unless the POS has it; None where a person is to ask for it first.

        Where nobody knows whether it was written before, it is written with a mark that says so.
        `may_land`: an earlier write may yet take effect, so nothing is written now (MayStillLand).
        Raises PosFailure.
        """
        key = row.order_id
        if not ask_first:
            return await self._pos.write_ticket(order, key)
        try:
            ticket = await self._pos.find_ticket(key)
        except TicketOutcomeUnknown:
            if not self._pos.marks_tickets:
                raise
            if await self.is_held(row):
                return None
            log.warning("order.written_again", store=row.store, order=key)
            return await self._pos.write_marked_ticket(order, key, _DUPLICATE)
        if ticket is not None:
            return ticket
        if may_land:
            raise MayStillLand
        if await self.is_held(row):
            return None
        return await self._pos.write_ticket(order, key)

    async def withdraw(self, row: OrderRow, *, on_paper: bool, may_land: bool) -> HowWithdrawn:
        """Take the ticket back if the POS has it, and can; return how it ended.

        `on_paper`: the printer that stands in for the POS had it, and has told the kitchen.
        `may_land`: a write may yet take effect, so a POS that does not have the ticket is asked
        again later. Raises PosFailure.
        """
        key = row.order_id
        if row.ticket_reference == ON_PAPER:
            return "taken_back"
        if row.ticket is TicketState.WRITING and await self._surely_none(key):
            if may_land:
                raise MayStillLand
            return "taken_back" if on_paper else "never_written"
        if not self._pos.cancels_tickets:
            return "left_to_person"
        await self._pos.cancel_ticket(order_of(key, row.payload), key, _reason(row))
        return "taken_back"

    async def _surely_none(self, key: str) -> bool:
        try:
            return await self._pos.find_ticket(key) is None
        except TicketOutcomeUnknown:  # it may be there: it is taken back all the same
            return False


class FallbackPrinter(Tickets):
    """The printer that stands in for a till that cannot take an order: `[stores.NAME.fallback]`.

    What comes out there says NOT IN TILL. An order goes there once it has waited `after_s` seconds,
    and is printed once; from then on it belongs to the people of the restaurant, and nothing of it
    is written to the till by itself: somebody may be typing it there. See docs/decisions, An order
    on paper is taken.
    """

    def __init__(self, repository: OrderRepository, pos: "PosRunner", after_s: float) -> None:
        super().__init__(repository, pos)
        self.after_s = after_s
        self._ready: bool | None = None  # as was last logged

    async def find(self, order_id: str) -> Ticket | None:
        """Return the ticket that came out; None where surely none did.

        Raises TicketOutcomeUnknown where nobody can tell, PosOffline where nobody can tell now.
        """
        return await self._pos.find_ticket(order_id)

    async def print(self, row: OrderRow, *, till_may_have_it: bool) -> Ticket | None:
        """Print the order, unless it surely was printed; None where it is too old to be.

        Raises PosFailure.
        """
        marks = _LOOK_FIRST if till_may_have_it else _NOT_IN_TILL
        key = row.order_id
        try:
            found = await self._pos.find_ticket(key)
        except TicketOutcomeUnknown:
            found, marks = None, marks | _DUPLICATE
        if found is not None:
            return found
        if await self.is_held(row):
            return None
        return await self._pos.write_marked_ticket(order_of(key, row.payload), key, marks)

    async def take_back(self, row: OrderRow) -> bool:
        """Print that the order is off, if any of it may be on paper; return whether it may be.

        Raises PosFailure.
        """
        key = row.order_id
        if await self._surely_none(key):
            return False
        await self._pos.cancel_ticket(order_of(key, row.payload), key, _reason(row))
        return True

    async def check(self) -> None:
        """Report whether the printer could stand in now."""
        store, health = self._orders.store, await self._pos.health()
        if health.online is not self._ready:
            self._ready = health.online
            event = "fallback.ready" if health.online else "fallback.offline"
            (log.info if health.online else log.warning)(event, store=store, detail=health.detail)
        found = Found(OFFLINE, detail={"detail": health.detail or "?"})
        self._orders.report(OFFLINE, *([] if health.online else [found]))


def _reason(row: OrderRow) -> str:
    return customer_text(row.reason_code or ReasonCode.OTHER)
