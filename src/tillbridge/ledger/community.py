"""A community in the ledger: the mirror of its catalogue, and what we say of its items."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import community_records, community_words
from tillbridge.model.community import Record

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
