"""A community in the ledger: the mirror of its catalogue, its orders, and their children."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, and_, delete, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import Session, col

from tillbridge.ledger.models import (
    CommunityChild,
    CommunityOrder,
    CommunityRecord,
    OrderRow,
    all_rows,
    first_row,
    upsert,
)
from tillbridge.model.community import FINAL, ParentOrder, Record, RecordKind


def key_of(name: str) -> str:
    """Return the key of a community of the configuration, which stands where a store's name may."""
    return f"communities/{name}"


# -- the mirror


def get_records(connection: Connection, community: str) -> list[Record]:
    """Return the whole mirror, by name."""
    rows = all_rows(
        connection,
        select(CommunityRecord)
        .filter_by(community=community)
        .order_by(
            col(CommunityRecord.kind), col(CommunityRecord.name), col(CommunityRecord.record_id)
        ),
    )
    return [
        Record(cast("RecordKind", row.kind), row.record_id, row.store_id, row.name, row.body)
        for row in rows
    ]


def record_keys(connection: Connection, community: str) -> list[tuple[str, str]]:
    """Return kind and id of every record."""
    rows = connection.execute(
        select(col(CommunityRecord.kind), col(CommunityRecord.record_id)).filter_by(
            community=community
        )
    )
    return [(row.kind, row.record_id) for row in rows]


def mirrored_counts(connection: Connection, community: str) -> dict[str, int]:
    """Return how many `stores`, `categories` and `items` the mirror holds."""
    rows = connection.execute(
        select(col(CommunityRecord.kind), func.count())
        .filter_by(community=community)
        .group_by(col(CommunityRecord.kind))
    )
    counts: dict[str, int] = {row[0]: row[1] for row in rows}
    names = {"stores": "store", "categories": "category", "items": "item"}
    return {name: counts.get(kind, 0) for name, kind in names.items()}


def put_records(
    connection: Connection,
    community: str,
    put: Sequence[Record],
    gone: Iterable[tuple[str, str]],
) -> None:
    """Write these records and remove the gone ones (kind, id)."""
    for kind, record_id in gone:
        connection.execute(
            delete(CommunityRecord).filter_by(community=community, kind=kind, record_id=record_id)
        )
    if not put:
        return
    connection.execute(
        upsert(CommunityRecord, "store_id", "name", "body"),
        [
            {
                "community": community,
                "kind": each.kind,
                "record_id": each.record_id,
                "store_id": each.store_id,
                "name": each.name,
                "body": each.body,
            }
            for each in put
        ],
    )


# -- orders: the parent, and its children tied to POS orders


@dataclass(frozen=True, slots=True)
class TiedChild:
    """A child order, and the local store (None: not one of ours) that has its POS order.

    `state` is what the order is for the service.
    """

    child: CommunityChild
    parent_received_at: int
    local_store: str | None
    state: str | None


_OF_THE_SERVICE = ("order_id", "store_id", "store_name", "status", "subtotal")
_OF_CHILD = and_(
    col(CommunityOrder.community) == col(CommunityChild.community),
    col(CommunityOrder.order_id) == col(CommunityChild.parent_id),
)


def get_parent(connection: Connection, community: str, order_id: str) -> CommunityOrder | None:
    """Return what is known of a parent order."""
    query = select(CommunityOrder).filter_by(community=community, order_id=order_id)
    return first_row(connection, query)


def put_parent(connection: Connection, community: str, order: ParentOrder, *, at: int) -> None:
    """Store the order as the service has it now, children included."""
    parent = CommunityOrder(
        community=community,
        order_id=order.order_id,
        order_number=order.order_number,
        status=order.status,
        updated_at=order.updated_at,
        payload=json.dumps(dict(order.body), ensure_ascii=False, default=str),
        received_at=at,
        changed_at=at,
    )
    changes = ("order_number", "status", "updated_at", "payload", "changed_at")
    connection.execute(upsert(CommunityOrder, *changes), dict(parent))
    connection.execute(
        delete(CommunityChild).filter_by(community=community, parent_id=order.order_id)
    )
    for each in order.children:
        child = {name: getattr(each, name) for name in _OF_THE_SERVICE}
        statement = insert(CommunityChild).values(
            community=community, parent_id=order.order_id, **child
        )
        connection.execute(statement.on_conflict_do_nothing())


def latest_parents(connection: Connection, community: str, limit: int) -> list[CommunityOrder]:
    """Return the orders heard of last, newest first."""
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
    """Return child orders with the POS orders they are; of one parent, or of all unfinished."""
    query = (
        select(
            CommunityChild,
            col(CommunityOrder.received_at),
            col(OrderRow.store),
            col(OrderRow.service_state),
        )
        .join(CommunityOrder, _OF_CHILD)
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
    """Return how many orders there are by status."""
    rows = connection.execute(
        select(col(CommunityOrder.status), func.count())
        .filter_by(community=community)
        .group_by(col(CommunityOrder.status))
    )
    return {row[0]: row[1] for row in rows}


def parent_of(connection: Connection, order_id: str) -> CommunityOrder | None:
    """Return the community order that a POS order is a part of, None where it is of none."""
    of_child = col(CommunityChild.order_id) == order_id
    query = select(CommunityOrder).join(CommunityChild, _OF_CHILD).where(of_child)
    return first_row(connection, query)
