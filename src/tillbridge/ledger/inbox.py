"""The inbox: every webhook delivery, committed before it is acknowledged (invariant 1).

A delivery is known by its signed event id; the delivery id of its header is not signed.
"""

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import Connection, select, update
from sqlmodel import col

from tillbridge.ledger.database import driver_of
from tillbridge.ledger.models import Delivery, all_rows

_COLUMNS = ("store", "delivery_id", "event_id", "event_type", "received_at", "body")


def record(connection: Connection, deliveries: Sequence[Delivery]) -> list[bool]:
    """Insert those that are new, in one statement; tell in the same order which they were.

    One statement without rows to fetch, because each step of SQLite gives the interpreter away
    and has to wait for the busy event loop to get it back.
    """
    if not deliveries:
        return []
    parameters = tuple(getattr(each, name) for each in deliveries for name in _COLUMNS)
    # Straight to the driver: this is the one statement that every acknowledgement waits for.
    done = driver_of(connection).execute(_insert_sql(len(deliveries)), parameters)
    if done.rowcount == len(deliveries):
        return [True] * len(deliveries)
    new = _inserted(connection, last=done.lastrowid or 0, count=done.rowcount)
    recorded = []
    for each in deliveries:
        # Of two with the same event in one batch the first is the new one.
        key = (each.store, each.event_id)
        recorded.append(key in new)
        new.discard(key)
    return recorded


def _inserted(connection: Connection, *, last: int, count: int) -> set[tuple[str, str]]:
    """Return store and event of the rows just inserted: ids have no gaps within one insert."""
    rows = connection.execute(
        select(col(Delivery.store), col(Delivery.event_id)).where(
            col(Delivery.id) > last - count, col(Delivery.id) <= last
        )
    )
    return {(row.store, row.event_id) for row in rows} if count else set()


@lru_cache(maxsize=128)
def _insert_sql(rows: int) -> str:
    """Return the SQL that inserts `rows` deliveries. Text: compiling 64 rows costs milliseconds."""
    columns = ", ".join(_COLUMNS)
    row = f"({', '.join('?' * len(_COLUMNS))})"
    return (
        f"INSERT INTO inbox ({columns}) VALUES {', '.join([row] * rows)}"  # noqa: S608 -- our own names
        " ON CONFLICT DO NOTHING"
    )


def open_deliveries(
    connection: Connection, limit: int, *, store: str | None = None, after: int = 0
) -> list[Delivery]:
    """Return the oldest deliveries that wait to be handled, in the order they came.

    `store` leaves out those of other stores, `after` those up to this row id.
    """
    query = (
        select(Delivery)
        .where(col(Delivery.handled_at).is_(None), col(Delivery.id) > after)
        .order_by(col(Delivery.id))
        .limit(limit)
    )
    return all_rows(connection, query if store is None else query.filter_by(store=store))


def handled(connection: Connection, delivery: int, outcome: str, at: int) -> None:
    """Mark the delivery with this row id as handled; `outcome` is a short dotted name."""
    connection.execute(
        update(Delivery)
        .filter_by(id=delivery)
        .where(col(Delivery.handled_at).is_(None))
        .values(handled_at=at, outcome=outcome)
    )


def has_delivery(connection: Connection, store: str, delivery_id: str) -> bool:
    """Whether a delivery with this id (of its header) is on disk."""
    query = select(col(Delivery.id)).filter_by(store=store, delivery_id=delivery_id)
    return connection.execute(query.limit(1)).first() is not None
