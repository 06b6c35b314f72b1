"""The printer that stands in for a till that cannot take an order: `[stores.NAME.fallback]`.

What comes out there says NOT IN TILL. It is printed once; from then on the order belongs to the
people of the restaurant, and nothing of it is written to the till by itself: somebody may be
typing it there. See docs/decisions, An order on paper is taken.
"""

import asyncio

from tillbridge.adapter import Ticket, TicketMark, TicketOutcomeUnknown
from tillbridge.core.log import get_logger
from tillbridge.ledger.orders import OrderRow
from tillbridge.model.order import ReasonCode
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.events import order_of
from tillbridge.orders.holding import LateOrders
from tillbridge.orders.ports import OrderPos
from tillbridge.orders.reasons import customer_text

log = get_logger()

_NOT_IN_TILL = frozenset({TicketMark.NOT_IN_TILL})
_LOOK_FIRST = frozenset({TicketMark.NOT_IN_TILL, TicketMark.TILL_MAY_HAVE_IT})


class Paper:
    """One store's fallback. An order goes there once it has waited `after_s` seconds."""

    def __init__(self, books: StoreBooks, pos: OrderPos, after_s: float) -> None:
        self._books = books
        self._pos = pos
        self._late = LateOrders(books, lambda: pos.hold_older_than_s)
        self.after_s = after_s

    async def find(self, order_id: str) -> Ticket | None:
        """Return the ticket that came out; None where surely none did.

        Raises TicketOutcomeUnknown where nobody can tell, PosOffline where nobody can tell now.
        """
        return await self._pos.find_ticket(order_id)

    async def put(self, row: OrderRow, *, till_may_have_it: bool) -> Ticket | None:
        """Print the order, unless it surely was printed; None where it is too old to be.

        Raises PosFailure.
        """
        marks = _LOOK_FIRST if till_may_have_it else _NOT_IN_TILL
        key = row.order_id
        try:
            found = await self._pos.find_ticket(key)
        except TicketOutcomeUnknown:
            found, marks = None, marks | {TicketMark.POSSIBLE_DUPLICATE}
        if found is not None:
            return found
        if await self._late.holds(row):
            return None
        return await self._pos.write_marked_ticket(order_of(key, row.payload), key, marks)

    async def take_back(self, row: OrderRow) -> bool:
        """Print that the order is off, if any of it may be on paper; return whether it may be.

        Raises PosFailure.
        """
        key = row.order_id
        try:
            if await self._pos.find_ticket(key) is None:
                return False
        except TicketOutcomeUnknown:
            pass
        reason = customer_text(row.reason_code or ReasonCode.OTHER)
        await self._pos.cancel_ticket(order_of(key, row.payload), key, reason)
        return True

    async def watch(self, every_s: float) -> None:
        """Tell a person when the printer could not stand in; until cancelled."""
        store, there = self._books.store, None
        while True:
            health = await self._pos.health()
            if health.online is not there:
                there = health.online
                event = "fallback.ready" if there else "fallback.offline"
                (log.info if there else log.warning)(event, store=store, detail=health.detail)
            if there:
                self._books.desk.close("fallback.offline", store)
            else:
                self._books.desk.open("fallback.offline", store, detail=health.detail or "?")
            await asyncio.sleep(every_s)
