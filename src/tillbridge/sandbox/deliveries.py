"""One delivery of a webhook: what is sent, to whom, what came back (specification, "Events")."""

import asyncio
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from tillbridge.sandbox.clock import Timer, as_timestamp
from tillbridge.sandbox.schema import Json
from tillbridge.sandbox.state import Link


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where attempts go now, and the secret that signs them."""

    url: str
    secret: str
    headers: tuple[tuple[str, str], ...] = ()


class Target(Protocol):
    """Who gets a delivery. It is asked before every attempt, so a changed URL or secret counts."""

    @property
    def key(self) -> str:
        """Names this receiver among all."""
        ...

    @property
    def endpoint(self) -> Endpoint | None:
        """Where to, or None: nobody wants it any more."""
        ...

    @property
    def told(self) -> dict[str, str]:
        """Its ids, as the control API shows them."""
        ...


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """The POS of an app's integration."""

    link: Link

    @property
    def key(self) -> str:
        """The app and the store."""
        return f"{self.link.app_id} {self.link.store.store_id}"

    @property
    def endpoint(self) -> Endpoint | None:
        """The integration's webhook_url, while it is active."""
        integration = self.link.active
        if integration is None:
            return None
        location = ("X-Service-Location-Id", integration.external_store_id)
        return Endpoint(integration.webhook_url, integration.webhook_secret, (location,))

    @property
    def told(self) -> dict[str, str]:
        """The store."""
        return {"store_id": self.link.store.store_id}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST: the receiver's status and the start of its answer, or why there was none."""

    at_ms: int
    status: int | None
    error: str | None
    duration_ms: int
    answer: str


@dataclass(slots=True)
class Delivery:
    """One event on its way to one receiver.

    `state` is pending, delivered, failed (out of attempts) or stopped. `signature` and
    `extra_headers` override what an honest service would send; an empty signature is left out.
    """

    delivery_id: str
    event_id: str
    event_type: str
    target: Target
    body: bytes
    retry: bool = True
    order_id: str | None = None
    signature: str | None = None
    extra_headers: dict[str, str] = field(default_factory=dict)
    state: str = "pending"
    attempts: list[Attempt] = field(default_factory=list)
    next_attempt_ms: int | None = None
    timer: Timer | None = None
    attempted: asyncio.Event = field(default_factory=asyncio.Event)


def sign(body: bytes, secret: str) -> str:
    """Lowercase hex HMAC-SHA256 of the raw body."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def envelope(
    link: Link, event_type: str, data: Json, *, event_id: str, timestamp: str
) -> dict[str, Any]:
    """The POS envelope. A link without integration has no location; its store id stands in."""
    return {
        "event_type": event_type,
        "event_id": event_id,
        "store_id": link.store.store_id,
        "location_id": link.integration.external_store_id
        if link.integration
        else link.store.store_id,
        "timestamp": timestamp,
        "data": data,
    }


def encode(body: Json) -> bytes:
    """The bytes that are signed and sent."""
    return json.dumps(body, ensure_ascii=False).encode()


async def first_attempt(delivery: Delivery, *, wait: bool) -> dict[str, Any]:
    """The delivery as the control API shows it; with `wait`, after its first attempt."""
    if wait:
        await delivery.attempted.wait()
    return delivery_body(delivery)


def delivery_body(delivery: Delivery) -> dict[str, Any]:
    """A delivery as the control API shows it."""
    due = delivery.next_attempt_ms
    return {
        "delivery_id": delivery.delivery_id,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        **delivery.target.told,
        "order_id": delivery.order_id,
        "state": delivery.state,
        "next_attempt_at": as_timestamp(due) if due is not None else None,
        "attempts": [
            {
                "at": as_timestamp(attempt.at_ms),
                "status": attempt.status,
                "error": attempt.error,
                "duration_ms": attempt.duration_ms,
                "answer": attempt.answer,
            }
            for attempt in delivery.attempts
        ],
    }


def end(delivery: Delivery, state: str) -> None:
    """Delivered, failed or stopped: no attempt follows."""
    if delivery.state == "pending":
        delivery.state = state
        delivery.next_attempt_ms = None
        delivery.attempted.set()
    if delivery.timer is not None:
        delivery.timer.cancel()
        delivery.timer = None
