"""Control API, what goes over the wire: clock, faults, rate limit, request log, webhooks."""

from typing import Any, Literal

from pydantic import Field

from tillbridge.sandbox.endpoints import Call, Endpoint, Unread, any_community, anyone
from tillbridge.sandbox.middleware import FaultRule
from tillbridge.sandbox.state import Community, new_id, plain
from tillbridge.sandbox.validation import (
    Body,
    Count,
    Empty,
    Id,
    Json,
    Number,
    OptionalText,
    Positive,
    ServiceError,
    Text,
    wrong,
)
from tillbridge.sandbox.webhooks import (
    Delivery,
    Target,
    delivery_body,
    encode,
    first_attempt,
    sign,
)

# Time, faults, rate


async def _show_clock(call: Call[None, Body]) -> Json:
    return {"now": call.sandbox.clock.timestamp(), "speed": call.sandbox.clock.speed}


class SetClock(Body):
    """POST /_control/clock."""

    speed: Number | None = None
    jump_s: Number | None = None


async def _set_clock(call: Call[None, SetClock]) -> Json:
    if call.body.speed is not None:
        call.sandbox.clock.run_at(call.body.speed)
    if call.body.jump_s is not None:
        call.sandbox.clock.jump(call.body.jump_s)
    return {"now": call.sandbox.clock.timestamp(), "speed": call.sandbox.clock.speed}


async def _show_faults(call: Call[None, Unread]) -> Json:
    rules = call.sandbox.faults.in_force()
    return {"faults": [{**rule.model_dump(), "hits": hits} for rule, hits in rules]}


async def _add_fault(call: Call[None, FaultRule]) -> Json:
    return call.sandbox.faults.add(call.body).model_dump()


async def _clear_faults(call: Call[None, Unread]) -> Json:
    call.sandbox.faults.clear()
    return {"faults": []}


async def _remove_fault(call: Call[None, Unread]) -> Json:
    return {"removed": call.sandbox.faults.remove(call.part("rule_id"))}


class SetRate(Body):
    """POST /_control/rate."""

    nullable = frozenset(("limit",))
    limit: Count | None
    window_s: Positive | None = None


async def _set_rate(call: Call[None, SetRate]) -> Json:
    limit, body = call.sandbox.limit, call.body
    limit.set(body.limit, body.window_s or limit.window_s)
    return {"limit": limit.limit, "window_s": limit.window_s}


# The request log


async def _requests(call: Call[None, Unread]) -> Json:
    since = call.request.query.get("since", "0")
    if not since.isdecimal():
        raise wrong("since", "must be the `next` of an earlier answer")
    entries = call.sandbox.requests.since(int(since))
    return {
        "requests": plain(entries),
        "next": entries[-1].seq if entries else int(since),
    }


async def _clear_requests(call: Call[None, Unread]) -> Json:
    call.sandbox.requests.clear()
    return {"requests": []}


# Webhooks


async def _deliveries(call: Call[None, Unread]) -> Json:
    order_id = call.request.query.get("order_id")
    found = [
        delivery_body(delivery)
        for delivery in call.sandbox.webhooks.deliveries.values()
        if order_id in (None, delivery.order_id)
    ]
    return {"deliveries": found}


async def _pause(call: Call[None, Empty]) -> Json:
    call.sandbox.webhooks.pause()
    return {"paused": True}


async def _resume(call: Call[None, Empty]) -> Json:
    call.sandbox.webhooks.resume()
    return {"paused": False}


class Redeliver(Body):
    """POST /_control/webhooks/redeliver."""

    delivery_id: Text | None = None
    order_id: Text | None = None
    mode: Literal["same", "new_delivery_id", "new_event_id"] = "same"
    wait: bool = False


async def _redeliver(call: Call[None, Redeliver]) -> Json:
    webhooks, body = call.sandbox.webhooks, call.body
    found = None
    if (body.delivery_id is None) == (body.order_id is None):
        raise wrong("delivery_id", "name a delivery_id or an order_id, one of them")
    if body.delivery_id is not None:
        found = webhooks.deliveries.get(body.delivery_id)
    elif body.order_id is not None:
        found = webhooks.of_order(body.order_id)
    if found is None:
        raise ServiceError(
            "control.refused", "No such delivery; GET /_control/deliveries lists them"
        )
    return await first_attempt(webhooks.redeliver(found, body.mode), wait=body.wait)


