"""When there is nothing left to do for an order."""

from sqlalchemy import Connection

from tillbridge.ledger import orders
from tillbridge.ledger.orders import OrderRow, TicketState
from tillbridge.model.order import OrderState
from tillbridge.orders.lifecycle import Standing, next_call

# A till that never says "ready", and a service that never says "delivered": a day later it is over.
STALE_MS = 24 * 3600 * 1000


def may_be_told(row: OrderRow) -> bool:
    """Return whether the service may hear of this order: the POS has it, or it is cancelled."""
    return row.wanted is OrderState.CANCELLED or row.ticket is TicketState.WRITTEN


def is_to_be_withdrawn(row: OrderRow) -> bool:
    """Return whether the POS has, or may have, the ticket of an order that is cancelled."""
    return row.wanted is OrderState.CANCELLED and row.ticket in {
        TicketState.WRITING,
        TicketState.WRITTEN,
    }


def is_done(row: OrderRow) -> bool:
    """Return whether the service has finished the order, and the POS has no ticket too many."""
    if row.told is OrderState.CANCELLED:
        return not is_to_be_withdrawn(row)
    return row.told is OrderState.COMPLETED


def is_stale(row: OrderRow, now_ms: int) -> bool:
    """Return whether all that was wanted has been told, and nothing has happened for a day."""
    standing = Standing(row.told, frozenset({row.told}))
    return (
        next_call(standing, row.wanted) is None
        and row.ticket is TicketState.WRITTEN
        and now_ms - max(row.updated_at, row.received_at) > STALE_MS
    )


def close_if_done(connection: Connection, store: str, order_id: str, now_ms: int) -> bool:
    """Close the order if it is done; return whether it is closed."""
    row = orders.get_order(connection, store, order_id)
    if row is None or row.closed_at is not None:
        return True
    if is_done(row):
        orders.update_order(connection, store, order_id, now_ms, closed_at=now_ms)
        return True
    return False
