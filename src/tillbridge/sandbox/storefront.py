"""The storefronts: a person browses a menu, fills a basket, orders, and watches the order.

A shop is one store, or a community with all of its member stores: one basket, one order.
"""

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    Endpoints,
    any_community,
    any_store,
)
from tillbridge.sandbox.orders import (
    STATUSES,
    CommunityBasket,
    CommunityLine,
    Customer,
    parent_body,
)
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.pricing import (
    Basket,
    Line,
    PlacementError,
    PricedLine,
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
from tillbridge.sandbox.validation import Json, ServiceError, validate

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_PAGE_SIZE = 60
_WHOLE_MENU = 120
_MOST_BASKETS = 1000
_STEPS = ("created", "accepted", "preparing", "ready", "completed")
_COOKIE = "sandbox_basket"
_COUNTS_DOWN_BY_S = 5  # each step is a new version of the page


# What a page shows of a menu


@dataclass(frozen=True, slots=True)
class Section:
    """A category of the menu page, with the items that this page shows of it."""

    title: str
    anchor: str
    items: list[Item]


def browse(catalogue: Catalogue, query: Mapping[str, str]) -> tuple[list[Section], int, int]:
    """The whole menu when it is short, else one category or search result, a page at a time."""
    sold = _sold(catalogue)
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
    page = min(max(1, _whole(query.get("page"), 1)), pages)
    shown = found[(page - 1) * _PAGE_SIZE : page * _PAGE_SIZE]
    return [Section(title, "items", shown)], page, pages


def _sold(catalogue: Catalogue) -> list[Item]:
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


def _from_price(item: Item) -> int:
    """The lowest price of the item, in minor units."""
    return min((variant.price for variant in live_variants(item)), default=item.price)


def _needs_choice(link: Link, item: Item) -> bool:
    """Whether an item has a page of its own, instead of going into the basket as it is."""
    return bool(live_variants(item) or groups_of(link.catalogue, item))


def _whole(text: str | None, otherwise: int) -> int:
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
        if name.startswith("option:") and (quantity := _whole(value, 0)) > 0:
            options.append({"external_id": name.removeprefix("option:"), "quantity": quantity})
        elif name.startswith("pick:") and value:
            options.append({"external_id": value})
    line = {
        "external_id": form.get("external_id") or None,
        "quantity": min(99, _whole(form.get("quantity"), 1)),
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
            found.append(Shelf(store, link, is_open, _sold(link.catalogue) if link else []))
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
        return self.sandbox.baskets.of(self.request.cookies.get(_COOKIE), self.path_of(store))

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


# Browsing


STOREFRONT_ENDPOINTS = Endpoints()
_serves = STOREFRONT_ENDPOINTS.serves
_STORE, _COMMUNITY = "/store/{store_id}", "/community/{community_id}"
_MEMBER = f"{_COMMUNITY}/{{store_id}}"
_ORDER, _PARENT = "/orders/{order_id}", "/community-orders/{order_id}"


@_serves("GET", f"{_STORE}/version", store_shop)
@_serves("GET", f"{_COMMUNITY}/version", community_shop)
def _show_version(_sandbox: "Sandbox", shop: Shop) -> Json:
    """What a page that stands open asks for, to see whether it is still true."""
    return {"version": shop.version()}


@_serves("GET", _STORE, store_shop)
@_serves("GET", _COMMUNITY, community_shop)
def _show_shop(sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    """The page of a store, which is searched and paged, or that of a community."""
    query, now = request.query, sandbox.clock.now_ms()
    lines = shop.basket_lines()
    values: dict[str, Any] = {"shelves": shop.shelves(), "table_token": ""}
    if shop.community is None:
        link = shop.link(shop.store)
        catalogue = link.catalogue if link else Catalogue()
        sections, page, pages = browse(catalogue, query)
        used = {key for item in _sold(catalogue) for key in item.fields.get("categories", ())}
        values = {
            "store": shop.store,
            "link": link,
            "sections": sections,
            "categories": [each for each in catalogue.categories.items() if each[0] in used],
            "words": query.get("q", "").strip(),
            "chosen": query.get("category", ""),
            "page": page,
            "pages": pages,
            "table": shop.table(query.get("table")),
            "table_token": query.get("table", ""),
            "back_at": lambda item: None if is_available(item, now) else item.snooze_until_ms,
        }
    return sandbox.pages.render(
        "store.html" if shop.community is None else "community.html",
        shop=shop,
        lines=lines,
        total=sum(line.priced.subtotal for line in lines if line.priced),
        problem=next((line.problem for line in lines if line.problem), ""),
        currency=shop.stores[0].currency if shop.stores else "USD",
        version=shop.version(),
        from_price=_from_price,
        needs_choice=_needs_choice,
        **values,
    )


@_serves("GET", f"{_STORE}/item", store_shop)
@_serves("GET", f"{_MEMBER}/item", community_shop)
def _show_item(sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    """Its kinds, its add-ons, and which of them can be had."""
    query, now = request.query, sandbox.clock.now_ms()
    store, token = shop.store, query.get("table", "")
    link = shop.link(store)
    item = link.catalogue.items.get(query.get("id", "")) if link else None
    if link is None or item is None or item.is_add_on:
        return sandbox.pages.message(
            "Not on the menu", "This item is no longer sold here.", back=shop.path, status=404
        )
    groups = [
        (
            group,
            choice_of(group),
            [found for key in group.add_ons if (found := find_add_on(link.catalogue, key))],
        )
        for group in groups_of(link.catalogue, item)
    ]
    return sandbox.pages.render(
        "item.html",
        store=store,
        item=item,
        variants=live_variants(item),
        groups=groups,
        is_available=lambda thing: is_available(thing, now),
        action=f"{shop.path_of(store)}/basket",
        back=_at_table(shop.path, token),
        problem=query.get("problem", ""),
        table_token=token,
        orderable=shop.has(item),
    )


# The basket


@_serves("POST", f"{_STORE}/basket", store_shop)
@_serves("POST", f"{_MEMBER}/basket", community_shop)
async def _add(sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    store = shop.store
    form = await read_form(request)
    wanted, token = read_line(form), form.get("table", "")
    try:
        shop.priced(store, wanted)
    except PlacementError as refusal:
        query = {"id": wanted.external_id or "", "problem": str(refusal)}
        where = URL(f"{shop.path_of(store)}/item").with_query(query)
        raise web.HTTPSeeOther(_at_table(str(where), token)) from None
    response = web.HTTPSeeOther(_at_table(shop.path, token) + "#basket")
    visitor = request.cookies.get(_COOKIE)
    key = sandbox.baskets.add(visitor, shop.path_of(store), wanted)
    response.set_cookie(_COOKIE, key, httponly=True, samesite="Lax")
    raise response


@_serves("POST", f"{_STORE}/basket/remove", store_shop)
@_serves("POST", f"{_MEMBER}/basket/remove", community_shop)
async def _remove(_sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    form = await read_form(request)
    lines, index = shop.basket(shop.store), _whole(form.get("line"), -1)
    if 0 <= index < len(lines):
        del lines[index]
    raise web.HTTPSeeOther(_at_table(shop.path, form.get("table", "")) + "#basket")


@_serves("POST", f"{_STORE}/orders", store_shop)
@_serves("POST", f"{_COMMUNITY}/orders", community_shop)
async def _place(sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    form = await read_form(request)
    try:
        placed = _ordered(shop, form)
    except PlacementError as refusal:
        return sandbox.pages.message(
            "The order was not placed",
            f"{refusal}.",
            back=_at_table(shop.path, form.get("table", "")),
            status=409,
        )
    for store in shop.stores:
        shop.basket(store).clear()
    raise web.HTTPSeeOther(placed)


def _ordered(shop: Shop, form: dict[str, str]) -> str:
    """The page of the order that was placed."""
    notes = form.get("special_instructions", "").strip()[:1000]
    if shop.community is not None:
        lines = [
            CommunityLine(**line.model_dump(exclude={"overrides"}), store_id=store.store_id)
            for store in shop.stores
            for line in shop.basket(store)
        ]
        customer = Customer(name=form.get("name", "").strip()[:100])
        parent = shop.sandbox.orders.place_in(
            shop.community,
            CommunityBasket(items=lines, special_instructions=notes, customer=customer),
        )
        return f"/community-orders/{parent.order_id}"
    table = shop.table(form.get("table"))
    basket = Basket(
        items=shop.basket(shop.store),
        order_type="dine_in" if table else "delivery",
        tip=max(0, _whole(form.get("tip"), 0)),
        special_instructions=f"Table {table.name}. {notes}".strip() if table else notes,
    )
    return f"/orders/{shop.sandbox.orders.place(shop.connected(shop.store), basket).order_id}"


def _at_table(path: str, token: str) -> str:
    """The next address, at the same table."""
    return str(URL(path).update_query(table=token)) if token else path


# Orders


@_serves("GET", _ORDER)
def _show_order(sandbox: "Sandbox", order: Order) -> web.Response:
    return sandbox.pages.render(
        "order.html",
        order=order,
        store=order.link.store,
        steps=_STEPS,
        reached={entry["state"]: entry["at"] for entry in order.history},
        waits_for=_waits_for(sandbox, order),
        version=_order_version(sandbox, order),
    )


@_serves("GET", f"{_ORDER}/version")
def _show_order_version(sandbox: "Sandbox", order: Order) -> Json:
    return {"version": _order_version(sandbox, order)}


def _order_version(sandbox: "Sandbox", order: Order) -> str:
    return f"{order.state}.{len(order.history)}.{_waits_for(sandbox, order)}"


def _waits_for(sandbox: "Sandbox", order: Order) -> str:
    """What an order that nobody has accepted yet waits for; "" where one need not say."""
    delivery = sandbox.webhooks.of_order(order.order_id)
    if order.state != "created" or delivery is None:
        return ""
    if delivery.state == "delivered":
        return "The bridge has the order, and has not accepted it yet."
    if delivery.state != "pending":
        return "The bridge could not be reached, and the service has given up."
    if sandbox.webhooks.paused:
        return "Deliveries are paused: the bridge does not know of the order yet."
    seconds = sandbox.webhooks.seconds_to_next(delivery)
    if seconds is None:
        return "On its way to the restaurant."
    about = -(-seconds // _COUNTS_DOWN_BY_S) * _COUNTS_DOWN_BY_S
    return (
        f"The bridge did not take the order. The service tries again in {about} s "
        f"(attempt {len(delivery.attempts) + 1})."
    )


@_serves("POST", f"{_ORDER}/deliver")
def _deliver(sandbox: "Sandbox", order: Order) -> web.Response:
    sandbox.orders.deliver(order)
    raise web.HTTPSeeOther(f"/orders/{order.order_id}")


@_serves("POST", f"{_ORDER}/cancel")
def _cancel(sandbox: "Sandbox", order: Order) -> web.Response:
    sandbox.orders.cancel_by_customer(order, None)
    raise web.HTTPSeeOther(f"/orders/{order.order_id}")


@_serves("GET", _PARENT)
def _show_parent(sandbox: "Sandbox", parent: ParentOrder) -> web.Response:
    return sandbox.pages.render(
        "community_order.html",
        parent=parent,
        order=parent_body(parent),
        steps=STATUSES,
        reached={entry["status"]: entry["at"] for entry in parent.history},
        version=_parent_version(parent),
    )


@_serves("GET", f"{_PARENT}/version")
def _show_parent_version(_sandbox: "Sandbox", order: ParentOrder) -> Json:
    return {"version": _parent_version(order)}


def _parent_version(parent: ParentOrder) -> str:
    return f"{parent.status}.{sum(len(child.history) for child in parent.children)}"


@_serves("POST", f"{_PARENT}/{{step}}")
def _move_parent(sandbox: "Sandbox", parent: ParentOrder, step: str) -> web.Response:
    sandbox.orders.step(parent, step)
    raise web.HTTPSeeOther(f"/community-orders/{parent.order_id}")
