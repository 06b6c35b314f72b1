"""The menu as a person reads it: by category, with sizes and choices, and what is not in step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from sqlalchemy import Connection

from tillbridge.ledger.menu import items_by_id, parts, refused_items
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.pushes import get_overrides
from tillbridge.ledger.search import ListedItem, fold, listed_items, rank_of
from tillbridge.menu.review import NOTHING, Differing, ReviewRow, row_of
from tillbridge.model.catalogue import AddOn, AddOnGroup, Item
from tillbridge.model.instant import to_iso

PER_PAGE = 36
NO_CATEGORY = "-"  # what a page asks for to see what is in none


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an item a page shows: a page of a large menu stays small."""

    sizes: int = 8
    choices: int = 3
    options: int = 6


_ONE_ITEM = Limits(200, 60, 200)

Mark = Literal["", "new", "removed", "changed"]


class SizeCard(TypedDict):
    """A size of an item; the price is minor units."""

    external_id: str
    name: str
    price: int
    on_sale: bool


class OptionCard(TypedDict):
    """Something to choose; the price is minor units."""

    name: str
    price: int
    on_sale: bool


class ChoiceCard(TypedDict):
    """A choice that guests have with an item: of the options, the first; `more` are left out."""

    name: str
    least: int
    most: int
    options: list[OptionCard]
    more: int


class ItemCard(TypedDict):
    """An item; prices are minor units, the storefront's, or the till's of what is new.

    `mark` says how the till differs, `change` what about it; `refused` is why the service refused
    the till's latest. `until` is when it is on sale again, where that is known.
    """

    external_id: str
    name: str
    description: str
    picture: str
    price: int
    on_sale: bool
    stopped: bool
    until: str | None
    sizes: list[SizeCard]
    more_sizes: int
    choices: list[ChoiceCard]
    more_choices: int
    mark: Mark
    change: ReviewRow | None
    refused: str


class CategoryCards(TypedDict):
    """A category's items on this page."""

    name: str
    items: list[ItemCard]


class CategoryLine(TypedDict):
    """A category to choose, with how many items it has and how many of them differ."""

    id: str
    name: str
    count: int
    differing: int


