"""The community (hub) endpoints: catalogue, item availability, opening hours, parent orders."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.clock import Clock, parse_timestamp
from tillbridge.sandbox.communities import Communities, Community, OwnState
from tillbridge.sandbox.community_bodies import item_patch
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.hours import HOURS, check_hours
from tillbridge.sandbox.mirror import Mirror
from tillbridge.sandbox.parent_orders import parent_body
from tillbridge.sandbox.requests import read_body, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.settings import SandboxSettings


class CommunityRoutes:
    """The endpoints under "Community (hub) endpoints", subscriptions aside."""

    def __init__(
        self,
        communities: Communities,
        mirror: Mirror,
        gate: Gate,
        clock: Clock,
        settings: SandboxSettings,
    ) -> None:
        self._communities = communities
        self._mirror = mirror
        self._gate = gate
        self._clock = clock
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        community = "/communities/{community_id}"
        item = f"{community}/catalogue/items/{{item_id}}"
        return [
            web.get(f"{community}/catalogue", self._catalogue, allow_head=False),
            web.get(item, self._item, allow_head=False),
            web.patch(item, self._patch),
            web.put(f"{community}/stores/{{store_id}}/hours", self._hours),
            web.get(f"{community}/orders/{{order_id}}", self._order, allow_head=False),
        ]

    async def _catalogue(self, request: web.Request) -> web.Response:
        community = self._community(request)
        for name in request.query:
            if name not in ("store_id", "updated_since"):
                raise wrong(name, "is not a query field of this endpoint")
        store_id = request.query.get("store_id")
        if store_id is not None:
            self._communities.store(community, store_id)
        since = _instant(request.query.get("updated_since"))
        now = self._clock.now_ms()
        return reply(self._mirror.catalogue(community, now, store_id=store_id, since_ms=since))

    async def _item(self, request: web.Request) -> web.Response:
        community = self._community(request)
        return reply(self._detail(community, request.match_info["item_id"]))

    async def _patch(self, request: web.Request) -> web.Response:
        """The community's own say; the merchant's stays what it is."""
        community = self._community(request)
        item_id = request.match_info["item_id"]
        self._communities.item(community, item_id)
        body = await read_body(request, item_patch)
        until = _instant(body.get("snoozed_until"))
        own = OwnState(body.get("available", False), until)
        own.settle(self._clock.now_ms())
        community.own[item_id] = own
        return reply(self._detail(community, item_id))

    def _detail(self, community: Community, item_id: str) -> dict[str, Any]:
        found = self._communities.item(community, item_id)
        return self._mirror.detail(community, found, self._clock.now_ms())

    async def _hours(self, request: web.Request) -> web.Response:
        """The whole of a store's hours; overrides that are left out are no longer."""
        community = self._community(request)
        store = self._communities.store(community, request.match_info["store_id"])
        body = await read_body(request, HOURS)
        check_hours(body, past_midnight=self._settings.hours_past_midnight)
        hours = {**body, "overrides": body.get("overrides", [])}
        community.hours[store.store_id] = hours
        is_open = self._communities.is_open(community, store, self._clock.now_ms())
        return reply({"store_id": store.store_id, "is_open": is_open, "hours": hours})

    async def _order(self, request: web.Request) -> web.Response:
        community = self._community(request)
        order_id = request.match_info["order_id"]
        parent = self._communities.orders.get(order_id)
        if parent is None or parent.community is not community:
            raise ServiceError(
                "order.not_found", f"No order {order_id} in community {community.community_id}"
            )
        return reply(parent_body(parent))

    def _community(self, request: web.Request) -> Community:
        app_id = self._gate.app(request)
        return self._communities.find(request.match_info["community_id"], app_id)


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except (ValueError, OverflowError):
        raise wrong(
            "updated_since",
            "must be an ISO 8601 instant with a zone, such as 2030-01-31T18:00:00.000Z",
        ) from None
