"""The storefronts: a person browses a menu, fills a basket, orders, and watches the order.

A shop is one store, or a community with all of its member stores: one basket, one order.
"""

import re
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.catalogue import (
    find_add_on,
    groups_of,
    is_available,
    is_orderable,
    live_variants,
    version,
)
from tillbridge.sandbox.endpoints import (
    Call,
    Unread,
    any_community,
    any_order,
    any_parent,
    any_store,
    endpoint,
)
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.orders import STATUSES, WantedAt, parent_body
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.pricing import (
    PlacementError,
    PricedLine,
    Wanted,
    WantedOption,
    choice_of,
    priced_lines,
)
from tillbridge.sandbox.state import (
    Catalogue,
    Community,
    Item,
    Link,
    Order,
    ParentOrder,
    Store,
    Table,
)
from tillbridge.sandbox.validation import Json

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

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


# The shops

_STEPS = ("created", "accepted", "preparing", "ready", "completed")
_COOKIE = "sandbox_basket"


@dataclass(frozen=True, slots=True)
class BasketLine:
    """A line of the basket; `priced` is None for what cannot be ordered now."""

    store: Store
    index: int
    external_id: str | None
    priced: PricedLine | None
    problem: str


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
    stores: list[Store]
    community: Community | None = None

    @property
    def path(self) -> str:
        """Of its page."""
        if self.community is not None:
            return f"/community/{self.community.community_id}"
        return f"/store/{self.stores[0].store_id}"

    def path_of(self, store: Store) -> str:
        """Of what is bought of one store."""
        return self.path if self.community is None else f"{self.path}/{store.store_id}"

    def store(self, request: web.Request) -> Store:
        """The store in the path."""
        if self.community is None:
            return self.stores[0]
        return self.sandbox.world.member(self.community, request.match_info["store_id"])

    def link(self, store: Store) -> Link | None:
        """Whose menu is shown."""
        return self.sandbox.world.active_link(store.store_id)

    def has(self, item: Item) -> bool:
        """Whether the item can be ordered now."""
        now = self.sandbox.clock.now_ms()
        own = self.community is None or self.community.own_state(item.product_id, now).available
        return own and is_orderable(item, now)

    def priced(self, store: Store, line: Wanted) -> PricedLine:
        """The line, if it can be ordered now. Raises `PlacementError`."""
        if self.community is not None:
            link = self.sandbox.parents.check_line(self.community, WantedAt(store.store_id, line))
        else:
            link = self.connected(store)
        return priced_lines(link, [line], self.sandbox.clock.now_ms())[0]

    def connected(self, store: Store) -> Link:
        """Raises `PlacementError` where no till is."""
        link = self.link(store)
        if link is None:
            raise PlacementError("No till is connected to this store, so it takes no orders")
        return link

    # The basket

    def basket(self, store: Store) -> str:
        """What keeps the baskets of this shop and store apart from others."""
        return self.path_of(store)

    def wanted(self, request: web.Request) -> list[WantedAt]:
        """What the visitor has put in."""
        key = request.cookies.get(_COOKIE)
        return [
            WantedAt(store.store_id, line)
            for store in self.stores
            for line in self.sandbox.baskets.lines(key, self.basket(store))
        ]

    def basket_lines(self, request: web.Request) -> list[BasketLine]:
        """As the page shows them."""
        key = request.cookies.get(_COOKIE)
        return [
            self._basket_line(store, index, line)
            for store in self.stores
            for index, line in enumerate(self.sandbox.baskets.lines(key, self.basket(store)))
        ]

    def _basket_line(self, store: Store, index: int, line: Wanted) -> BasketLine:
        try:
            return BasketLine(store, index, line.external_id, self.priced(store, line), "")
        except PlacementError as refusal:
            problem = f"{refusal}. Remove it to order the rest."
            return BasketLine(store, index, line.external_id, None, problem)

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
    return Shop(sandbox, [any_store(sandbox, request)])


def community_shop(sandbox: "Sandbox", request: web.Request) -> Shop:
    """The community in the path as a shop."""
    community = any_community(sandbox, request)
    return Shop(sandbox, sandbox.world.members(community), community)


Found = TypeVar("Found")


def _shown(version_of: Callable[[Found], str]) -> Callable[[Call[Found, Unread]], Awaitable[Json]]:
    """What a page that stands open asks for, to see whether it is still true."""

    async def show(call: Call[Found, Unread]) -> Json:
        return {"version": version_of(call.found)}

    return show


# Browsing


