"""Finding accepted items: by a few letters, best match first, and by category (86 board)."""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, Integer, Select, case, func, select
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.database import among
from tillbridge.ledger.menu import groups_of, items_by_id
from tillbridge.ledger.menu_codec import AcceptedItem, item_from, part_from
from tillbridge.ledger.models import MenuItem, MenuPart
from tillbridge.ledger.pushes import options_off
from tillbridge.model.catalogue import AddOn

_LONGEST_ITEM_QUERY = 60


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item, or a variant of one (`variant` is then its name)."""

    external_id: str
    name: str
    price: int
    on_sale: bool
    item_id: str  # of the item that has the variant, or its own
    variant: str = ""
    pos_on_sale: bool = True


@dataclass(frozen=True, slots=True)
class FoundItems:
    """A page of matches, best first, and their total number.

    `count` is the number of lines, one for each size; `items_count` is the number of items.
    """

    items: Sequence[FoundItem]
    count: int
    items_count: int


def find_items(
    connection: Connection, store: str, text: str, *, limit: int, offset: int = 0
) -> FoundItems:
    """Return the items whose name, initials or id match `text`; if empty, all by name."""
    query = fold(text.strip()[:_LONGEST_ITEM_QUERY])
    ranked = sorted(
        (rank, folded, external_id, item_id)
        for external_id, item_id, name in _names(connection, store)
        if (rank := rank_of(query, folded := fold(name), external_id)) is not None
    )
    page = ranked[offset : offset + limit]
    known = items_by_id(connection, store, {each[3] for each in page})
    found = [_found(known[item_id], external_id) for _rank, _name, external_id, item_id in page]
    return FoundItems(found, len(ranked), len({each[3] for each in ranked}))


def find_options(
    connection: Connection, store: str, text: str, *, limit: int
) -> list[tuple[AddOn, bool]]:
    """Return the add-ons whose name or id match `text`, best first, and whether each is on sale."""
    query = fold(text.strip()[:_LONGEST_ITEM_QUERY])
    if not query:
        return []
    like = select(col(MenuPart.body)).filter_by(store=store, kind="add_on")
    add_ons = [part_from("add_ons", body) for body in connection.scalars(like)]
    off = options_off(groups_of(connection, store, ()))
    ranked = sorted(
        (rank, folded, each.external_id, each)
        for each in add_ons
        if (rank := rank_of(query, folded := fold(each.name), each.external_id)) is not None
    )
    return [(each, key not in off) for _rank, _name, key, each in ranked[:limit]]


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item as needed in a list of the complete menu: category ids, names of sizes."""

    external_id: str
    name: str
    categories: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()


def listed_items(connection: Connection, store: str) -> list[ListedItem]:
    """Return every accepted item with its search data, unordered."""
    body = col(MenuItem.body)
    query = select(
        col(MenuItem.external_id),
        func.json_extract(body, "$.name"),
        func.json_extract(body, "$.categories"),
        func.json_extract(body, "$.variants"),
    ).where(col(MenuItem.store) == store)
    return [
        ListedItem(
            external_id,
            name,
            tuple(json.loads(categories)) if categories else (),
            tuple(each[1] for each in json.loads(sizes)) if sizes else (),
        )
        for external_id, name, categories, sizes in connection.execute(query)
    ]


def fold(text: str) -> str:
    """Return the text for comparing: without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


def rank_of(query: str, name: str, external_id: str) -> int | None:
    """Return how well a folded name matches, 0 best; None if it does not.

    In this order: the name starts with it; its words do ("ma pi" too); initials ("pm"); the id; it
    is somewhere in the name.
    """
    if not query or name.startswith(query):
        return 0
    words = name.split()
    if all(any(word.startswith(part) for word in words) for part in query.split()):
        return 1
    if "".join(word[:1] for word in words).startswith(query):
        return 2
    if fold(external_id).startswith(query):
        return 3
    return 4 if query in name else None


def _names(connection: Connection, store: str) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the item's id, and the name of all items and variants."""
    variants = case((func.instr(col(MenuItem.body), '"variants":') > 0, col(MenuItem.body)))
    named = func.json_extract(col(MenuItem.body), "$.name")
    query = select(col(MenuItem.external_id), named, variants).where(col(MenuItem.store) == store)
    for external_id, name, body in connection.execute(query):
        yield external_id, external_id, name
        if body is not None:
            for each in item_from(json.loads(body)).variants:
                yield each.external_id, external_id, f"{name} {each.variant_name}"


def _found(accepted: AcceptedItem, external_id: str) -> FoundItem:
    """Return the match as an item, or as the variant with this id."""
    item = accepted.item
    whole = FoundItem(external_id, item.name, item.price, item.available, item.external_id)
    if external_id == item.external_id:
        return replace(whole, pos_on_sale=accepted.pos_available)
    variant = next(each for each in item.variants if each.external_id == external_id)
    return replace(
        whole,
        price=variant.price,
        on_sale=item.available and variant.available,
        variant=variant.variant_name,
        pos_on_sale=accepted.pos_variants.get(external_id, variant.available),
    )


# -- the menu by category: only what is displayed is read


NO_CATEGORY = "-"
"""The key of items without a category."""


@dataclass(frozen=True, slots=True)
class BoardCategory:
    """A category and its number of items; an item in two categories counts in both.

    `name` is "" for `NO_CATEGORY`.
    """

    external_id: str
    name: str
    count: int


def board_categories(connection: Connection, store: str) -> list[BoardCategory]:
    """Return the categories that have items, by name; items without a category come last."""
    listed = func.json_each(col(MenuItem.body), "$.categories").table_valued("value")
    counted = (
        select(listed.c.value, func.count())
        .select_from(MenuItem)
        .join(listed, listed.c.value.is_not(None))
        .where(col(MenuItem.store) == store)
        .group_by(listed.c.value)
    )
    counts = {str(key): int(count) for key, count in connection.execute(counted)}
    names = _category_names(connection, store, counts)
    found = [BoardCategory(key, names.get(key, key), count) for key, count in counts.items()]
    found.sort(key=lambda each: (each.name.casefold(), each.external_id))
    alone = connection.scalar(
        select(func.count()).select_from(MenuItem).where(col(MenuItem.store) == store, _is_alone())
    )
    return [*found, BoardCategory(NO_CATEGORY, "", alone)] if alone else found


def count_sizes(connection: Connection, store: str) -> int:
    """Return how many sizes all items have together."""
    sizes = func.json_array_length(col(MenuItem.body), "$.variants", type_=Integer)
    query = select(func.sum(func.coalesce(sizes, 0))).where(col(MenuItem.store) == store)
    return connection.scalar(query) or 0


def board_items(
    connection: Connection, store: str, category: str, *, limit: int, offset: int = 0
) -> list[AcceptedItem]:
    """Return a category's items by name, starting at `offset`."""
    name = func.lower(func.json_extract(col(MenuItem.body), "$.name"))
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


def _category_names(connection: Connection, store: str, ids: Mapping[str, int]) -> dict[str, str]:
    key = col(MenuPart.external_id)
    query = select(key, col(MenuPart.body)).filter_by(store=store, kind="category")
    found = connection.execute(query.where(among(key, ids)))
    return {row[0]: part_from("categories", row[1]).name for row in found}
