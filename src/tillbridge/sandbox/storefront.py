"""The storefront: a person browses the menu, fills a basket, orders, and watches the order."""

from typing import Any

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.baskets import Baskets
from tillbridge.sandbox.browsing import (
    back_at,
    browse,
    categories,
    from_price,
    item_values,
    needs_choice,
)
from tillbridge.sandbox.catalogue import is_orderable, version
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.forms import read_form, read_line, store_url, table_query, whole
from tillbridge.sandbox.orders import Orders
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.placing import PlacementError, priced_lines
from tillbridge.sandbox.pricing import PricedLine
from tillbridge.sandbox.requests import reply
from tillbridge.sandbox.state import Catalogue, Link, Order, Store, Table, World

_STEPS = ("created", "accepted", "preparing", "ready", "completed")
_COOKIE = "sandbox_basket"


class Storefront:
    """The pages of the shops and orders."""

    def __init__(
        self, world: World, orders: Orders, baskets: Baskets, pages: Pages, clock: Clock
    ) -> None:
        self._world = world
        self._orders = orders
        self._baskets = baskets
        self._pages = pages
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.get("/store/{store_id}", self._menu),
            web.get("/store/{store_id}/item", self._item),
            web.get("/store/{store_id}/version", self._show_menu_version),
            web.post("/store/{store_id}/basket", self._add),
            web.post("/store/{store_id}/basket/remove", self._remove),
            web.post("/store/{store_id}/orders", self._place),
            web.get("/orders/{order_id}", self._order_page),
            web.get("/orders/{order_id}/version", self._show_order_version),
            web.post("/orders/{order_id}/deliver", self._deliver),
            web.post("/orders/{order_id}/cancel", self._cancel),
        ]

    # Browsing

    async def _menu(self, request: web.Request) -> web.Response:
        store = self._store(request)
        link = self._world.active_link(store.store_id)
        catalogue = link.catalogue if link else Catalogue()
        words = request.query.get("q", "").strip()
        sections, shown, pages = browse(catalogue, request.query)
        table = self._table(link, request.query.get("table"))
        now = self._clock.now_ms()
        return self._pages.render(
            "store.html",
            store=store,
            connected=link is not None,
            sections=sections,
            categories=categories(catalogue),
            words=words,
            chosen=request.query.get("category", ""),
            page=shown,
            pages=pages,
            table=table,
            table_token=request.query.get("table", ""),
            version=self._menu_version(link),
            is_orderable=lambda item: is_orderable(item, now),
            back_at=lambda item: back_at(item, now),
            needs_choice=lambda item: needs_choice(catalogue, item),
            from_price=from_price,
            **self._basket(request, link),
        )

    async def _item(self, request: web.Request) -> web.Response:
        store = self._store(request)
        link = self._world.active_link(store.store_id)
        item = link.catalogue.items.get(request.query.get("id", "")) if link else None
        if link is None or item is None or item.is_add_on:
            return self._pages.message(
                "Not on the menu",
                "This item is no longer sold here.",
                back=f"/store/{store.store_id}",
                status=404,
            )
        token = request.query.get("table", "")
        return self._pages.render(
            "item.html",
            action=f"/store/{store.store_id}/basket",
            back=store_url(store, {"table": token}, ""),
            problem=request.query.get("problem", ""),
            table_token=token,
            **item_values(link, item, self._clock.now_ms()),
        )

    async def _show_menu_version(self, request: web.Request) -> web.Response:
        store = self._store(request)
        return reply({"version": self._menu_version(self._world.active_link(store.store_id))})

    def _menu_version(self, link: Link | None) -> str:
        if link is None:
            return "none"
        return f"{link.store.status}.{version(link.catalogue, self._clock.now_ms())}"

    # The basket

    async def _add(self, request: web.Request) -> web.Response:
        store = self._store(request)
        form = await read_form(request)
        wanted = read_line(form)
        try:
            priced_lines(self._connected(store), [wanted], self._clock.now_ms())
        except PlacementError as refusal:
            where = URL(f"/store/{store.store_id}/item").with_query(
                id=wanted.external_id or "", problem=str(refusal), **table_query(form)
            )
            raise web.HTTPSeeOther(str(where)) from None
        response = web.HTTPSeeOther(store_url(store, form, "#basket"))
        key = self._baskets.add(request.cookies.get(_COOKIE), store.store_id, wanted)
        response.set_cookie(_COOKIE, key, httponly=True, samesite="Lax")
        raise response

    async def _remove(self, request: web.Request) -> web.Response:
        store = self._store(request)
        form = await read_form(request)
        self._baskets.remove(
            request.cookies.get(_COOKIE), store.store_id, whole(form.get("line"), -1)
        )
        raise web.HTTPSeeOther(store_url(store, form, "#basket"))

    async def _place(self, request: web.Request) -> web.Response:
        store = self._store(request)
        form = await read_form(request)
        key = request.cookies.get(_COOKIE)
        notes = form.get("special_instructions", "").strip()[:1000]
        try:
            link = self._connected(store)
            table = self._table(link, form.get("table"))
            order = self._orders.place(
                link,
                self._baskets.lines(key, store.store_id),
                order_type="dine_in" if table else "delivery",
                tip=max(0, whole(form.get("tip"), 0)),
                special_instructions=f"Table {table.name}. {notes}".strip() if table else notes,
            )
        except PlacementError as refusal:
            return self._pages.message(
                "The order was not placed",
                f"{refusal}.",
                back=store_url(store, form, ""),
                status=409,
            )
        self._baskets.clear(key, store.store_id)
        raise web.HTTPSeeOther(f"/orders/{order.order_id}")

    def _basket(self, request: web.Request, link: Link | None) -> dict[str, Any]:
        if link is None:
            return {"lines": [], "basket_total": 0, "basket_problem": ""}
        wanted = self._baskets.lines(request.cookies.get(_COOKIE), link.store.store_id)
        lines: list[PricedLine | None] = []
        problem = ""
        for line in wanted:
            try:
                lines.append(priced_lines(link, [line], self._clock.now_ms())[0])
            except PlacementError as refusal:
                item = link.catalogue.items.get(line.external_id or "")
                lines.append(None)
                problem = (
                    f"{refusal}. Remove it to order the rest."
                    if item
                    else "An item left the menu. Remove it."
                )
        total = sum(line.subtotal for line in lines if line is not None)
        names = [line.external_id for line in wanted]
        return {
            "lines": list(zip(lines, names, strict=True)),
            "basket_total": total,
            "basket_problem": problem,
        }

    # The order

    async def _order_page(self, request: web.Request) -> web.Response:
        order = self._order(request)
        reached = {entry["state"]: entry["at"] for entry in order.history}
        return self._pages.render(
            "order.html",
            order=order,
            store=order.link.store,
            steps=_STEPS,
            reached=reached,
            version=_order_version(order),
        )

    async def _show_order_version(self, request: web.Request) -> web.Response:
        return reply({"version": _order_version(self._order(request))})

    async def _deliver(self, request: web.Request) -> web.Response:
        order = self._order(request)
        self._orders.deliver(order)
        raise web.HTTPSeeOther(f"/orders/{order.order_id}")

    async def _cancel(self, request: web.Request) -> web.Response:
        order = self._order(request)
        self._orders.cancel_by_customer(order, None)
        raise web.HTTPSeeOther(f"/orders/{order.order_id}")

    # What the pages need

    def _store(self, request: web.Request) -> Store:
        store_id = request.match_info["store_id"]
        store = self._world.stores.get(store_id)
        if store is None:
            raise ServiceError("store.not_found", f"There is no store {store_id} here")
        return store

    def _connected(self, store: Store) -> Link:
        link = self._world.active_link(store.store_id)
        if link is None:
            raise PlacementError("No till is connected to this store, so it takes no orders")
        return link

    def _order(self, request: web.Request) -> Order:
        order_id = request.match_info["order_id"]
        order = self._world.orders.get(order_id)
        if order is None:
            raise ServiceError("order.not_found", f"There is no order {order_id} here")
        return order

    def _table(self, link: Link | None, token: str | None) -> Table | None:
        if link is None or not token:
            return None
        table = next(
            (table for table in link.tables.values() if table.qr_token == token and table.active),
            None,
        )
        if table is None:
            raise ServiceError(
                "store.not_found", "This table is not in use any more; ask for a new code"
            )
        return table


def _order_version(order: Order) -> str:
    return f"{order.state}.{len(order.history)}"
