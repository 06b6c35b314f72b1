"""What a menu page shows: categories, searches, a page at a time. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.sandbox.catalogue import is_available, is_orderable, live_variants
from tillbridge.sandbox.forms import whole
from tillbridge.sandbox.placing import choice_of, find_add_on, groups_of
from tillbridge.sandbox.state import Catalogue, Item, Link

_PAGE_SIZE = 60
_WHOLE_MENU = 120


@dataclass(frozen=True, slots=True)
class Section:
    """A category of the menu page, with the items that this page shows of it."""

    title: str
    anchor: str
    items: list[Item]


def browse(catalogue: Catalogue, query: Mapping[str, str]) -> tuple[list[Section], int, int]:
    """The whole menu when it is short, else one category or search result, a page at a time."""
    sold = [item for item in catalogue.items.values() if not item.is_add_on]
    words = query.get("q", "").strip().lower()
    chosen = query.get("category", "")
    if not words and not chosen and len(sold) <= _WHOLE_MENU:
        return sections(catalogue, sold), 1, 1
    if words:
        title, found = f"Search: {words}", [item for item in sold if words in item.name.lower()]
    else:
        title = catalogue.categories.get(chosen, "All items")
        found = [item for item in sold if not chosen or chosen in item.fields.get("categories", ())]
    pages = max(1, -(-len(found) // _PAGE_SIZE))
    page = min(max(1, whole(query.get("page"), 1)), pages)
    return (
        [Section(title, "items", found[(page - 1) * _PAGE_SIZE : page * _PAGE_SIZE])],
        page,
        pages,
    )


def sections(catalogue: Catalogue, sold: list[Item]) -> list[Section]:
    """The categories that have items, in the order in which they were pushed."""
    sections = []
    for index, (external_id, name) in enumerate(catalogue.categories.items()):
        items = [item for item in sold if external_id in item.fields.get("categories", ())]
        if items:
            sections.append(Section(name, f"c{index}", items))
    loose = [item for item in sold if not item.fields.get("categories")]
    if loose:
        sections.append(Section("More" if sections else "Menu", "loose", loose))
    return sections


def categories(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Id and name of the categories that have items."""
    used = {
        key
        for item in catalogue.items.values()
        if not item.is_add_on
        for key in item.fields.get("categories", ())
    }
    return [(key, name) for key, name in catalogue.categories.items() if key in used]


def from_price(item: Item) -> int:
    """The lowest price of the item, in minor units."""
    prices = [variant.price for variant in live_variants(item)]
    return min(prices) if prices else item.price


def back_at(item: Item, now_ms: int) -> int | None:
    """When a snoozed item comes back; None for any other."""
    return item.snooze_until_ms if not is_available(item, now_ms) else None


def item_values(link: Link, item: Item, now_ms: int) -> dict[str, Any]:
    """What the page of one item shows: its kinds, its add-ons, and whether they can be had."""
    catalogue = link.catalogue
    return {
        "store": link.store,
        "item": item,
        "variants": live_variants(item),
        "groups": [
            (
                group,
                choice_of(group),
                [found for key in group.add_ons if (found := find_add_on(catalogue, key))],
            )
            for group in groups_of(catalogue, item)
        ],
        "orderable": is_orderable(item, now_ms),
        "is_available": lambda thing: is_available(thing, now_ms),
    }


def needs_choice(catalogue: Catalogue, item: Item) -> bool:
    """Whether an item has a page of its own, instead of going into the basket as it is."""
    return bool(live_variants(item) or groups_of(catalogue, item))
