"""Forgetting: customers' personal data after some days, history after some more.

Each call to `prune` removes one small batch, so that an order never waits behind it: call it
until it says that nothing is left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Integer,
    Update,
    delete,
    inspect,
    literal_column,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.models import (
    AcceptedTable,
    CommunityChild,
    CommunityOrder,
    Delivery,
    LogEntry,
    OrderRow,
    PastItem,
    PastProblem,
    Push,
    Row,
    TicketState,
    metadata,
)

_DAY_MS = 86_400_000
BATCH = 500


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Instants (ms): what was closed before them goes."""

    personal_data: int
    history: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows lost their personal data, and how many were forgotten altogether."""

    emptied: int = 0
    forgotten: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(self.emptied + other.emptied, self.forgotten + other.forgotten)

    def __bool__(self) -> bool:
        return bool(self.emptied or self.forgotten)


def cut_offs(now: int, *, keep_personal_data_days: int, keep_history_days: int) -> CutOffs:
    """Return the cut-offs for this instant; history never outlives its own rows' personal data."""
    return CutOffs(
        personal_data=now - min(keep_personal_data_days, keep_history_days) * _DAY_MS,
        history=now - keep_history_days * _DAY_MS,
    )


def prune(connection: Connection, before: CutOffs, limit: int = BATCH) -> Pruned:
    """Remove up to `limit` rows' worth of each kind; falsy when there was nothing to remove.

    Open orders, unhandled deliveries and running pushes are kept however old they are.
    """
    emptied = (
        connection.execute(_empty_deliveries(before, limit)).rowcount
        + connection.execute(_empty_orders(before, limit)).rowcount
        + connection.execute(_empty_parents(before, limit)).rowcount
    )
    forgotten = (
        _forget(connection, LogEntry, col(LogEntry.at) < before.history, limit)
        + _forget(connection, OrderRow, col(OrderRow.closed_at) < before.history, limit)
        + _forget(connection, Delivery, col(Delivery.handled_at) < before.history, limit)
        + _forget(connection, Push, col(Push.finished_at) < before.history, limit)
        + _forget(connection, PastItem, col(PastItem.until_ms) < before.history, limit)
        + _forget(
            connection, CommunityOrder, col(CommunityOrder.changed_at) < before.history, limit
        )
        + _forget(connection, CommunityChild, ~_has_parent(), limit)
        + _forget(connection, PastProblem, col(PastProblem.until) < before.history, limit)
    )
    return Pruned(emptied, forgotten)


def _empty_deliveries(before: CutOffs, limit: int) -> Update:
    rows = select(col(Delivery.id)).where(
        col(Delivery.handled_at) < before.personal_data, col(Delivery.body) != b""
    )
    return update(Delivery).where(col(Delivery.id).in_(rows.limit(limit))).values(body=b"")


def _empty_orders(before: CutOffs, limit: int) -> Update:
    # An order that the POS has may stay open for ever, if nobody says that it was delivered.
    done = (col(OrderRow.closed_at) < before.personal_data) | (
        (col(OrderRow.ticket) == TicketState.WRITTEN)
        & (col(OrderRow.updated_at) < before.personal_data)
    )
    rows = select(col(OrderRow.store), col(OrderRow.order_id)).where(
        done, col(OrderRow.payload) != ""
    )
    key = tuple_(col(OrderRow.store), col(OrderRow.order_id))
    return update(OrderRow).where(key.in_(rows.limit(limit))).values(payload="")


def _empty_parents(before: CutOffs, limit: int) -> Update:
    rows = select(col(CommunityOrder.community), col(CommunityOrder.order_id)).where(
        col(CommunityOrder.changed_at) < before.personal_data, col(CommunityOrder.payload) != ""
    )
    key = tuple_(col(CommunityOrder.community), col(CommunityOrder.order_id))
    return update(CommunityOrder).where(key.in_(rows.limit(limit))).values(payload="")


def _has_parent() -> ColumnElement[bool]:
    return (
        select(col(CommunityOrder.order_id))
        .where(
            col(CommunityOrder.community) == col(CommunityChild.community),
            col(CommunityOrder.order_id) == col(CommunityChild.parent_id),
        )
        .exists()
    )


def _forget(
    connection: Connection, table: type[Row], is_old: ColumnElement[bool], limit: int
) -> int:
    rowid = literal_column("rowid", Integer)
    rows = select(rowid).select_from(table).where(is_old).limit(limit)
    return connection.execute(delete(table).where(rowid.in_(rows))).rowcount


# -- what a support bundle reads: rows counted, and what must not leave the machine


def schema_version(connection: Connection) -> str:
    """Return the version of the schema, "" where there is none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def row_counts(connection: Connection) -> dict[str, int]:
    """Return how many rows each table has; an older ledger has fewer tables."""
    there = set(inspect(connection).get_table_names())
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar() or 0  # noqa: S608 -- names of our own tables
        for name in sorted(there & set(metadata.tables))
    }


def payloads(connection: Connection) -> Iterator[str | bytes]:
    """Yield what the service sent of orders and is still here, as JSON, with customers' data."""
    there = set(inspect(connection).get_table_names())
    for table, column in (
        ("orders", "payload"),
        ("inbox", "body"),
        ("community_orders", "payload"),
    ):
        if table in there:
            yield from connection.scalars(select(metadata.tables[table].c[column]))


def table_codes(connection: Connection) -> Iterator[str]:
    """Yield the codes of tables, and the addresses that hold them."""
    if inspect(connection).has_table("tables"):
        for row in connection.execute(
            select(col(AcceptedTable.qr_token), col(AcceptedTable.qr_url))
        ):
            yield from row
