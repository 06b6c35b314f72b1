"""Control API, what goes over the wire: clock, faults, rate limit, request log, webhooks."""

from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web
from pydantic import Field

from tillbridge.sandbox.endpoints import SITE
from tillbridge.sandbox.middleware import Armed, FaultRule
from tillbridge.sandbox.state import Community, new_id, plain
from tillbridge.sandbox.validation import (
    Body,
    Count,
    Id,
    Json,
    Number,
    OptionalText,
    Positive,
    ServiceError,
    Text,
    wrong,
)
from tillbridge.sandbox.webhooks import Delivery, Target, delivery_body, encode, first_attempt, sign

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


# Time, faults, rate


@SITE.serves("GET", "/_control/clock")
def show_clock(sandbox: "Sandbox") -> Json:
    """What time it is, and how fast it goes."""
    return {"now": sandbox.clock.timestamp(), "speed": sandbox.clock.speed}


@SITE.serves("POST", "/_control/clock")
def set_clock(
    sandbox: "Sandbox", *, speed: Number | None = None, jump_s: Number | None = None
) -> Json:
    """Go at another speed, and jump forward."""
    if speed is not None:
        sandbox.clock.run_at(speed)
    if jump_s is not None:
        sandbox.clock.jump(jump_s)
    return show_clock(sandbox)


@SITE.serves("GET", "/_control/faults")
def show_faults(sandbox: "Sandbox") -> Json:
    """The rules in force, and their hits."""
    rules = sandbox.traffic.rules
    return {"faults": [{**each.rule.model_dump(), "hits": each.hits} for each in rules]}


@SITE.serves("POST", "/_control/faults", status=201)
def add_fault(sandbox: "Sandbox", body: FaultRule) -> Json:
    """Put a rule in force."""
    sandbox.traffic.rules.append(Armed(body))
    return body.model_dump()


@SITE.serves("DELETE", "/_control/faults")
def clear_faults(sandbox: "Sandbox") -> Json:
    """Switch all of them off."""
    sandbox.traffic.clear_faults()
    return {"faults": []}


@SITE.serves("DELETE", "/_control/faults/{rule_id}")
def remove_fault(sandbox: "Sandbox", rule_id: str) -> Json:
    """Switch one rule off."""
    traffic, before = sandbox.traffic, len(sandbox.traffic.rules)
    traffic.rules = [each for each in traffic.rules if each.rule.rule_id != rule_id]
    return {"removed": len(traffic.rules) < before}


@SITE.serves("POST", "/_control/rate")
def set_rate(sandbox: "Sandbox", *, limit: Count | None, window_s: Positive | None = None) -> Json:
    """Take so many calls in so many seconds."""
    traffic = sandbox.traffic
    traffic.set_rate(limit, window_s or traffic.window_s)
    return {"limit": limit, "window_s": traffic.window_s}


# The request log


@SITE.serves("GET", "/_control/requests")
def show_requests(sandbox: "Sandbox", request: web.Request) -> Json:
    """The calls that the API received."""
    since = request.query.get("since", "0")
    if not since.isdecimal():
        raise wrong("since", "must be the `next` of an earlier answer")
    entries = [each for each in sandbox.traffic.requests if each.seq > int(since)]
    return {"requests": plain(entries), "next": entries[-1].seq if entries else int(since)}


@SITE.serves("DELETE", "/_control/requests")
def clear_requests(sandbox: "Sandbox") -> Json:
    """Forget them."""
    sandbox.traffic.requests.clear()
    return {"requests": []}


# Webhooks


@SITE.serves("GET", "/_control/deliveries")
def show_deliveries(sandbox: "Sandbox", request: web.Request) -> Json:
    """Each delivery with its attempts."""
    order_id = request.query.get("order_id")
    found = [
        delivery_body(delivery)
        for delivery in sandbox.webhooks.deliveries.values()
        if order_id in (None, delivery.order_id)
    ]
    return {"deliveries": found}


@SITE.serves("POST", "/_control/webhooks/pause")
def pause(sandbox: "Sandbox") -> Json:
    """Hold every attempt."""
    sandbox.webhooks.pause()
    return {"paused": True}


@SITE.serves("POST", "/_control/webhooks/resume")
def resume(sandbox: "Sandbox") -> Json:
    """Make the attempts that were held."""
    sandbox.webhooks.resume()
    return {"paused": False}


@SITE.serves("POST", "/_control/webhooks/redeliver")
async def redeliver(
    sandbox: "Sandbox",
    *,
    delivery_id: Text | None = None,
    order_id: Text | None = None,
    mode: Literal["same", "new_delivery_id", "new_event_id"] = "same",
    wait: bool = False,
) -> Json:
    """Deliver an event again."""
    if (delivery_id is None) == (order_id is None):
        raise wrong("delivery_id", "name a delivery_id or an order_id, one of them")
    webhooks = sandbox.webhooks
    found = webhooks.deliveries.get(delivery_id or "") or webhooks.of_order(order_id or "")
    if found is None:
        raise ServiceError(
            "control.refused", "No such delivery; GET /_control/deliveries lists them"
        )
    return await first_attempt(webhooks.redeliver(found, mode), wait=wait)


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
        # None is the honest one; an empty one sends no header.
        signature = "" if self.signature == "none" else None
        if self.secret is not None or self.signature == "wrong":
            signature = sign(raw, self.secret or "this is not the secret")
        return Delivery(
            delivery_id=self.delivery_id or new_id("dlv"),
            event_id=content["event_id"],
            event_type=content["event_type"],
            target=target,
            body=raw,
            retry=self.retry,
            signature=signature,
            extra_headers={name: str(value) for name, value in self.headers.items()},
        )


class StoreEvent(_Event):
    """POST /_control/webhooks/send."""

    store_id: Id
    body_store_id: Text | None = None
    body_location_id: Text | None = None


@SITE.serves("POST", "/_control/webhooks/send")
async def send(sandbox: "Sandbox", body: StoreEvent) -> Json:
    """To a store's receiver."""
    link = sandbox.world.connected(body.store_id)
    content = sandbox.webhooks.envelope(link, body.event_type, body.data, body.event_id)
    content["store_id"] = body.body_store_id or content["store_id"]
    content["location_id"] = body.body_location_id or content["location_id"]
    delivery = body.to(link, content)
    sandbox.webhooks.dispatch(delivery)
    return await first_attempt(delivery, wait=body.wait)


class SubscribersEvent(_Event):
    """POST /_control/communities/{community_id}/events."""

    webhook_id: Text | None = None
    body_community_id: Text | None = None


@SITE.serves("POST", "/_control/communities/{community_id}/events")
async def send_to_subscribers(
    sandbox: "Sandbox", community: Community, body: SubscribersEvent
) -> Json:
    """To the community's subscriptions, or to one of them."""
    webhooks = sandbox.webhooks
    targets = [
        subscription
        for subscription in sandbox.world.subscriptions_of(community)
        if body.webhook_id in (None, subscription.webhook_id)
    ]
    if not targets:
        raise ServiceError("webhook.not_found", "Nobody has subscribed; make one first")
    content = webhooks.envelope(targets[0], body.event_type, body.data, body.event_id)
    content["community_id"] = body.body_community_id or community.community_id
    sent = [body.to(target, content) for target in targets]
    for delivery in sent:
        webhooks.dispatch(delivery)
    return {"deliveries": [await first_attempt(one, wait=body.wait) for one in sent]}
