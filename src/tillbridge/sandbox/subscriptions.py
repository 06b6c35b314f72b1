"""Webhook subscriptions of a community: made, changed, tested, and every event sent to them."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.clock import Clock, as_timestamp
from tillbridge.sandbox.communities import (
    Communities,
    Community,
    Subscription,
    SubscriptionTarget,
)
from tillbridge.sandbox.community_bodies import SUBSCRIBE, SUBSCRIPTION_UPDATE
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.requests import read_body, read_no_body, reply
from tillbridge.sandbox.schema import Json
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import new_id
from tillbridge.sandbox.stores import new_secret
from tillbridge.sandbox.webhooks import Webhooks

_ATTEMPTS_SHOWN = 100


def community_envelope(
    community_id: str, event_type: str, data: Json, *, event_id: str, timestamp: str
) -> dict[str, Any]:
    """The community envelope (specification, "Community envelope")."""
    return {
        "event_type": event_type,
        "event_id": event_id,
        "community_id": community_id,
        "timestamp": timestamp,
        "data": data,
    }


def subscription_body(subscription: Subscription) -> dict[str, Any]:
    """A subscription as every endpoint but its creation shows it: without its secret."""
    return {
        "webhook_id": subscription.webhook_id,
        "community_id": subscription.community_id,
        "name": subscription.name,
        "url": subscription.url,
        "events": list(subscription.events),
        "is_active": subscription.is_active,
        "created_at": as_timestamp(subscription.created_at_ms),
        "updated_at": as_timestamp(subscription.updated_at_ms),
    }


class Broadcast:
    """Sends a community's events to all who subscribed to them."""

    def __init__(self, communities: Communities, webhooks: Webhooks, clock: Clock) -> None:
        self._communities = communities
        self._webhooks = webhooks
        self._clock = clock

    def emit(
        self, community: Community, event_type: str, data: Json, *, order_id: str | None = None
    ) -> None:
        """One event: the same event_id for everybody, a delivery id for each."""
        body = community_envelope(
            community.community_id,
            event_type,
            data,
            event_id=new_id("evt"),
            timestamp=self._clock.timestamp(),
        )
        for subscription in self._communities.subscriptions.values():
            if subscription.community_id == community.community_id and subscription.wants(
                event_type
            ):
                self._webhooks.send(
                    SubscriptionTarget(subscription), event_type, body, order_id=order_id
                )


class SubscriptionRoutes:
    """The endpoints of webhook subscriptions."""

    def __init__(
        self,
        communities: Communities,
        gate: Gate,
        webhooks: Webhooks,
        clock: Clock,
        settings: SandboxSettings,
    ) -> None:
        self._communities = communities
        self._gate = gate
        self._webhooks = webhooks
        self._clock = clock
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        webhook = "/webhooks/{webhook_id}"
        return [
            web.post("/communities/{community_id}/webhooks", self._subscribe),
            web.get(webhook, self._show, allow_head=False),
            web.put(webhook, self._change),
            web.delete(webhook, self._remove),
            web.post(f"{webhook}/test", self._test),
            web.get(f"{webhook}/deliveries", self._deliveries, allow_head=False),
        ]

    async def _subscribe(self, request: web.Request) -> web.Response:
        """The only answer with the signing secret."""
        community = self._communities.find(
            request.match_info["community_id"], self._gate.app(request)
        )
        body = await read_body(request, SUBSCRIBE)
        now = self._clock.now_ms()
        subscription = Subscription(
            new_id("whk"),
            community.community_id,
            new_secret(),
            body["name"],
            body["url"],
            tuple(body.get("events", ("*",))),
            body.get("is_active", True),
            now,
            now,
        )
        self._communities.subscriptions[subscription.webhook_id] = subscription
        secret = {self._settings.subscription_secret_field: subscription.secret}
        return reply({**subscription_body(subscription), **secret}, 201)

    async def _show(self, request: web.Request) -> web.Response:
        return reply(subscription_body(self._find(request)))

    async def _change(self, request: web.Request) -> web.Response:
        """Only sent fields change; switched off, it gets nothing of what is still under way."""
        subscription = self._find(request)
        body = await read_body(request, SUBSCRIPTION_UPDATE)
        for name, value in body.items():
            setattr(subscription, name, tuple(value) if name == "events" else value)
        subscription.updated_at_ms = self._clock.now_ms()
        if not subscription.is_active:
            self._webhooks.stop_for(SubscriptionTarget(subscription))
        return reply(subscription_body(subscription))

    async def _remove(self, request: web.Request) -> web.Response:
        subscription = self._find(request)
        del self._communities.subscriptions[subscription.webhook_id]
        subscription.gone = True
        self._webhooks.stop_for(SubscriptionTarget(subscription))
        return reply({"status": "success", "message": "Webhook subscription removed"})

    async def _test(self, request: web.Request) -> web.Response:
        """One attempt, whatever the subscription's events are; a failed test is not repeated."""
        subscription = self._find(request)
        await read_no_body(request)
        event_type = self._settings.subscription_test_event
        body = community_envelope(
            subscription.community_id,
            event_type,
            {"webhook_id": subscription.webhook_id},
            event_id=new_id("evt"),
            timestamp=self._clock.timestamp(),
        )
        target = SubscriptionTarget(subscription)
        delivery = self._webhooks.send(target, event_type, body, retry=False)
        return reply(
            {
                "status": "success",
                "delivery_id": delivery.delivery_id,
                "event_type": event_type,
            }
        )

    async def _deliveries(self, request: web.Request) -> web.Response:
        """The attempts, newest first."""
        subscription = self._find(request)
        attempts = [
            {
                "delivery_id": delivery.delivery_id,
                "event_id": delivery.event_id,
                "event_type": delivery.event_type,
                "attempted_at": as_timestamp(attempt.at_ms),
                "response_status": attempt.status,
                "response_body": attempt.answer,
                "error": attempt.error,
            }
            for delivery in self._webhooks.deliveries.values()
            if delivery.target.key == subscription.webhook_id
            for attempt in delivery.attempts
        ]
        attempts.sort(key=lambda attempt: str(attempt["attempted_at"]), reverse=True)
        return reply({"deliveries": attempts[:_ATTEMPTS_SHOWN]})

    def _find(self, request: web.Request) -> Subscription:
        app_id = self._gate.app(request)
        webhook_id = request.match_info["webhook_id"]
        found = self._communities.subscriptions.get(webhook_id)
        if found is None or self._communities.all[found.community_id].app_id != app_id:
            raise ServiceError("webhook.not_found", f"No webhook subscription {webhook_id}")
        return found
