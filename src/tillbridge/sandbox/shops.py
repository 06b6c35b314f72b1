"""Shops as visitors see them: the menu that is shown, and baskets.

A shop is one store, or a community with all of its member stores: one basket, one order.
"""

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tillbridge.sandbox.catalogue import groups_of, is_orderable, live_variants, version
from tillbridge.sandbox.endpoints import any_community, any_store
from tillbridge.sandbox.pricing import Line, PlacementError, PricedLine, priced_lines
from tillbridge.sandbox.state import Catalogue, Community, Item, Link, Store, Table
from tillbridge.sandbox.validation import ServiceError, validate

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_PAGE_SIZE = 60
_WHOLE_MENU = 120
_MOST_BASKETS = 1000
COOKIE = "sandbox_basket"


# What a page shows of a menu


@dataclass(frozen=True, slots=True)
class Section:
    """A category of the menu page, with the items that this page shows of it."""

    title: str
    anchor: str
    items: list[Item]


def browse(catalogue: Catalogue, query: Mapping[str, str]) -> tuple[list[Section], int, int]:
    """The whole menu when it is short, else one category or search result, a page at a time."""
    sold = sold_items(catalogue)
    words = query.get("q", "").strip().lower()
    chosen = query.get("category", "")
    if not words and not chosen and len(sold) <= _WHOLE_MENU:
        return _sections(catalogue, sold), 1, 1
    if words:
        title, found = f"Search: {words}", [item for item in sold if words in item.name.lower()]
    else:
        title = catalogue.categories.get(chosen, "All items")
        found = [item for item in sold if not chosen or chosen in item.fields.get("categories", ())]
    pages = max(1, -(-len(found) // _PAGE_SIZE))
    page = min(max(1, whole_number(query.get("page"), 1)), pages)
    shown = found[(page - 1) * _PAGE_SIZE : page * _PAGE_SIZE]
    return [Section(title, "items", shown)], page, pages


def sold_items(catalogue: Catalogue) -> list[Item]:
    """What guests can order by itself."""
    return [item for item in catalogue.items.values() if not item.is_add_on]


def _sections(catalogue: Catalogue, sold: list[Item]) -> list[Section]:
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


def from_price(item: Item) -> int:
    """The lowest price of the item, in minor units."""
    return min((variant.price for variant in live_variants(item)), default=item.price)


def needs_choice(link: Link, item: Item) -> bool:
    """Whether an item has a page of its own, instead of going into the basket as it is."""
    return bool(live_variants(item) or groups_of(link.catalogue, item))


def whole_number(text: str | None, otherwise: int) -> int:
    """A whole number from a form or an address, or `otherwise`."""
    return int(text) if text and re.fullmatch(r"-?\d{1,7}", text) else otherwise


# Baskets


class Baskets:
    """Lines by visitor and shop, in memory; the oldest go when there are too many."""

    def __init__(self) -> None:
        self._baskets: OrderedDict[tuple[str, str], list[Line]] = OrderedDict()

    def of(self, key: str | None, shop: str) -> list[Line]:
        """The visitor's lines, in the order in which they were added; to be changed in place."""
        return self._baskets.get((key or "", shop), [])

    def add(self, key: str | None, shop: str, line: Line) -> str:
        """Put a line into the visitor's basket; returns the key for the cookie."""
        key = key if key and len(key) <= 64 else secrets.token_urlsafe(16)
        self._baskets.setdefault((key, shop), []).append(line)
        self._baskets.move_to_end((key, shop))
        while len(self._baskets) > _MOST_BASKETS:
            self._baskets.popitem(last=False)
        return key

    def reset(self) -> None:
        """Forget everybody's."""
        self._baskets.clear()


def read_line(form: Mapping[str, str]) -> Line:
    """The item page's form.

    Fields `option:<external_id>` are quantities; `pick:<group>` names the one chosen.
    """
    options: list[dict[str, Any]] = []
    for name, value in form.items():
        if name.startswith("option:") and (quantity := whole_number(value, 0)) > 0:
            options.append({"external_id": name.removeprefix("option:"), "quantity": quantity})
        elif name.startswith("pick:") and value:
            options.append({"external_id": value})
    line = {
        "external_id": form.get("external_id") or None,
        "quantity": min(99, whole_number(form.get("quantity"), 1)),
        "variant_external_id": form.get("variant") or None,
        "options": options,
    }
    return validate(line, Line)


@dataclass(frozen=True, slots=True)
class BasketLine:
    """A line of the basket; `priced` is None for what cannot be ordered now."""

    store: Store
    index: int
    external_id: str | None
    priced: PricedLine | None
    problem: str


# The shops


@dataclass(frozen=True, slots=True)
class Shelf:
    """A member store on the page of a community, with what it sells."""

    store: Store
    link: Link | None
    is_open: bool
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Shop:
    """Where a visitor orders."""

    sandbox: "Sandbox"
    request: web.Request
    stores: list[Store]
    community: Community | None = None

    @property
    def path(self) -> str:
        """Of its page."""
        if self.community is not None:
            return f"/community/{self.community.community_id}"
        return f"/store/{self.stores[0].store_id}"

    def path_of(self, store: Store) -> str:
        """Of what is bought of one store; it sets its basket apart from others, too."""
        return self.path if self.community is None else f"{self.path}/{store.store_id}"

    @property
    def store(self) -> Store:
        """The store in the path."""
        if self.community is None:
            return self.stores[0]
        return self.sandbox.world.member(self.community, self.request.match_info["store_id"])

    def link(self, store: Store) -> Link | None:
        """Whose menu is shown."""
        return self.sandbox.world.active_link(store.store_id)

    def has(self, item: Item) -> bool:
        """Whether the item can be ordered now."""
        now = self.sandbox.clock.now_ms()
        own = self.community is None or self.community.own_state(item.product_id, now).available
        return own and is_orderable(item, now)

    def priced(self, store: Store, line: Line) -> PricedLine:
        """The line, if it can be ordered now. Raises `PlacementError`."""
        if self.community is not None:
            link = self.sandbox.orders.check_line(self.community, store.store_id, line)
        else:
            link = self.connected(store)
        return priced_lines(link, [line], self.sandbox.clock.now_ms())[0]

    def connected(self, store: Store) -> Link:
        """Raises `PlacementError` where no till is."""
        link = self.link(store)
        if link is None:
            raise PlacementError("No till is connected to this store, so it takes no orders")
        return link

    def shelves(self) -> list[Shelf]:
        """The member stores of a community."""
        found = []
        for store in self.stores if self.community else ():
            link, now = self.link(store), self.sandbox.clock.now_ms()
            is_open = self.community is not None and self.sandbox.world.is_open(
                self.community, store, now
            )
            found.append(Shelf(store, link, is_open, sold_items(link.catalogue) if link else []))
        return found

    def version(self) -> str:
        """Changes with everything that its page shows."""
        now = self.sandbox.clock.now_ms()
        if self.community is not None:
            return self.sandbox.mirror.version(self.community, now)
        link = self.link(self.store)
        return f"{link.store.status}.{version(link.catalogue, now)}" if link else "none"

    def basket(self, store: Store) -> list[Line]:
        """What the visitor has put in of one store."""
        return self.sandbox.baskets.of(self.request.cookies.get(COOKIE), self.path_of(store))

    def basket_lines(self) -> list[BasketLine]:
        """As the page shows them."""
        lines = []
        for store in self.stores:
            for index, line in enumerate(self.basket(store)):
                priced, problem = None, ""
                try:
                    priced = self.priced(store, line)
                except PlacementError as refusal:
                    problem = f"{refusal}. Remove it to order the rest."
                lines.append(BasketLine(store, index, line.external_id, priced, problem))
        return lines

    def table(self, token: str | None) -> Table | None:
        """The table whose code was scanned."""
        link = self.link(self.stores[0]) if self.community is None else None
        if link is None or not token:
            return None
        for table in link.tables.values():
            if table.qr_token == token and table.active:
                return table
        raise ServiceError(
            "store.not_found", "This table is not in use any more; ask for a new code"
        )


def store_shop(sandbox: "Sandbox", request: web.Request) -> Shop:
    """The store in the path as a shop."""
    return Shop(sandbox, request, [any_store(sandbox, request)])


def community_shop(sandbox: "Sandbox", request: web.Request) -> Shop:
    """The community in the path as a shop."""
    community = any_community(sandbox, request)
    return Shop(sandbox, request, sandbox.world.members(community), community)
