"""The inbox: every webhook delivery, committed before it is acknowledged (invariant 1).

A delivery is known by its signed event id; the delivery id of its header is not signed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, bindparam, literal_column, select, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import inbox

# Parameters of one statement stay below SQLite's limit, and its text in the driver's cache.
_ROWS_IN_ONE_INSERT = 64

# Whether the delivery id of the inserted row has come with another event before. It is text,
# because SQLAlchemy leaves out the table's name in RETURNING, where a subquery needs it.
_REUSED = (
    "inbox.delivery_id <> '' AND EXISTS (SELECT 1 FROM inbox AS other"
    " WHERE other.store = inbox.store AND other.delivery_id = inbox.delivery_id"
    " AND other.event_id <> inbox.event_id)"
)


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one delivery: kept as new, or known already.

    `reuses_delivery_id`: it is new, but its delivery id has come with another event before.
    """

    new: bool
    reuses_delivery_id: bool = False


def record(connection: Connection, deliveries: Sequence[Delivery]) -> list[Recorded]:
    """Insert those that are new, in as few statements as can be; answer in the same order."""
    recorded: list[Recorded] = []
    for start in range(0, len(deliveries), _ROWS_IN_ONE_INSERT):
        recorded += _record(connection, deliveries[start : start + _ROWS_IN_ONE_INSERT])
    return recorded


def _record(connection: Connection, deliveries: Sequence[Delivery]) -> list[Recorded]:
    parameters: list[object] = []
    for each in deliveries:
        parameters += (
            each.store,
            each.delivery_id,
            each.event_id,
            each.event_type,
            each.received_at,
            each.body,
        )
    rows = connection.exec_driver_sql(_insert_sql(len(deliveries)), tuple(parameters)).all()
    inserted = {(store, event_id): bool(reused) for store, event_id, reused in rows}
    recorded = []
    for each in deliveries:
        # Of two with the same event in one batch the first is the new one.
        reused = inserted.pop((each.store, each.event_id), None)
        recorded.append(Recorded(new=reused is not None, reuses_delivery_id=bool(reused)))
    return recorded


@lru_cache(maxsize=_ROWS_IN_ONE_INSERT)
def _insert_sql(rows: int) -> str:
    """Return the SQL that inserts `rows` deliveries, compiled once for each number."""
    columns = ("store", "delivery_id", "event_id", "event_type", "received_at", "body")
    statement = (
        insert(inbox)
        .values([{name: bindparam(f"{name}_{row}") for name in columns} for row in range(rows)])
        .on_conflict_do_nothing()
        .returning(inbox.c.store, inbox.c.event_id, literal_column(_REUSED))
    )
    compiled = statement.compile(
        dialect=sqlite.dialect(paramstyle="qmark"), compile_kwargs={"render_postcompile": True}
    )
    return str(compiled)


def open_deliveries(
    connection: Connection, limit: int, *, store: str | None = None
) -> list[OpenDelivery]:
    """Return the oldest deliveries that wait to be handled, in the order they came.

    `store` leaves out those of other stores.
    """
    query = select(inbox).where(inbox.c.handled_at.is_(None)).order_by(inbox.c.id).limit(limit)
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
