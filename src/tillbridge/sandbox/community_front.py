"""The community's storefront: one page for all member stores, one basket, one order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.baskets import Baskets
from tillbridge.sandbox.browsing import from_price, item_values, needs_choice
from tillbridge.sandbox.catalogue import is_orderable
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import Communities, Community, ParentOrder
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.forms import read_form, read_line, whole
from tillbridge.sandbox.mirror import Mirror
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.parent_orders import STATUSES, ParentOrders, WantedAt, parent_body
from tillbridge.sandbox.placing import PlacementError, Wanted, priced_lines
from tillbridge.sandbox.pricing import PricedLine
from tillbridge.sandbox.requests import reply
from tillbridge.sandbox.state import Item, Link, Store

_COOKIE = "sandbox_basket"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A member store on the page, with what it sells."""

    store: Store
    link: Link | None
    is_open: bool
    items: list[Item]


@dataclass(frozen=True, slots=True)
class BasketLine:
    """A line of the basket; `priced` is None for what cannot be ordered now."""

    store: Store
    index: int
    external_id: str | None
    priced: PricedLine | None
    problem: str


class CommunityFront:
    """The pages of communities and their orders."""

    def __init__(
        self,
        communities: Communities,
        mirror: Mirror,
        parents: ParentOrders,
        baskets: Baskets,
        pages: Pages,
        clock: Clock,
    ) -> None:
        self._communities = communities
        self._mirror = mirror
        self._parents = parents
        self._baskets = baskets
        self._pages = pages
        self._clock = clock
        self._steps: dict[str, Callable[[ParentOrder], None]] = {
            "leave": parents.leave,
            "deliver": parents.deliver,
            "cancel": parents.cancel,
        }

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        community = "/community/{community_id}"
        order = "/community-orders/{order_id}"
        return [
            web.get(community, self._menu),
            web.get(f"{community}/version", self._show_version),
            web.post(f"{community}/orders", self._place),
            web.get(f"{community}/{{store_id}}/item", self._item),
            web.post(f"{community}/{{store_id}}/basket", self._add),
            web.post(f"{community}/{{store_id}}/basket/remove", self._remove),
            web.get(order, self._order_page),
            web.get(f"{order}/version", self._show_order_version),
            web.post(f"{order}/{{step}}", self._move),
        ]

    # Browsing

    async def _menu(self, request: web.Request) -> web.Response:
        community = self._community(request)
        now = self._clock.now_ms()
        shelves = [self._shelf(community, store) for store in self._communities.stores(community)]
        lines = list(self._basket(request, community))
        return self._pages.render(
            "community.html",
            community=community,
            shelves=shelves,
            lines=lines,
            total=sum(line.priced.subtotal for line in lines if line.priced),
            problem=next((line.problem for line in lines if line.problem), ""),
            currency=shelves[0].store.currency if shelves else "USD",
            can_have=lambda item: (
                is_orderable(item, now) and community.own_state(item.product_id, now).available
            ),
            needs_choice=lambda link, item: needs_choice(link.catalogue, item),
            from_price=from_price,
            version=self._mirror.version(community, now),
        )

    def _shelf(self, community: Community, store: Store) -> Shelf:
        link = self._communities.link(store)
        items = link.catalogue.items.values() if link else ()
        is_open = self._communities.is_open(community, store, self._clock.now_ms())
        return Shelf(store, link, is_open, [item for item in items if not item.is_add_on])

    async def _show_version(self, request: web.Request) -> web.Response:
        community = self._community(request)
        return reply({"version": self._mirror.version(community, self._clock.now_ms())})

    async def _item(self, request: web.Request) -> web.Response:
        community = self._community(request)
        store = self._store(request, community)
        link = self._communities.link(store)
        item = link.catalogue.items.get(request.query.get("id", "")) if link else None
        back = f"/community/{community.community_id}"
        if link is None or item is None or item.is_add_on:
            return self._pages.message(
                "Not on the menu", "This item is no longer sold here.", back=back, status=404
            )
        now = self._clock.now_ms()
        values = item_values(link, item, now)
        values["orderable"] &= community.own_state(item.product_id, now).available
        return self._pages.render(
            "item.html",
            action=f"{back}/{store.store_id}/basket",
            back=back,
            problem=request.query.get("problem", ""),
            table_token="",
            **values,
        )

    # The basket

    async def _add(self, request: web.Request) -> web.Response:
        community = self._community(request)
        store = self._store(request, community)
        line = read_line(await read_form(request))
        here = f"/community/{community.community_id}"
        try:
            self._priced(community, store, line)
        except PlacementError as refusal:
            item = URL(f"{here}/{store.store_id}/item").with_query(
                id=line.external_id or "", problem=str(refusal)
            )
            raise web.HTTPSeeOther(str(item)) from None
        response = web.HTTPSeeOther(f"{here}#basket")
        shelf = _shelf_key(community, store)
        key = self._baskets.add(request.cookies.get(_COOKIE), shelf, line)
        response.set_cookie(_COOKIE, key, httponly=True, samesite="Lax")
        raise response

    async def _remove(self, request: web.Request) -> web.Response:
        community = self._community(request)
        store = self._store(request, community)
        index = whole((await read_form(request)).get("line"), -1)
        self._baskets.remove(request.cookies.get(_COOKIE), _shelf_key(community, store), index)
        raise web.HTTPSeeOther(f"/community/{community.community_id}#basket")

    async def _place(self, request: web.Request) -> web.Response:
        community = self._community(request)
        form = await read_form(request)
        key = request.cookies.get(_COOKIE)
        stores = self._communities.stores(community)
        wanted = [
            WantedAt(store.store_id, line)
            for store in stores
            for line in self._baskets.lines(key, _shelf_key(community, store))
        ]
        try:
            parent = self._parents.place(
                community,
                wanted,
                special_instructions=form.get("special_instructions", "").strip()[:1000],
                customer={"name": form.get("name", "").strip()[:100]},
            )
        except PlacementError as refusal:
            back = f"/community/{community.community_id}"
            return self._pages.message(
                "The order was not placed", f"{refusal}.", back=back, status=409
            )
        for store in stores:
            self._baskets.clear(key, _shelf_key(community, store))
        raise web.HTTPSeeOther(f"/community-orders/{parent.order_id}")

    def _basket(self, request: web.Request, community: Community) -> Iterator[BasketLine]:
        key = request.cookies.get(_COOKIE)
        for store in self._communities.stores(community):
            lines = self._baskets.lines(key, _shelf_key(community, store))
            for index, line in enumerate(lines):
                try:
                    priced, problem = self._priced(community, store, line), ""
                except PlacementError as refusal:
                    priced, problem = None, f"{refusal}. Remove it to order the rest."
                yield BasketLine(store, index, line.external_id, priced, problem)

    def _priced(self, community: Community, store: Store, line: Wanted) -> PricedLine:
        link = self._parents.check_line(community, WantedAt(store.store_id, line))
        return priced_lines(link, [line], self._clock.now_ms())[0]

    # The order

    async def _order_page(self, request: web.Request) -> web.Response:
        parent = self._order(request)
        return self._pages.render(
            "community_order.html",
            parent=parent,
            order=parent_body(parent),
            steps=STATUSES,
            reached={entry["status"]: entry["at"] for entry in parent.history},
            version=_version(parent),
        )

    async def _show_order_version(self, request: web.Request) -> web.Response:
        return reply({"version": _version(self._order(request))})

    async def _move(self, request: web.Request) -> web.Response:
        parent = self._order(request)
        step = self._steps.get(request.match_info["step"])
        if step is None:
            raise web.HTTPNotFound
        step(parent)
        raise web.HTTPSeeOther(f"/community-orders/{parent.order_id}")

    # Finding

    def _community(self, request: web.Request) -> Community:
        return self._communities.find(request.match_info["community_id"])

    def _store(self, request: web.Request, community: Community) -> Store:
        return self._communities.store(community, request.match_info["store_id"])

    def _order(self, request: web.Request) -> ParentOrder:
        order_id = request.match_info["order_id"]
        parent = self._communities.orders.get(order_id)
        if parent is None:
            raise ServiceError("order.not_found", f"There is no community order {order_id} here")
        return parent


def _shelf_key(community: Community, store: Store) -> str:
    return f"{community.community_id} {store.store_id}"


def _version(parent: ParentOrder) -> str:
    steps = sum(len(child.history) for child in parent.children)
    return f"{parent.status}.{steps}"