async def _show_store(call: Call[Shop, Unread]) -> web.Response:
    shop, query = call.found, call.request.query
    store = shop.stores[0]
    link = shop.link(store)
    catalogue = link.catalogue if link else Catalogue()
    sections, page, pages = browse(catalogue, query)
    now = call.sandbox.clock.now_ms()
    return _render(
        call,
        "store.html",
        store=store,
        connected=link is not None,
        sections=sections,
        categories=categories(catalogue),
        words=query.get("q", "").strip(),
        chosen=query.get("category", ""),
        page=page,
        pages=pages,
        table=shop.table(query.get("table")),
        table_token=query.get("table", ""),
        currency=store.currency,
        version=_store_version(shop),
        back_at=lambda item: back_at(item, now),
        needs_choice=lambda item: needs_choice(catalogue, item),
    )


async def _show_community(call: Call[Shop, Unread]) -> web.Response:
    shop = call.found
    return _render(
        call,
        "community.html",
        community=shop.community,
        shelves=[_shelf(shop, store) for store in shop.stores],
        table_token="",
        currency=shop.stores[0].currency if shop.stores else "USD",
        version=_community_version(shop),
        needs_choice=lambda link, item: needs_choice(link.catalogue, item),
    )


def _render(call: Call[Shop, Unread], template: str, **values: Any) -> web.Response:  # noqa: ANN401 (of templates)
    """What the pages of both kinds of shops have in common: the basket and the prices."""
    lines = call.found.basket_lines(call.request)
    return call.sandbox.pages.render(
        template,
        shop=call.found,
        lines=lines,
        total=sum(line.priced.subtotal for line in lines if line.priced),
        problem=next((line.problem for line in lines if line.problem), ""),
        from_price=from_price,
        **values,
    )


def _shelf(shop: Shop, store: Store) -> Shelf:
    link = shop.link(store)
    sold = [item for item in link.catalogue.items.values() if not item.is_add_on] if link else []
    now = shop.sandbox.clock.now_ms()
    is_open = shop.community is not None and shop.sandbox.world.is_open(shop.community, store, now)
    return Shelf(store, link, is_open, sold)


async def _show_item(call: Call[Shop, Unread]) -> web.Response:
    shop, query = call.found, call.request.query
    store = shop.store(call.request)
    link = shop.link(store)
    item = link.catalogue.items.get(query.get("id", "")) if link else None
    if link is None or item is None or item.is_add_on:
        return call.sandbox.pages.message(
            "Not on the menu", "This item is no longer sold here.", back=shop.path, status=404
        )
    token = query.get("table", "")
    return call.sandbox.pages.render(
        "item.html",
        action=f"{shop.path_of(store)}/basket",
        back=_at_table(shop.path, token),
        problem=query.get("problem", ""),
        table_token=token,
        orderable=shop.has(item),
        **item_values(link, item, call.sandbox.clock.now_ms()),
    )


def _store_version(shop: Shop) -> str:
    link = shop.link(shop.stores[0])
    if link is None:
        return "none"
    return f"{link.store.status}.{version(link.catalogue, shop.sandbox.clock.now_ms())}"


def _community_version(shop: Shop) -> str:
    if shop.community is None:
        return "none"
    return shop.sandbox.mirror.version(shop.community, shop.sandbox.clock.now_ms())


# The basket


async def _add(call: Call[Shop, Unread]) -> web.Response:
    shop = call.found
    store, form = shop.store(call.request), await read_form(call.request)
    wanted, token = read_line(form), form.get("table", "")
    try:
        shop.priced(store, wanted)
    except PlacementError as refusal:
        query = {"id": wanted.external_id or "", "problem": str(refusal)}
        where = URL(f"{shop.path_of(store)}/item").with_query(query)
        raise web.HTTPSeeOther(_at_table(str(where), token)) from None
    response = web.HTTPSeeOther(_at_table(shop.path, token) + "#basket")
    visitor = call.request.cookies.get(_COOKIE)
    key = call.sandbox.baskets.add(visitor, shop.basket(store), wanted)
    response.set_cookie(_COOKIE, key, httponly=True, samesite="Lax")
    raise response


async def _remove(call: Call[Shop, Unread]) -> web.Response:
    shop, form = call.found, await read_form(call.request)
    basket = shop.basket(shop.store(call.request))
    index = whole(form.get("line"), -1)
    call.sandbox.baskets.remove(call.request.cookies.get(_COOKIE), basket, index)
    raise web.HTTPSeeOther(_at_table(shop.path, form.get("table", "")) + "#basket")


async def _place(call: Call[Shop, Unread]) -> web.Response:
    shop, form = call.found, await read_form(call.request)
    try:
        placed = _ordered(shop, shop.wanted(call.request), form)
    except PlacementError as refusal:
        return call.sandbox.pages.message(
            "The order was not placed",
            f"{refusal}.",
            back=_at_table(shop.path, form.get("table", "")),
            status=409,
        )
    for store in shop.stores:
        call.sandbox.baskets.clear(call.request.cookies.get(_COOKIE), shop.basket(store))
    raise web.HTTPSeeOther(placed)


