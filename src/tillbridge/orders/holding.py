"""Old orders that a person has to want before they are written.

A printer that is switched on in the evening must not print the backlog of the day. The adapter
says how old an order may be; its age counts from when it was placed, and anew from when somebody
last had it tried again: that is how one says that it is still wanted.
"""

from collections.abc import Callable

from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import orders
from tillbridge.ledger.orders import OrderRow
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.state import Held, can_be_written

log = get_logger()


def age_ms(row: OrderRow, released_at: int | None, now_ms: int) -> int:
    """Return how old the order is, or how long ago somebody asked for it (`released_at`)."""
    return now_ms - max(row.placed_at or row.received_at, released_at or 0)


class LateOrders:
    """Holds what is older than `limit_s` says (seconds; 0 holds nothing)."""

    def __init__(self, books: StoreBooks, limit_s: Callable[[], float]) -> None:
        self._books = books
        self._limit_s = limit_s

    async def holds(self, row: OrderRow) -> bool:
        """Return whether the order has to wait for a person, who is then told."""
        limit_ms = self._limit_s() * 1000
        now_ms = self._books.clock.now_ms()
        age = age_ms(row, None, now_ms)
        if not limit_ms or age <= limit_ms:
            return False
        store, order_id = row.store, row.order_id
        released_at = await self._books.ledger.read(
            lambda connection: orders.last_at(connection, store, order_id, "order.retried")
        )
        if age_ms(row, released_at, now_ms) <= limit_ms:
            return False
        minutes = age // 60_000
        note = "held: " + _("It was {minutes} minutes old, and nobody asked for it.").format(
            minutes=minutes
        )
        change = await self._books.commit(order_id, Held(note))
        if change is not None and can_be_written(change.after):
            log.warning("order.held", store=store, order=order_id, minutes=minutes)
        return True
