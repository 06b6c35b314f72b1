"""Forgetting: customers' personal data after some days, history after some more.

Each call to `prune` removes one small batch, so that an order never waits behind it: call it
until it says that nothing is left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Integer,
    Table,
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

from tillbridge.ledger.schema import (
    community_children,
    community_orders,
    inbox,
    menu_past,
    metadata,
    order_log,
    orders,
    problem_history,
    pushes,
    tables,
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
        _forget(connection, order_log, order_log.c.at < before.history, limit)
        + _forget(connection, orders, orders.c.closed_at < before.history, limit)
        + _forget(connection, inbox, inbox.c.handled_at < before.history, limit)
        + _forget(connection, pushes, pushes.c.finished_at < before.history, limit)
        + _forget(connection, menu_past, menu_past.c.until_ms < before.history, limit)
        + _forget(
            connection, community_orders, community_orders.c.changed_at < before.history, limit
        )
        + _forget(connection, community_children, ~_has_parent(), limit)
        + _forget(connection, problem_history, problem_history.c.until < before.history, limit)
    )
    return Pruned(emptied, forgotten)


def _empty_deliveries(before: CutOffs, limit: int) -> Update:
    rows = select(inbox.c.id).where(inbox.c.handled_at < before.personal_data, inbox.c.body != b"")
    return update(inbox).where(inbox.c.id.in_(rows.limit(limit))).values(body=b"")


def _empty_orders(before: CutOffs, limit: int) -> Update:
    # An order that the POS has may stay open for ever, if nobody says that it was delivered.
    done = (orders.c.closed_at < before.personal_data) | (
        (orders.c.ticket == "written") & (orders.c.updated_at < before.personal_data)
    )
    rows = select(orders.c.store, orders.c.order_id).where(done, orders.c.payload != "")
    key = tuple_(orders.c.store, orders.c.order_id)
    return update(orders).where(key.in_(rows.limit(limit))).values(payload="")


def _empty_parents(before: CutOffs, limit: int) -> Update:
    columns = community_orders.c
    rows = select(columns.community, columns.order_id).where(
        columns.changed_at < before.personal_data, columns.payload != ""
    )
    key = tuple_(columns.community, columns.order_id)
    return update(community_orders).where(key.in_(rows.limit(limit))).values(payload="")


def _has_parent() -> ColumnElement[bool]:
    return (
        select(community_orders.c.order_id)
        .where(
            community_orders.c.community == community_children.c.community,
            community_orders.c.order_id == community_children.c.parent_id,
        )
        .exists()
    )


def _forget(connection: Connection, table: Table, is_old: ColumnElement[bool], limit: int) -> int:
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
        (orders, orders.c.payload),
        (inbox, inbox.c.body),
        (community_orders, community_orders.c.payload),
    ):
        if table.name in there:
            yield from connection.execute(select(column)).scalars()


def table_codes(connection: Connection) -> Iterator[str]:
    """Yield the codes of tables, and the addresses that hold them."""
    if inspect(connection).has_table(tables.name):
        for row in connection.execute(select(tables.c.qr_token, tables.c.qr_url)):
            yield from row
