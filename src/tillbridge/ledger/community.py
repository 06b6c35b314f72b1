"""A community in the ledger: the mirror of its catalogue, and what we say of its items."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import (
    community_children,
    community_orders,
    community_records,
    community_words,
    orders,
)
from tillbridge.model.community import FINAL, ChildOrder, ParentOrder, Record

_records = community_records.c
_words = community_words.c


def key_of(name: str) -> str:
    """Return the key of a community of the configuration, which stands where a store's name may."""
    return f"communities/{name}"


# -- the mirror


def get_records(connection: Connection, community: str) -> list[Record]:
    """Return the whole mirror, by name."""
    rows = connection.execute(
        select(community_records)
        .where(_records.community == community)
        .order_by(_records.kind, _records.name, _records.record_id)
    )
    return [_record(row) for row in rows]


def record_keys(connection: Connection, community: str) -> list[tuple[str, str]]:
    """Return kind and id of every record."""
    rows = connection.execute(
        select(_records.kind, _records.record_id).where(_records.community == community)
    )
    return [(row.kind, row.record_id) for row in rows]


def mirrored_counts(connection: Connection, community: str) -> dict[str, int]:
    """Return how many `stores`, `categories` and `items` the mirror holds."""
    rows = connection.execute(
        select(_records.kind, func.count())
        .where(_records.community == community)
        .group_by(_records.kind)
    )
    counts: dict[str, int] = {row[0]: row[1] for row in rows}
    return {
        "stores": counts.get("store", 0),
        "categories": counts.get("category", 0),
        "items": counts.get("item", 0),
    }


def put_records(
    connection: Connection,
    community: str,
    put: Sequence[Record],
    gone: Iterable[tuple[str, str]],
) -> None:
    """Write these records and remove the gone ones (kind, id)."""
    for kind, record_id in gone:
        connection.execute(
            delete(community_records).where(
                _records.community == community,
                _records.kind == kind,
                _records.record_id == record_id,
            )
        )
    if not put:
        return
    statement = insert(community_records)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[_records.community, _records.kind, _records.record_id],
            set_={name: getattr(statement.excluded, name) for name in ("store_id", "name", "body")},
        ),
        [
            {
                "community": community,
                "kind": each.kind,
                "record_id": each.record_id,
                "store_id": each.store_id,
                "name": each.name,
                "body": json.dumps(dict(each.body), ensure_ascii=False, default=str),
            }
            for each in put
        ],
    )


# -- what we say of items


@dataclass(frozen=True, slots=True)
class Word:
    """What this bridge says of an item: off sale (until `until`, ms), or on sale again.

    `told_at` is None until the service has taken it.
    """

    item_id: str
    available: bool
    until: int | None
    by: str
    at: int
    told_at: int | None = None


def get_words(connection: Connection, community: str) -> tuple[Word, ...]:
    """Return what we say, by item id."""
    rows = connection.execute(
        select(community_words).where(_words.community == community).order_by(_words.item_id)
    )
    return tuple(
        Word(row.item_id, row.available, row.until, row.by, row.at, row.told_at) for row in rows
    )


def put_word(connection: Connection, community: str, word: Word) -> None:
    """Say it, in place of what was said of the item."""
    drop_word(connection, community, word.item_id)
    connection.execute(
        insert(community_words).values(
            community=community,
            item_id=word.item_id,
            available=word.available,
            until=word.until,
            by=word.by,
            at=word.at,
            told_at=word.told_at,
        )
    )


def drop_word(connection: Connection, community: str, item_id: str) -> None:
    """Say nothing of the item any more."""
    connection.execute(
        delete(community_words).where(_words.community == community, _words.item_id == item_id)
    )


def settle_word(connection: Connection, community: str, word: Word, *, told_at: int) -> None:
    """Note that the service has taken this very word; one that says "on sale" is done with."""
    same = (
        _words.community == community,
        _words.item_id == word.item_id,
        _words.at == word.at,
        _words.available == word.available,
    )
    if word.available:
        connection.execute(delete(community_words).where(*same))
    else:
        connection.execute(update(community_words).where(*same).values(told_at=told_at))


def _record(row: Row[Any]) -> Record:
    return Record(row.kind, row.record_id, row.store_id, row.name, json.loads(row.body))


# -- orders: the parent, and its children tied to POS orders


