"""Pruning: customers' personal data after some days, history later.

Each call to `prune` removes one small batch, so that an order never waits behind it: call it until
nothing is left to remove.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, delete, inspect, select, text, true, update
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.community import IS_CHILD
from tillbridge.ledger.database import Row, RowId, among
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
    TicketState,
    metadata,
)

_DAY_MS = 86_400_000
BATCH = 500


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Instants (ms): what was closed before them is removed."""

    personal_data: int
    history: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows lost their personal data, and how many were deleted."""

    emptied: int = 0
    forgotten: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(self.emptied + other.emptied, self.forgotten + other.forgotten)

    def __bool__(self) -> bool:
        return bool(self.emptied or self.forgotten)


def cut_offs(now: int, *, keep_personal_data_days: int, keep_history_days: int) -> CutOffs:
    """Return the cut-offs for this instant; history is kept at least as long as personal data."""
    return CutOffs(
        personal_data=now - min(keep_personal_data_days, keep_history_days) * _DAY_MS,
        history=now - keep_history_days * _DAY_MS,
    )


def prune(
    connection: Connection,
    before: CutOffs,
    limit: int = BATCH,
    *,
    only: Collection[str] | None = None,
) -> Pruned:
    """Remove up to `limit` rows of each kind; the result is falsy if there was nothing to remove.

    Open orders, unhandled deliveries and running pushes are kept, however old they are. `only`
    names the stores (and communities) whose rows may be removed; None: all.
    """

    def is_ours(table: type[Row]) -> ColumnElement[bool]:
        if only is None:
            return true()
        name = "store" if "store" in table.model_fields else "community"
        return among(col(getattr(table, name)), only)

    emptied = forgotten = 0
    for table, column, is_old in _personal_data(before.personal_data):
        nothing = b"" if table is Delivery else ""
        is_full = col(getattr(table, column)) != nothing
        rows = _some(table, is_old & is_full & is_ours(table), limit)
        emptied += connection.execute(update(table).where(rows).values({column: nothing})).rowcount
    for table, is_old in _history(before.history):
        rows = _some(table, is_old & is_ours(table), limit)
        forgotten += connection.execute(delete(table).where(rows)).rowcount
    return Pruned(emptied, forgotten)


def _personal_data(before: int) -> tuple[tuple[type[Row], str, ColumnElement[bool]], ...]:
    """Return the columns with customers' data, and which rows are to be cleared."""
    # An order in the POS may stay open for ever if nobody reports its delivery.
    is_written = col(OrderRow.ticket) == TicketState.WRITTEN
    is_done = (col(OrderRow.closed_at) < before) | (
        is_written & (col(OrderRow.updated_at) < before)
    )
    return (
        (Delivery, "body", col(Delivery.handled_at) < before),
        (OrderRow, "payload", is_done),
        (CommunityOrder, "payload", col(CommunityOrder.changed_at) < before),
    )


def _history(before: int) -> tuple[tuple[type[Row], ColumnElement[bool]], ...]:
    """Return which rows are to be deleted."""
    has_parent = select(col(CommunityOrder.order_id)).where(IS_CHILD).exists()
    return (
        (LogEntry, col(LogEntry.at) < before),
        (OrderRow, col(OrderRow.closed_at) < before),
        (Delivery, col(Delivery.handled_at) < before),
        (Push, col(Push.finished_at) < before),
        (PastItem, col(PastItem.until_ms) < before),
        (CommunityOrder, col(CommunityOrder.changed_at) < before),
        (CommunityChild, ~has_parent),
        (PastProblem, col(PastProblem.until) < before),
    )


def _some(table: type[Row], where: ColumnElement[bool], limit: int) -> ColumnElement[bool]:
    return RowId().in_(select(RowId()).select_from(table).where(where).limit(limit))


# -- for the support bundle: row counts, and what must not leave the machine


def row_counts(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table; an older ledger has fewer tables."""
    there = set(inspect(connection).get_table_names())
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar() or 0  # noqa: S608 -- names of our own tables
        for name in sorted(there & set(metadata.tables))
    }


def payloads(connection: Connection) -> Iterator[str | bytes]:
    """Yield the stored order payloads as JSON, with customers' data."""
    there = set(inspect(connection).get_table_names())
    held = (("orders", "payload"), ("inbox", "body"), ("community_orders", "payload"))
    for table, column in held:
        if table in there:
            yield from connection.scalars(select(metadata.tables[table].c[column]))


def table_codes(connection: Connection) -> Iterator[str]:
    """Yield the codes of tables, and the addresses that contain them."""
    if inspect(connection).has_table("tables"):
        codes = select(col(AcceptedTable.qr_token), col(AcceptedTable.qr_url))
        for row in connection.execute(codes):
            yield from row
