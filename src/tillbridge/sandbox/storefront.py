"""The storefronts: a person browses a menu, fills a basket, orders, and watches the order."""

from typing import TYPE_CHECKING, Any

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.catalogue import find_add_on, groups_of, is_available, live_variants
from tillbridge.sandbox.endpoints import SITE
from tillbridge.sandbox.orders import (
    STATUSES,
    CommunityBasket,
    CommunityLine,
    Customer,
    parent_body,
)
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.pricing import Basket, PlacementError, choice_of
from tillbridge.sandbox.shops import (
    COOKIE,
    Shop,
    browse,
    community_shop,
    from_price,
    needs_choice,
    read_line,
    sold_items,
    store_shop,
    whole_number,
)
from tillbridge.sandbox.state import Catalogue, Order, ParentOrder
from tillbridge.sandbox.validation import Json

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_STEPS = ("created", "accepted", "preparing", "ready", "completed")
_COUNTS_DOWN_BY_S = 5  # each step is a new version of the page


# Browsing


_STORE, _COMMUNITY = "/store/{store_id}", "/community/{community_id}"
_MEMBER = f"{_COMMUNITY}/{{store_id}}"
_ORDER, _PARENT = "/orders/{order_id}", "/community-orders/{order_id}"


@SITE.serves("GET", f"{_STORE}/version", store_shop)
@SITE.serves("GET", f"{_COMMUNITY}/version", community_shop)
def _show_version(_sandbox: "Sandbox", shop: Shop) -> Json:
    """What a page that stands open asks for, to see whether it is still true."""
    return {"version": shop.version()}


@SITE.serves("GET", _STORE, store_shop)
@SITE.serves("GET", _COMMUNITY, community_shop)
def _show_shop(sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    """The page of a store, which is searched and paged, or that of a community."""
    query, now = request.query, sandbox.clock.now_ms()
    lines = shop.basket_lines()
    values: dict[str, Any] = {"shelves": shop.shelves(), "table_token": ""}
    if shop.community is None:
        link = shop.link(shop.store)
        catalogue = link.catalogue if link else Catalogue()
        sections, page, pages = browse(catalogue, query)
        used = {key for item in sold_items(catalogue) for key in item.fields.get("categories", ())}
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
        from_price=from_price,
        needs_choice=needs_choice,
        **values,
    )


@SITE.serves("GET", f"{_STORE}/item", store_shop)
@SITE.serves("GET", f"{_MEMBER}/item", community_shop)
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


@SITE.serves("POST", f"{_STORE}/basket", store_shop)
@SITE.serves("POST", f"{_MEMBER}/basket", community_shop)
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
    visitor = request.cookies.get(COOKIE)
    key = sandbox.baskets.add(visitor, shop.path_of(store), wanted)
    response.set_cookie(COOKIE, key, httponly=True, samesite="Lax")
    raise response


@SITE.serves("POST", f"{_STORE}/basket/remove", store_shop)
@SITE.serves("POST", f"{_MEMBER}/basket/remove", community_shop)
async def _remove(_sandbox: "Sandbox", shop: Shop, request: web.Request) -> web.Response:
    form = await read_form(request)
    lines, index = shop.basket(shop.store), whole_number(form.get("line"), -1)
    if 0 <= index < len(lines):
        del lines[index]
    raise web.HTTPSeeOther(_at_table(shop.path, form.get("table", "")) + "#basket")


@SITE.serves("POST", f"{_STORE}/orders", store_shop)
@SITE.serves("POST", f"{_COMMUNITY}/orders", community_shop)
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
        tip=max(0, whole_number(form.get("tip"), 0)),
        special_instructions=f"Table {table.name}. {notes}".strip() if table else notes,
    )
    return f"/orders/{shop.sandbox.orders.place(shop.connected(shop.store), basket).order_id}"


def _at_table(path: str, token: str) -> str:
    """The next address, at the same table."""
    return str(URL(path).update_query(table=token)) if token else path


# Orders


@SITE.serves("GET", _ORDER)
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


@SITE.serves("GET", f"{_ORDER}/version")
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


@SITE.serves("POST", f"{_ORDER}/deliver")
def _deliver(sandbox: "Sandbox", order: Order) -> web.Response:
    sandbox.orders.deliver(order)
    raise web.HTTPSeeOther(f"/orders/{order.order_id}")


@SITE.serves("POST", f"{_ORDER}/cancel")
def _cancel(sandbox: "Sandbox", order: Order) -> web.Response:
    sandbox.orders.cancel_by_customer(order, None)
    raise web.HTTPSeeOther(f"/orders/{order.order_id}")


@SITE.serves("GET", _PARENT)
def _show_parent(sandbox: "Sandbox", parent: ParentOrder) -> web.Response:
    return sandbox.pages.render(
        "community_order.html",
        parent=parent,
        order=parent_body(parent),
        steps=STATUSES,
        reached={entry["status"]: entry["at"] for entry in parent.history},
        version=_parent_version(parent),
    )


@SITE.serves("GET", f"{_PARENT}/version")
def _show_parent_version(_sandbox: "Sandbox", order: ParentOrder) -> Json:
    return {"version": _parent_version(order)}


def _parent_version(parent: ParentOrder) -> str:
    return f"{parent.status}.{sum(len(child.history) for child in parent.children)}"


@SITE.serves("POST", f"{_PARENT}/{{step}}")
def _move_parent(sandbox: "Sandbox", parent: ParentOrder, step: str) -> web.Response:
    sandbox.orders.step(parent, step)
    raise web.HTTPSeeOther(f"/community-orders/{parent.order_id}")