class MenuPage(TypedDict):
    """A page of the menu. `count` is of items that fit; `items` and `sizes` are of the whole menu.

    `differing` counts the items that the till has otherwise, new and gone ones among them.
    """

    categories: list[CategoryLine]
    category: str
    item: str
    groups: list[CategoryCards]
    count: int
    page: int
    pages: int
    items: int
    sizes: int
    differing: int
    held: bool
    currency: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What of the menu a person wants to see: a category's id ("" for all), letters, a page.

    `item` is the id of one item, of which everything is shown.
    """

    category: str = ""
    text: str = ""
    page: int = 1
    item: str = ""


def menu_page(
    connection: Connection,
    store: str,
    currency: str,
    found: Differing | None,
    asked: Asked,
) -> MenuPage:
    """Return a page of what the storefront has, with what the till has otherwise (`found`)."""
    differing = found or NOTHING
    listed = listed_items(connection, store)
    changes = differing.changes
    everything = [*listed, *map(_listed, changes.added.values())]
    differs = {*changes.added, *changes.content, *changes.removed}
    names = _category_names(connection, store, differing, everything)
    category = asked.category if asked.category in {*names, NO_CATEGORY} else ""
    placed = arrange(everything, names, asked.text, category)
    if asked.item:
        placed = [("", each.external_id) for each in everything if each.external_id == asked.item]
    pages = max(1, -(-len(placed) // PER_PAGE))
    page = min(asked.page, pages)
    shown = placed[(page - 1) * PER_PAGE : page * PER_PAGE]
    limits = _ONE_ITEM if asked.item else Limits()
    cards = _cards(connection, store, differing, {key for _name, key in shown}, limits)
    groups: list[CategoryCards] = []
    for name, key in shown:
        if key not in cards:
            continue
        if not groups or groups[-1]["name"] != name:
            groups.append({"name": name, "items": []})
        groups[-1]["items"].append(cards[key])
    return {
        "categories": category_lines(everything, names, differs),
        "category": category,
        "item": asked.item,
        "groups": groups,
        "count": len({key for _name, key in placed}),
        "page": page,
        "pages": pages,
        "items": len(listed),
        "sizes": sum(len(each.sizes) for each in listed),
        "differing": len(differs),
        "held": bool(differing.reasons),
        "currency": currency,
    }


def arrange(
    items: Sequence[ListedItem], names: Mapping[str, str], text: str, category: str
) -> list[tuple[str, str]]:
    """Return (category's name, item's id) in the order of the page.

    By category and name; what fits letters best comes first, under no heading.
    """
    chosen = [
        each for each in items if not category or category in (each.categories or (NO_CATEGORY,))
    ]
    if wanted := fold(text.strip()):
        ranks = ((rank_of_item(wanted, each), fold(each.name), each.external_id) for each in chosen)
        fitting = sorted((rank, name, key) for rank, name, key in ranks if rank is not None)
        return [("", key) for _rank, _name, key in fitting]
    placed = [
        (names.get(key, "") if key != NO_CATEGORY else "", each)
        for each in chosen
        for key in ([category] if category else each.categories or (NO_CATEGORY,))
    ]
    # What is in no category comes last.
    placed.sort(key=lambda row: (row[0] == "", fold(row[0]), fold(row[1].name), row[1].external_id))
    return [(name, each.external_id) for name, each in placed]


def rank_of_item(wanted: str, item: ListedItem) -> int | None:
    """Return how well the item, or the best of its sizes, fits folded letters; None: not at all."""
    texts = [item.name, *(f"{item.name} {each}" for each in item.sizes)]
    ranks = [rank_of(wanted, fold(each), item.external_id) for each in texts]
    return min((each for each in ranks if each is not None), default=None)


def category_lines(
    items: Iterable[ListedItem], names: Mapping[str, str], differs: set[str]
) -> list[CategoryLine]:
    """Return the categories that have items, by name; items in none come last."""
    counts: dict[str, int] = {}
    differing: dict[str, int] = {}
    for each in items:
        for key in each.categories or (NO_CATEGORY,):
            counts[key] = counts.get(key, 0) + 1
            differing[key] = differing.get(key, 0) + (each.external_id in differs)
    return [
        {
            "id": key,
            "name": names.get(key, "") if key != NO_CATEGORY else "",
            "count": counts[key],
            "differing": differing[key],
        }
        for key in sorted(
            counts, key=lambda each: (each == NO_CATEGORY, fold(names.get(each, "")), each)
        )
    ]


# -- cards


def _listed(item: Item) -> ListedItem:
    sizes = tuple(each.variant_name for each in item.variants)
    return ListedItem(item.external_id, item.name, item.categories, sizes)


def _category_names(
    connection: Connection, store: str, found: Differing, items: Iterable[ListedItem]
) -> dict[str, str]:
    ids = {key for each in items for key in each.categories}
    known = {**found.after.categories, **parts(connection, store, categories=ids).categories}
    return {key: known[key].name if key in known else key for key in ids}


def _cards(
    connection: Connection, store: str, found: Differing, ids: set[str], limits: Limits
) -> dict[str, ItemCard]:
    accepted = items_by_id(connection, store, ids)
    stopped = get_overrides(connection, store, StoreOverride)
    refused = refused_items(connection, store)
    added = {key: found.changes.added[key] for key in ids if key in found.changes.added}
    groups = {key for each in accepted.values() for key in each.item.addon_groups}
    groups |= {key for each in added.values() for key in each.addon_groups}
    accepted_groups = parts(connection, store, addon_groups=groups).addon_groups
    known = {**found.after.addon_groups, **accepted_groups}
    options = {key for group in known.values() for key in group.add_ons}
    add_ons = {**found.after.add_ons, **parts(connection, store, add_ons=options).add_ons}
    choices = {
        key: _choice(group, [add_ons[k] for k in group.add_ons if k in add_ons], limits)
        for key, group in known.items()
        if key in groups
    }
    cards = {}
    for key in ids:
        there: AcceptedItem | None = accepted.get(key)
        item = added.get(key) if there is None else there.item
        if item is None:
            continue
        row = row_of(found, key)
        cards[key] = _card(item, choices, row, limits)
        cards[key]["stopped"] = key in stopped
        cards[key]["refused"] = refused[key].reason if key in refused else ""
    return cards


_MARKS: Mapping[str, Mark] = {"added": "new", "removed": "removed", "changed": "changed"}


def _card(
    item: Item, choices: Mapping[str, ChoiceCard], row: ReviewRow | None, limits: Limits
) -> ItemCard:
    offered = [choices[key] for key in item.addon_groups if key in choices]
    return {
        "external_id": item.external_id,
        "name": item.name or item.external_id,
        "description": item.description,
        "picture": item.image_url,
        "price": item.price,
        "on_sale": item.available,
        "stopped": False,
        "until": None if item.snooze_until is None else to_iso(item.snooze_until),
        "sizes": [
            {
                "external_id": each.external_id,
                "name": each.variant_name,
                "price": each.price,
                "on_sale": each.available,
            }
            for each in item.variants[: limits.sizes]
        ],
        "more_sizes": max(0, len(item.variants) - limits.sizes),
        "choices": offered[: limits.choices],
        "more_choices": max(0, len(offered) - limits.choices),
        "mark": "" if row is None else _MARKS[row["kind"]],
        "change": row,
        "refused": "",
    }


def _choice(group: AddOnGroup, options: Sequence[AddOn], limits: Limits) -> ChoiceCard:
    return {
        "name": group.name,
        "least": max(group.min_select, int(group.required)),
        "most": group.max_select,
        "options": [
            {
                "name": each.name,
                "price": each.price,
                "on_sale": each.external_id not in group.sold_out,
            }
            for each in options[: limits.options]
        ],
        "more": max(0, len(options) - limits.options),
    }