def _ordered(shop: Shop, wanted: list[WantedAt], form: dict[str, str]) -> str:
    """The page of the order that was placed."""
    notes = form.get("special_instructions", "").strip()[:1000]
    if shop.community is not None:
        customer = {"name": form.get("name", "").strip()[:100]}
        parent = shop.sandbox.parents.place(
            shop.community, wanted, special_instructions=notes, customer=customer
        )
        return f"/community-orders/{parent.order_id}"
    table = shop.table(form.get("table"))
    order = shop.sandbox.orders.place(
        shop.connected(shop.stores[0]),
        [entry.line for entry in wanted],
        order_type="dine_in" if table else "delivery",
        tip=max(0, whole(form.get("tip"), 0)),
        special_instructions=f"Table {table.name}. {notes}".strip() if table else notes,
    )
    return f"/orders/{order.order_id}"


def _at_table(path: str, token: str) -> str:
    """The next address, at the same table."""
    return str(URL(path).update_query(table=token)) if token else path


# Orders


async def _show_order(call: Call[Order, Unread]) -> web.Response:
    order = call.found
    return call.sandbox.pages.render(
        "order.html",
        order=order,
        store=order.link.store,
        steps=_STEPS,
        reached={entry["state"]: entry["at"] for entry in order.history},
        version=_order_version(order),
    )


def _order_version(order: Order) -> str:
    return f"{order.state}.{len(order.history)}"


async def _deliver(call: Call[Order, Unread]) -> web.Response:
    call.sandbox.orders.deliver(call.found)
    raise web.HTTPSeeOther(f"/orders/{call.found.order_id}")


async def _cancel(call: Call[Order, Unread]) -> web.Response:
    call.sandbox.orders.cancel_by_customer(call.found, None)
    raise web.HTTPSeeOther(f"/orders/{call.found.order_id}")


async def _show_parent(call: Call[ParentOrder, Unread]) -> web.Response:
    parent = call.found
    return call.sandbox.pages.render(
        "community_order.html",
        parent=parent,
        order=parent_body(parent),
        steps=STATUSES,
        reached={entry["status"]: entry["at"] for entry in parent.history},
        version=_parent_version(parent),
    )


def _parent_version(parent: ParentOrder) -> str:
    steps = sum(len(child.history) for child in parent.children)
    return f"{parent.status}.{steps}"


async def _move_parent(call: Call[ParentOrder, Unread]) -> web.Response:
    parents = call.sandbox.parents
    steps: dict[str, Callable[[ParentOrder], None]] = {
        "leave": parents.leave,
        "deliver": parents.deliver,
        "cancel": parents.cancel,
    }
    step = steps.get(call.part("step"))
    if step is None:
        raise web.HTTPNotFound
    step(call.found)
    raise web.HTTPSeeOther(f"/community-orders/{call.found.order_id}")


_STORE, _COMMUNITY = "/store/{store_id}", "/community/{community_id}"
_MEMBER = f"{_COMMUNITY}/{{store_id}}"
_ORDER, _PARENT = "/orders/{order_id}", "/community-orders/{order_id}"
STOREFRONT_ENDPOINTS = (
    endpoint("GET", _STORE, store_shop, Unread, _show_store),
    endpoint("GET", f"{_STORE}/item", store_shop, Unread, _show_item),
    endpoint("GET", f"{_STORE}/version", store_shop, Unread, _shown(_store_version)),
    endpoint("POST", f"{_STORE}/basket", store_shop, Unread, _add),
    endpoint("POST", f"{_STORE}/basket/remove", store_shop, Unread, _remove),
    endpoint("POST", f"{_STORE}/orders", store_shop, Unread, _place),
    endpoint("GET", _ORDER, any_order, Unread, _show_order),
    endpoint("GET", f"{_ORDER}/version", any_order, Unread, _shown(_order_version)),
    endpoint("POST", f"{_ORDER}/deliver", any_order, Unread, _deliver),
    endpoint("POST", f"{_ORDER}/cancel", any_order, Unread, _cancel),
    endpoint("GET", _COMMUNITY, community_shop, Unread, _show_community),
    endpoint("GET", f"{_COMMUNITY}/version", community_shop, Unread, _shown(_community_version)),
    endpoint("POST", f"{_COMMUNITY}/orders", community_shop, Unread, _place),
    endpoint("GET", f"{_MEMBER}/item", community_shop, Unread, _show_item),
    endpoint("POST", f"{_MEMBER}/basket", community_shop, Unread, _add),
    endpoint("POST", f"{_MEMBER}/basket/remove", community_shop, Unread, _remove),
    endpoint("GET", _PARENT, any_parent, Unread, _show_parent),
    endpoint("GET", f"{_PARENT}/version", any_parent, Unread, _shown(_parent_version)),
    endpoint("POST", f"{_PARENT}/{{step}}", any_parent, Unread, _move_parent),
)