class _Event(Body):
    """Any event, honest or not."""

    nullable = frozenset(("data",))
    event_type: Text
    data: Any = Field(default_factory=dict)
    event_id: Text | None = None
    delivery_id: Text | None = None
    signature: Literal["valid", "wrong", "none"] = "valid"
    secret: Text | None = None
    raw_body: OptionalText | None = None
    headers: dict[str, Any] = Field(default_factory=dict)
    retry: bool = False
    wait: bool = False

    def to(self, target: Target, content: dict[str, Any]) -> Delivery:
        """On its way to a receiver, in an envelope."""
        raw = encode(content) if self.raw_body is None else self.raw_body.encode()
        return Delivery(
            delivery_id=self.delivery_id or new_id("dlv"),
            event_id=content["event_id"],
            event_type=content["event_type"],
            target=target,
            body=raw,
            retry=self.retry,
            signature=self._signature(raw),
            extra_headers={name: str(value) for name, value in self.headers.items()},
        )

    def _signature(self, raw: bytes) -> str | None:
        """None is the honest one; an empty one sends no header."""
        if self.secret is not None:
            return sign(raw, self.secret)
        if self.signature == "wrong":
            return sign(raw, "this is not the secret")
        return "" if self.signature == "none" else None


class StoreEvent(_Event):
    """POST /_control/webhooks/send."""

    store_id: Id
    body_store_id: Text | None = None
    body_location_id: Text | None = None


async def _send(call: Call[None, StoreEvent]) -> Json:
    """To a store's receiver."""
    body = call.body
    link = call.sandbox.world.active_link(body.store_id)
    if link is None:
        raise ServiceError(
            "store.not_integrated", f"Store {body.store_id} has no active integration"
        )
    content = call.sandbox.webhooks.envelope(link, body.event_type, body.data, body.event_id)
    content["store_id"] = body.body_store_id or content["store_id"]
    content["location_id"] = body.body_location_id or content["location_id"]
    delivery = body.to(link, content)
    call.sandbox.webhooks.dispatch(delivery)
    return await first_attempt(delivery, wait=body.wait)


class SubscribersEvent(_Event):
    """POST /_control/communities/{community_id}/events."""

    webhook_id: Text | None = None
    body_community_id: Text | None = None


async def _send_to_subscribers(call: Call[Community, SubscribersEvent]) -> Json:
    """To the community's subscriptions, or to one of them."""
    sandbox, community, body = call.sandbox, call.found, call.body
    targets = [
        subscription
        for subscription in sandbox.world.subscriptions_of(community)
        if body.webhook_id in (None, subscription.webhook_id)
    ]
    if not targets:
        raise ServiceError("webhook.not_found", "Nobody has subscribed; make one first")
    webhooks = sandbox.webhooks
    content = webhooks.envelope(targets[0], body.event_type, body.data, body.event_id)
    content["community_id"] = body.body_community_id or community.community_id
    sent = [body.to(target, content) for target in targets]
    for delivery in sent:
        webhooks.dispatch(delivery)
    return {"deliveries": [await first_attempt(one, wait=body.wait) for one in sent]}


TRAFFIC_ENDPOINTS = (
    Endpoint("GET", "/_control/clock", anyone, Unread, _show_clock),
    Endpoint("POST", "/_control/clock", anyone, SetClock, _set_clock),
    Endpoint("GET", "/_control/faults", anyone, Unread, _show_faults),
    Endpoint("POST", "/_control/faults", anyone, FaultRule, _add_fault, 201),
    Endpoint("DELETE", "/_control/faults", anyone, Unread, _clear_faults),
    Endpoint("DELETE", "/_control/faults/{rule_id}", anyone, Unread, _remove_fault),
    Endpoint("POST", "/_control/rate", anyone, SetRate, _set_rate),
    Endpoint("GET", "/_control/requests", anyone, Unread, _requests),
    Endpoint("DELETE", "/_control/requests", anyone, Unread, _clear_requests),
    Endpoint("GET", "/_control/deliveries", anyone, Unread, _deliveries),
    Endpoint("POST", "/_control/webhooks/pause", anyone, Empty, _pause),
    Endpoint("POST", "/_control/webhooks/resume", anyone, Empty, _resume),
    Endpoint("POST", "/_control/webhooks/redeliver", anyone, Redeliver, _redeliver),
    Endpoint("POST", "/_control/webhooks/send", anyone, StoreEvent, _send),
    Endpoint(
        "POST",
        "/_control/communities/{community_id}/events",
        any_community,
        SubscribersEvent,
        _send_to_subscribers,
    ),
)
