"""What the pages of a menu show, a page at a time, and the baskets that their forms fill."""

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tillbridge.sandbox.catalogue import (
    find_add_on,
    groups_of,
    is_available,
    live_variants,
)
from tillbridge.sandbox.pricing import Wanted, WantedOption, choice_of
from tillbridge.sandbox.state import Catalogue, Item, Link

_PAGE_SIZE = 60
_WHOLE_MENU = 120
_MOST_BASKETS = 1000


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
    """What the page of one item shows: its kinds, its add-ons, and which of them can be had."""
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
        "is_available": lambda thing: is_available(thing, now_ms),
    }


def needs_choice(catalogue: Catalogue, item: Item) -> bool:
    """Whether an item has a page of its own, instead of going into the basket as it is."""
    return bool(live_variants(item) or groups_of(catalogue, item))


# Forms and baskets


def read_line(form: Mapping[str, str]) -> Wanted:
    """The item page's form.

    Fields `option:<external_id>` are quantities; `pick:<group>` names the one chosen.
    """
    options = []
    for name, value in form.items():
        if name.startswith("option:") and whole(value, 0) > 0:
            options.append(WantedOption(name.removeprefix("option:"), whole(value, 0)))
        elif name.startswith("pick:") and value:
            options.append(WantedOption(value))
    return Wanted(
        external_id=form.get("external_id", ""),
        quantity=min(99, whole(form.get("quantity"), 1)),
        variant_external_id=form.get("variant") or None,
        options=tuple(options),
    )


def whole(text: str | None, otherwise: int) -> int:
    """A whole number from a form or an address, or `otherwise`."""
    return int(text) if text and re.fullmatch(r"-?\d{1,7}", text) else otherwise


class Baskets:
    """Lines by visitor and shop, in memory; the oldest go when there are too many."""

    def __init__(self) -> None:
        self._baskets: OrderedDict[tuple[str, str], list[Wanted]] = OrderedDict()

    def add(self, key: str | None, shop: str, line: Wanted) -> str:
        """Put a line into the visitor's basket; returns the key for the cookie."""
        key = key if key and len(key) <= 64 else secrets.token_urlsafe(16)
        self._baskets.setdefault((key, shop), []).append(line)
        self._baskets.move_to_end((key, shop))
        while len(self._baskets) > _MOST_BASKETS:
            self._baskets.popitem(last=False)
        return key

    def lines(self, key: str | None, shop: str) -> Sequence[Wanted]:
        """The visitor's lines, in the order in which they were added."""
        return tuple(self._baskets.get((key or "", shop), ()))

    def remove(self, key: str | None, shop: str, index: int) -> None:
        """Take one line out; an index that is not there is ignored."""
        lines = self._baskets.get((key or "", shop), [])
        if 0 <= index < len(lines):
            del lines[index]

    def clear(self, key: str | None, shop: str) -> None:
        """Empty a basket, once it has been ordered."""
        self._baskets.pop((key or "", shop), None)

    def reset(self) -> None:
        """Forget everybody's."""
        self._baskets.clear()
