"""Orders, one row each: how far the ticket is, what it shall be, what it is for the service."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import col

from tillbridge.ledger.models import LogEntry, OrderRow, TicketState, all_rows, first_row
from tillbridge.model.order import OrderState

# -- orders

UNWRITTEN = frozenset({TicketState.WAITING, TicketState.WRITING})


# How the reference of a ticket begins that was printed because the till could not take it.
ON_PAPER = "not in till"
PERHAPS_ON_PAPER_ONLY = "perhaps not in till"  # the till did not say whether it has it too
BY_HAND = "by hand"  # the reference of a ticket that a person typed


def is_on_paper(row: OrderRow) -> bool:
    """Return whether the order is on paper instead of in the till, and nobody has seen to it."""
    return row.ticket is TicketState.WRITTEN and row.ticket_reference in {
        ON_PAPER,
        PERHAPS_ON_PAPER_ONLY,
    }


def insert_order(connection: Connection, row: OrderRow) -> bool:
    """Insert the order; False where the store has one with that id already: the first stays."""
    statement = insert(OrderRow).values(dict(row)).on_conflict_do_nothing()
    return connection.execute(statement.returning(col(OrderRow.order_id))).first() is not None


def get_order(connection: Connection, store: str, order_id: str) -> OrderRow | None:
    """Return the order, None where it is not known."""
    return first_row(
        connection,
        select(OrderRow).filter_by(store=store, order_id=order_id),
    )


def find_orders(connection: Connection, order_id: str) -> list[OrderRow]:
    """Return the order with this id, of whichever store."""
    return all_rows(connection, select(OrderRow).filter_by(order_id=order_id))


def find_by_number(connection: Connection, order_number: str, limit: int = 20) -> list[OrderRow]:
    """Return the orders that people know by this number, of any store, newest first."""
    return all_rows(
        connection,
        select(OrderRow)
        .filter_by(order_number=order_number)
        .order_by(col(OrderRow.received_at).desc(), col(OrderRow.order_id))
        .limit(limit),
    )


def find_called(connection: Connection, name: str) -> list[OrderRow]:
    """Return the order with this id, or else all that people know by this number, newest first."""
    return find_orders(connection, name) or find_by_number(connection, name)


def unseen_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something that a person has not seen, oldest first."""
    return all_rows(
        connection,
        select(OrderRow)
        .filter_by(store=store)
        .where(col(OrderRow.unseen) != {})
        .order_by(col(OrderRow.received_at), col(OrderRow.order_id)),
    )


def open_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something left to do, in the order they were received."""
    return all_rows(
        connection,
        select(OrderRow)
        .filter_by(store=store)
        .where(col(OrderRow.closed_at).is_(None))
        .order_by(col(OrderRow.received_at), col(OrderRow.order_id)),
    )


def cancelled_among(connection: Connection, store: str, order_ids: Collection[str]) -> set[str]:
    """Return those of the orders that are cancelled."""
    found: set[str] = set()
    ids = list(order_ids)
    for start in range(0, len(ids), 500):
        found.update(
            connection.scalars(
                select(col(OrderRow.order_id))
                .filter_by(store=store, desired_state=OrderState.CANCELLED)
                .where(col(OrderRow.order_id).in_(ids[start : start + 500]))
            )
        )
    return found


def never_written_since(connection: Connection, store: str, since_ms: int) -> list[OrderRow]:
    """Return cancelled orders closed since then whose write was begun and left nothing in the POS.

    A write whose outcome is unknown may take effect after that.
    """
    return all_rows(
        connection,
        select(OrderRow)
        .filter_by(store=store, ticket=TicketState.REFUSED, desired_state=OrderState.CANCELLED)
        .where(col(OrderRow.closed_at) >= since_ms, col(OrderRow.attempts) > 0),
    )


def orders_on_paper(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders that are on paper and that nobody has seen to, over or not."""
    references = (ON_PAPER, PERHAPS_ON_PAPER_ONLY)
    return all_rows(
        connection,
        select(OrderRow)
        .filter_by(store=store, ticket=TicketState.WRITTEN)
        .where(col(OrderRow.ticket_reference).in_(references)),
    )


def latest_orders(
    connection: Connection, stores: Collection[str] | None = None, limit: int = 100
) -> list[OrderRow]:
    """Return the orders received last, newest first; of all stores where none are named."""
    query = (
        select(OrderRow)
        .order_by(col(OrderRow.received_at).desc(), col(OrderRow.order_id))
        .limit(limit)
    )
    return all_rows(
        connection, query if stores is None else query.where(col(OrderRow.store).in_(stores))
    )


def update_order(connection: Connection, store: str, order_id: str, at: int, **values: Any) -> None:  # noqa: ANN401 -- columns of several types
    """Set the named columns of the order."""
    connection.execute(
        update(OrderRow).filter_by(store=store, order_id=order_id).values(updated_at=at, **values)
    )


# -- the log of an order, for people: dotted events, never a customer's data


def log_event(
    connection: Connection, store: str, order_id: str, event: str, at: int, **detail: object
) -> None:
    """Add to the log of the order."""
    connection.execute(
        insert(LogEntry).values(
            store=store,
            order_id=order_id,
            at=at,
            event=event,
            detail=detail,
        )
    )


def read_log(connection: Connection, store: str, order_id: str) -> list[LogEntry]:
    """Return all that happened to the order, oldest first."""
    of_order = (col(LogEntry.store) == store, col(LogEntry.order_id) == order_id)
    return all_rows(connection, select(LogEntry).where(*of_order).order_by(col(LogEntry.id)))


def event_of(entries: Sequence[LogEntry]) -> str:
    """Return the id of the event that brought the order, "" where its log does not tell."""
    found = (each.detail.get("event_id") for each in entries)
    return next((each for each in found if isinstance(each, str)), "")


def last_at(connection: Connection, store: str, order_id: str, event: str) -> int | None:
    """Return when `event` last happened to the order (ms since the epoch); None: never."""
    at = connection.execute(
        select(col(LogEntry.at))
        .filter_by(store=store, order_id=order_id, event=event)
        .order_by(col(LogEntry.id).desc())
        .limit(1)
    ).scalar()
    return None if at is None else int(at)


def has_event(connection: Connection, store: str, order_id: str, event: str) -> bool:
    """Return whether `event` has happened to the order."""
    found = connection.execute(
        select(col(LogEntry.id)).filter_by(store=store, order_id=order_id, event=event).limit(1)
    ).first()
    return found is not None
