"""Control API, communities: members, orders over several stores, events to subscriptions."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tillbridge.sandbox import control_bodies as bodies
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import (
    Communities,
    Community,
    ParentOrder,
    SubscriptionTarget,
)
from tillbridge.sandbox.control_world import wanted_line
from tillbridge.sandbox.deliveries import delivery_body, first_attempt
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.made_up import made_up
from tillbridge.sandbox.parent_orders import ParentOrders, WantedAt, parent_body
from tillbridge.sandbox.placing import PlacementError
from tillbridge.sandbox.requests import read_control, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.state import World, new_id
from tillbridge.sandbox.subscriptions import community_envelope
from tillbridge.sandbox.webhooks import Webhooks


class ControlCommunities:
    """Endpoints of the control API."""

    def __init__(
        self,
        world: World,
        communities: Communities,
        parents: ParentOrders,
        webhooks: Webhooks,
        clock: Clock,
    ) -> None:
        self._world = world
        self._communities = communities
        self._webhooks = webhooks
        self._parents = parents
        self._clock = clock
        self._steps: dict[str, Callable[[ParentOrder], None]] = {
            "out-for-delivery": parents.leave,
            "deliver": parents.deliver,
            "cancel": parents.cancel,
        }

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        community = "/_control/communities/{community_id}"
        return [
            web.post(f"{community}/members", self._join),
            web.post(f"{community}/orders", self._place),
            web.get(f"{community}/orders/{{order_id}}", self._show),
            web.post(f"{community}/orders/{{order_id}}/{{step}}", self._move),
            web.post(f"{community}/events", self._send),
        ]

    async def _join(self, request: web.Request) -> web.Response:
        community = self._community(request)
        store_id = (await read_control(request, bodies.MEMBER))["store_id"]
        if store_id not in self._world.stores:
            raise ServiceError("store.not_found", f"No store {store_id}")
        if store_id not in community.store_ids:
            community.store_ids.append(store_id)
        return reply({"community_id": community.community_id, "store_ids": community.store_ids})

    # Orders

    async def _place(self, request: web.Request) -> web.Response:
        """A customer orders, of one member store or several."""
        community = self._community(request)
        body = await read_control(request, bodies.COMMUNITY_ORDER)
        wanted = [self._wanted(community, line) for line in body["items"]]
        names = ("fulfillment_type", "tip", "discount", "special_instructions", "customer")
        fields = {name: body[name] for name in names if name in body}
        try:
            parent = self._parents.place(community, wanted, **fields)
        except PlacementError as refusal:
            raise ServiceError("control.refused", str(refusal)) from None
        answer = self._shown(parent)
        if body.get("wait"):
            ids = {parent.order_id, *(child.order_id for child in parent.children)}
            about = [one for one in self._webhooks.deliveries.values() if one.order_id in ids]
            answer["deliveries"] = [await first_attempt(one, wait=True) for one in about]
        return reply(answer)

    def _wanted(self, community: Community, line: Mapping[str, Any]) -> WantedAt:
        """A line names an item by its id in the community, or as its store's POS does."""
        if "item_id" not in line:
            if "store_id" not in line or "external_id" not in line:
                raise wrong("items", "each names an item_id, or a store_id and an external_id")
            return WantedAt(line["store_id"], wanted_line(line))
        store, _, item = self._communities.item(community, line["item_id"])
        return WantedAt(store.store_id, wanted_line({**line, "external_id": item.external_id}))

    async def _show(self, request: web.Request) -> web.Response:
        return reply(self._shown(self._order(request)))

    async def _move(self, request: web.Request) -> web.Response:
        parent = self._order(request)
        await read_control(request, bodies.EMPTY)
        step = self._steps.get(request.match_info["step"])
        if step is None:
            raise ServiceError(
                "request.not_found", f"The last part is one of {', '.join(self._steps)}"
            )
        step(parent)
        return reply(self._shown(parent))

    def _shown(self, parent: ParentOrder) -> dict[str, Any]:
        return {**parent_body(parent), "history": parent.history}

    # Events

    async def _send(self, request: web.Request) -> web.Response:
        """Any event to the community's subscriptions, or to one of them, honest or not."""
        community = self._community(request)
        body = await read_control(request, bodies.COMMUNITY_SEND)
        wanted = body.get("webhook_id")
        targets = [
            SubscriptionTarget(subscription)
            for subscription in self._communities.subscriptions.values()
            if subscription.community_id == community.community_id
            and wanted in (None, subscription.webhook_id)
        ]
        if not targets:
            raise ServiceError("webhook.not_found", "Nobody has subscribed; make one first")
        content = community_envelope(
            body.get("body_community_id", community.community_id),
            body["event_type"],
            body.get("data", {}),
            event_id=body.get("event_id") or new_id("evt"),
            timestamp=self._clock.timestamp(),
        )
        sent = []
        for target in targets:
            fields = {**body, "delivery_id": body.get("delivery_id") or new_id("dlv")}
            delivery = made_up(target, content, fields)
            self._webhooks.dispatch(delivery)
            sent.append(delivery)
        if body.get("wait"):
            for delivery in sent:
                await delivery.attempted.wait()
        return reply({"deliveries": [delivery_body(delivery) for delivery in sent]})

    # Finding

    def _community(self, request: web.Request) -> Community:
        return self._communities.find(request.match_info["community_id"])

    def _order(self, request: web.Request) -> ParentOrder:
        order_id = request.match_info["order_id"]
        parent = self._communities.orders.get(order_id)
        if parent is None or parent.community is not self._community(request):
            raise ServiceError("order.not_found", f"No community order {order_id}")
        return parent
