"""A community in the ledger: the mirror of its catalogue, its orders, and their children."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select
from sqlalchemy.dialects.postgresql import insert  # SQLite has its ON CONFLICT, too
from sqlmodel import Session, col

from tillbridge.ledger.database import all_rows, first_row, upsert
from tillbridge.ledger.models import CommunityChild, CommunityOrder, CommunityRecord, OrderRow
from tillbridge.model.community import FINAL, ParentOrder, Record


def key_of(name: str) -> str:
    """Return the key of a configured community, which is used where a store's name may be."""
    return f"communities/{name}"


def _counts(connection: Connection, column: Any, community: str) -> dict[str, int]:  # noqa: ANN401 -- a column of any of the tables
    """Return how many of the community's rows have each value in that column."""
    query = select(column, func.count()).filter_by(community=community).group_by(column)
    return {row[0]: row[1] for row in connection.execute(query)}


# -- the mirror

_RECORD = ("kind", "record_id", "store_id", "name", "body")
_COLUMNS = [col(getattr(CommunityRecord, name)) for name in _RECORD]


def get_records(connection: Connection, community: str) -> list[Record]:
    """Return the complete mirror, by name."""
    record = CommunityRecord
    order = col(record.kind), col(record.name), col(record.record_id)
    rows = connection.execute(select(*_COLUMNS).filter_by(community=community).order_by(*order))
    return [Record(*row) for row in rows]


def record_keys(connection: Connection, community: str) -> list[tuple[str, str]]:
    """Return kind and id of every record."""
    query = select(col(CommunityRecord.kind), col(CommunityRecord.record_id))
    return [(kind, key) for kind, key in connection.execute(query.filter_by(community=community))]


def mirrored_counts(connection: Connection, community: str) -> dict[str, int]:
    """Return how many `stores`, `categories` and `items` the mirror has."""
    counts = _counts(connection, col(CommunityRecord.kind), community)
    names = {"stores": "store", "categories": "category", "items": "item"}
    return {name: counts.get(kind, 0) for name, kind in names.items()}


def put_records(
    connection: Connection,
    community: str,
    put: Sequence[Record],
    gone: Iterable[tuple[str, str]],
) -> None:
    """Store these records and delete the removed ones (kind, id)."""
    for kind, record_id in gone:
        connection.execute(
            delete(CommunityRecord).filter_by(community=community, kind=kind, record_id=record_id)
        )
    rows = [{"community": community} | {n: getattr(each, n) for n in _RECORD} for each in put]
    if rows:
        connection.execute(upsert(CommunityRecord, "store_id", "name", "body"), rows)


# -- orders: the parent, and its children linked to POS orders


@dataclass(frozen=True, slots=True)
class TiedChild:
    """A child order, and the local store (None: not one of ours) that has its POS order.

    `state` is the order's state at the service.
    """

    child: CommunityChild
    parent_received_at: int
    local_store: str | None
    state: str | None


# As the service reports them.
_OF_PARENT = ("order_number", "status", "updated_at")
_OF_CHILD = ("order_id", "store_id", "store_name", "status", "subtotal")
IS_CHILD = and_(
    col(CommunityOrder.community) == col(CommunityChild.community),
    col(CommunityOrder.order_id) == col(CommunityChild.parent_id),
)


def get_parent(connection: Connection, community: str, order_id: str) -> CommunityOrder | None:
    """Return what is known of a parent order."""
    query = select(CommunityOrder).filter_by(community=community, order_id=order_id)
    return first_row(connection, query)


def put_parent(connection: Connection, community: str, order: ParentOrder, *, at: int) -> None:
    """Store the order as the service has it now, including its children."""
    row = {"community": community, "received_at": at, "changed_at": at}
    row |= {name: getattr(order, name) for name in ("order_id", *_OF_PARENT)}
    row["payload"] = json.dumps(dict(order.body), ensure_ascii=False, default=str)
    connection.execute(upsert(CommunityOrder, *_OF_PARENT, "payload", "changed_at"), row)
    key = {"community": community, "parent_id": order.order_id}
    connection.execute(delete(CommunityChild).filter_by(**key))
    children = [key | {name: getattr(each, name) for name in _OF_CHILD} for each in order.children]
    if children:
        connection.execute(insert(CommunityChild).on_conflict_do_nothing(), children)


def latest_parents(connection: Connection, community: str, limit: int) -> list[CommunityOrder]:
    """Return the orders updated most recently, newest first."""
    return all_rows(
        connection,
        select(CommunityOrder)
        .filter_by(community=community)
        .order_by(col(CommunityOrder.received_at).desc(), col(CommunityOrder.order_id))
        .limit(limit),
    )


def tied_children(
    connection: Connection, community: str, parent_id: str | None = None
) -> list[TiedChild]:
    """Return child orders with their POS orders: of one parent, or all unfinished ones."""
    query = (
        select(
            CommunityChild,
            col(CommunityOrder.received_at),
            col(OrderRow.store),
            col(OrderRow.service_state),
        )
        .join(CommunityOrder, IS_CHILD)
        .outerjoin(OrderRow, col(OrderRow.order_id) == col(CommunityChild.order_id))
        .where(col(CommunityChild.community) == community)
        .order_by(col(CommunityChild.store_name), col(CommunityChild.order_id))
    )
    if parent_id is None:
        query = query.where(col(CommunityOrder.status).not_in(FINAL))
    else:
        query = query.where(col(CommunityChild.parent_id) == parent_id)
    with Session(connection) as session:
        return [TiedChild(*row) for row in session.execute(query)]


def counted(connection: Connection, community: str) -> dict[str, int]:
    """Return the number of orders by status."""
    return _counts(connection, col(CommunityOrder.status), community)


def parent_of(connection: Connection, order_id: str) -> CommunityOrder | None:
    """Return the community order that a POS order is a part of, or None."""
    of_child = col(CommunityChild.order_id) == order_id
    query = select(CommunityOrder).join(CommunityChild, IS_CHILD).where(of_child)
    return first_row(connection, query)
