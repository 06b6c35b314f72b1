"""The inbox: every webhook delivery, committed before it is acknowledged (invariant 1).

A delivery is known by its signed event id; the delivery id of its header is not signed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, select, update

from tillbridge.ledger.database import driver_of
from tillbridge.ledger.schema import inbox

_COLUMNS = ("store", "delivery_id", "event_id", "event_type", "received_at", "body")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook delivery as received. Specification: Events, Transport.

    `delivery_id` is "" where the sender gave none; `body` is the raw request body.
    """

    store: str
    delivery_id: str
    event_id: str
    event_type: str
    received_at: int
    body: bytes


@dataclass(frozen=True, slots=True)
class OpenDelivery:
    """A delivery that waits to be handled."""

    id: int
    delivery: Delivery


def record(connection: Connection, deliveries: Sequence[Delivery]) -> list[bool]:
    """Insert those that are new, in one statement; tell in the same order which they were.

    One statement without rows to fetch, because each step of SQLite gives the interpreter away
    and has to wait for the busy event loop to get it back.
    """
    if not deliveries:
        return []
    parameters = tuple(
        value
        for each in deliveries
        for value in (
            each.store,
            each.delivery_id,
            each.event_id,
            each.event_type,
            each.received_at,
            each.body,
        )
    )
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
        select(inbox.c.store, inbox.c.event_id).where(inbox.c.id > last - count, inbox.c.id <= last)
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
) -> list[OpenDelivery]:
    """Return the oldest deliveries that wait to be handled, in the order they came.

    `store` leaves out those of other stores, `after` those up to this row id.
    """
    query = (
        select(inbox)
        .where(inbox.c.handled_at.is_(None), inbox.c.id > after)
        .order_by(inbox.c.id)
        .limit(limit)
    )
    rows = connection.execute(query if store is None else query.where(inbox.c.store == store))
    return [
        OpenDelivery(
            row.id,
            Delivery(
                row.store,
                row.delivery_id,
                row.event_id,
                row.event_type,
                row.received_at,
                bytes(row.body),
            ),
        )
        for row in rows
    ]


def handled(connection: Connection, delivery: int, outcome: str, at: int) -> None:
    """Mark the delivery with this row id as handled; `outcome` is a short dotted name."""
    connection.execute(
        update(inbox)
        .where(inbox.c.id == delivery, inbox.c.handled_at.is_(None))
        .values(handled_at=at, outcome=outcome)
    )


def has_delivery(connection: Connection, store: str, delivery_id: str) -> bool:
    """Whether a delivery with this id (of its header) is on disk."""
    query = select(inbox.c.id).where(inbox.c.store == store, inbox.c.delivery_id == delivery_id)
    return connection.execute(query.limit(1)).first() is not None
