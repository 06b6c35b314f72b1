"""The menu by category, as the 86 board shows it: only what is looked at is read."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, Select, func, select
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.database import among
from tillbridge.ledger.menu import items_by_id
from tillbridge.ledger.menu_codec import AcceptedItem, part_from
from tillbridge.ledger.models import MenuItem, MenuPart

NO_CATEGORY = "-"
"""Stands for the items that are in no category."""


@dataclass(frozen=True, slots=True)
class BoardCategory:
    """A category with how many items it has; an item of two categories counts in both.

    `name` is "" for `NO_CATEGORY`.
    """

    external_id: str
    name: str
    count: int


def board_categories(connection: Connection, store: str) -> list[BoardCategory]:
    """Return the categories that have items, by name; those in no category come last."""
    listed = func.json_each(col(MenuItem.body), "$.categories").table_valued("value")
    counted = (
        select(listed.c.value, func.count())
        .select_from(MenuItem)
        .join(listed, listed.c.value.is_not(None))
        .where(col(MenuItem.store) == store)
        .group_by(listed.c.value)
    )
    counts = {str(key): int(count) for key, count in connection.execute(counted)}
    names = _names(connection, store, counts)
    found = [BoardCategory(key, names.get(key, key), count) for key, count in counts.items()]
    found.sort(key=lambda each: (each.name.casefold(), each.external_id))
    alone = connection.scalar(
        select(func.count()).select_from(MenuItem).where(col(MenuItem.store) == store, _is_alone())
    )
    return [*found, BoardCategory(NO_CATEGORY, "", alone)] if alone else found


def count_sizes(connection: Connection, store: str) -> int:
    """Return how many sizes the items have together."""
    sizes = func.json_array_length(col(MenuItem.body), "$.variants", type_=Integer)
    query = select(func.sum(func.coalesce(sizes, 0))).where(col(MenuItem.store) == store)
    return connection.scalar(query) or 0


def board_items(
    connection: Connection, store: str, category: str, *, limit: int, offset: int = 0
) -> list[AcceptedItem]:
    """Return items of a category by name, from `offset` on."""
    name = func.json_extract(col(MenuItem.body), "$.name").collate("NOCASE")
    query: Select[str] = select(col(MenuItem.external_id)).where(col(MenuItem.store) == store)
    if category == NO_CATEGORY:
        query = query.where(_is_alone())
    else:
        listed = func.json_each(col(MenuItem.body), "$.categories").table_valued("value")
        query = query.select_from(MenuItem).join(listed, listed.c.value == category)
    query = query.order_by(name, col(MenuItem.external_id)).limit(limit).offset(offset)
    ids = list(connection.scalars(query))
    known = items_by_id(connection, store, ids)
    return [known[each] for each in ids if each in known]


def _is_alone() -> ColumnElement[bool]:
    listed = func.json_array_length(col(MenuItem.body), "$.categories", type_=Integer)
    return func.coalesce(listed, 0) == 0


def _names(connection: Connection, store: str, ids: Mapping[str, int]) -> dict[str, str]:
    key = col(MenuPart.external_id)
    query = select(key, col(MenuPart.body)).filter_by(store=store, kind="category")
    found = connection.execute(query.where(among(key, ids)))
    return {row[0]: part_from("categories", row[1]).name for row in found}