_parents = community_orders.c
_children = community_children.c


@dataclass(frozen=True, slots=True)
class KnownParent:
    """A parent order as it is known here; `payload` is JSON, "" once pruned."""

    order_id: str
    order_number: str
    status: str
    updated_at: int | None
    received_at: int
    payload: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TiedChild:
    """A child order, and the local store (None: not one of ours) that has its POS order.

    `told` is the state that the service was told of it last.
    """

    child: ChildOrder
    parent_id: str
    parent_received_at: int
    local_store: str | None
    told: str | None


@dataclass(frozen=True, slots=True)
class ParentOf:
    """The parent of a POS order, for `orders show`."""

    community: str
    order_id: str
    order_number: str
    status: str


def get_parent(connection: Connection, community: str, order_id: str) -> KnownParent | None:
    """Return what is known of a parent order."""
    row = connection.execute(
        select(community_orders).where(
            _parents.community == community, _parents.order_id == order_id
        )
    ).first()
    return None if row is None else _parent(row)


def put_parent(connection: Connection, community: str, order: ParentOrder, *, at: int) -> None:
    """Know the order as the service tells it now, children included."""
    statement = insert(community_orders).values(
        community=community,
        order_id=order.order_id,
        order_number=order.order_number,
        status=order.status,
        updated_at=order.updated_at,
        payload=json.dumps(dict(order.body), ensure_ascii=False, default=str),
        received_at=at,
        changed_at=at,
    )
    told = ("order_number", "status", "updated_at", "payload", "changed_at")
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[_parents.community, _parents.order_id],
            set_={name: getattr(statement.excluded, name) for name in told},
        )
    )
    connection.execute(
        delete(community_children).where(
            _children.community == community, _children.parent_id == order.order_id
        )
    )
    for child in order.children:
        statement = insert(community_children).values(
            community=community,
            order_id=child.order_id,
            parent_id=order.order_id,
            store_id=child.store_id,
            store_name=child.store_name,
            status=child.status,
            subtotal=child.subtotal,
        )
        connection.execute(statement.on_conflict_do_nothing())


def latest_parents(connection: Connection, community: str, limit: int) -> list[KnownParent]:
    """Return the orders heard of last, newest first."""
    rows = connection.execute(
        select(community_orders)
        .where(_parents.community == community)
        .order_by(_parents.received_at.desc(), _parents.order_id)
        .limit(limit)
    )
    return [_parent(row) for row in rows]


def tied_children(
    connection: Connection, community: str, parent_id: str | None = None
) -> list[TiedChild]:
    """Return child orders with the POS orders they are; of one parent, or of all unfinished."""
    query = (
        select(community_children, _parents.received_at, orders.c.store, orders.c.told)
        .join(
            community_orders,
            and_(
                _parents.community == _children.community, _parents.order_id == _children.parent_id
            ),
        )
        .outerjoin(orders, orders.c.order_id == _children.order_id)
        .where(_children.community == community)
        .order_by(_children.store_name, _children.order_id)
    )
    if parent_id is None:
        query = query.where(_parents.status.not_in(FINAL))
    else:
        query = query.where(_children.parent_id == parent_id)
    return [
        TiedChild(
            ChildOrder(row.order_id, row.store_id, row.store_name, row.status, row.subtotal),
            row.parent_id,
            row.received_at,
            row.store,
            row.told,
        )
        for row in connection.execute(query)
    ]


def counted(connection: Connection, community: str) -> dict[str, int]:
    """Return how many orders there are by status."""
    rows = connection.execute(
        select(_parents.status, func.count())
        .where(_parents.community == community)
        .group_by(_parents.status)
    )
    return {row[0]: row[1] for row in rows}


def parent_of(connection: Connection, order_id: str) -> ParentOf | None:
    """Return the community order that a POS order is a part of, None where it is of none."""
    row = connection.execute(
        select(_parents.community, _parents.order_id, _parents.order_number, _parents.status)
        .join(
            community_children,
            and_(
                _parents.community == _children.community, _parents.order_id == _children.parent_id
            ),
        )
        .where(_children.order_id == order_id)
    ).first()
    return None if row is None else ParentOf(*row)


def _parent(row: Row[Any]) -> KnownParent:
    return KnownParent(
        row.order_id, row.order_number, row.status, row.updated_at, row.received_at, row.payload
    )
