"""Signed deliveries to receivers, and their retries (specification, "Events")."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import aiohttp
import structlog

from tillbridge.sandbox.clock import Clock, Timer
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Link, Subscription, new_id, plain
from tillbridge.sandbox.validation import Json

_log = structlog.get_logger("tillbridge.sandbox.webhooks")

RedeliveryMode = Literal["same", "new_delivery_id", "new_event_id"]


#: Who gets a delivery. It is asked before every attempt, so a changed URL or secret counts.
Target: TypeAlias = Link | Subscription


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
    next_attempt_at_ms: int | None = None
    timer: Timer | None = None
    attempted: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, state: str) -> None:
        """Delivered, failed or stopped: no attempt follows."""
        if self.state == "pending":
            self.state, self.next_attempt_at_ms = state, None
            self.attempted.set()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def new_secret() -> str:
    """A webhook secret."""
    return f"whsec_{secrets.token_hex(32)}"


def sign(body: bytes, secret: str) -> str:
    """Lowercase hex HMAC-SHA256 of the raw body."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def encode(body: Json) -> bytes:
    """The bytes that are signed and sent."""
    return json.dumps(body, ensure_ascii=False).encode()


async def first_attempt(delivery: Delivery, *, wait: bool) -> dict[str, Any]:
    """The delivery as the control API shows it; with `wait`, after its first attempt."""
    if wait:
        await delivery.attempted.wait()
    return delivery_body(delivery)


_OWN = ("target", "body", "retry", "signature", "extra_headers", "timer", "attempted")


def delivery_body(delivery: Delivery) -> dict[str, Any]:
    """A delivery as the control API shows it."""
    return {**plain(delivery, *_OWN), **delivery.target.ids}


class Webhooks:
    """Sends, retries, records.

    Attempts of one delivery are in order; different deliveries overtake each other.
    """

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.webhook_concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: deque[Delivery] = deque()
        self._session: aiohttp.ClientSession | None = None
        self.paused = False
        self.deliveries: OrderedDict[str, Delivery] = OrderedDict()

    def record(self, delivery: Delivery) -> None:
        """Go on with a delivery of another sandbox, once this one starts."""
        self.deliveries[delivery.delivery_id] = delivery

    async def start(self) -> None:
        """Open the way out, and make the attempts that another sandbox has left."""
        timeout = aiohttp.ClientTimeout(total=self._settings.webhook_timeout_s)
        # No connection is kept: a receiver that was restarted must not look like a failed attempt.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)
        for delivery in self.deliveries.values():
            self._attempt_now(delivery)

    async def stop(self) -> None:
        """End every delivery and close the way out."""
        self.reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def reset(self) -> None:
        """Stop and forget everything."""
        for delivery in self.deliveries.values():
            delivery.end("stopped")
        for task in self._tasks:
            task.cancel()
        self._held.clear()
        self.deliveries = OrderedDict()
        self.paused = False

    # Events

    def emit(self, link: Link, event_type: str, data: Json, *, order_id: str | None = None) -> None:
        """Deliver an event to the link's receiver, if an active integration wants it."""
        if link.active is not None:
            self.send(link, self.envelope(link, event_type, data), order_id=order_id)

    def broadcast(
        self, subscriptions: Iterable[Subscription], event_type: str, data: Json, order_id: str
    ) -> None:
        """To all who subscribed: the same event_id for everybody, a delivery id for each."""
        event_id = new_id("evt")
        for subscription in subscriptions:
            if subscription.wants(event_type):
                content = self.envelope(subscription, event_type, data, event_id)
                self.send(subscription, content, order_id=order_id)

    def envelope(
        self, target: Target, event_type: str, data: Json, event_id: str | None = None
    ) -> dict[str, Any]:
        """An event as a receiver gets it (specification, "POS envelope", "Community envelope")."""
        return {
            "event_type": event_type,
            "event_id": event_id or new_id("evt"),
            **target.named,
            "timestamp": self._clock.timestamp(),
            "data": data,
        }

    def send(
        self,
        target: Target,
        content: dict[str, Any],
        *,
        order_id: str | None = None,
        retry: bool = True,
    ) -> Delivery:
        """Deliver an envelope, whoever the receiver is."""
        delivery = Delivery(
            new_id("dlv"),
            content["event_id"],
            content["event_type"],
            target,
            encode(content),
            retry=retry,
            order_id=order_id,
        )
        self.dispatch(delivery)
        return delivery

    def redeliver(
        self, original: Delivery, mode: RedeliveryMode, *, forged: bool = False
    ) -> Delivery:
        """The same event again: byte for byte, under a new delivery id, or as a new event.

        One that is forged is of no order, has a wrong signature, and is not tried again.
        """
        copy = replace(
            original,
            state="pending",
            attempts=[],
            next_attempt_at_ms=None,
            timer=None,
            attempted=asyncio.Event(),
            extra_headers=dict(original.extra_headers),
        )
        if forged:
            copy.signature, copy.retry, copy.order_id = sign(copy.body, "not it"), False, None
        if mode != "same":
            copy.delivery_id = new_id("dlv")
        if mode == "new_event_id":
            copy.event_id = new_id("evt")
            copy.body = encode({**json.loads(original.body), "event_id": copy.event_id})
        self.dispatch(copy)
        return copy

    def dispatch(self, delivery: Delivery) -> None:
        """Record a delivery and make its first attempt now."""
        key = delivery.delivery_id
        # A byte-for-byte repeat keeps its id on the wire, and gets a row of its own.
        while key in self.deliveries:
            key += "+"
        self.deliveries[key] = delivery
        while len(self.deliveries) > self._settings.webhook_log_size:
            _, oldest = self.deliveries.popitem(last=False)
            oldest.end("stopped")
        self._attempt_now(delivery)

    def of_order(self, order_id: str) -> Delivery | None:
        """The first delivery about an order: its order.created."""
        return next(
            (found for found in self.deliveries.values() if found.order_id == order_id), None
        )

    def seconds_to_next(self, delivery: Delivery) -> int | None:
        """Until the next attempt, by this clock; None where none waits for its time."""
        if delivery.next_attempt_at_ms is None:
            return None
        return max(0, -(-(delivery.next_attempt_at_ms - self._clock.now_ms()) // 1000))

    # Switches

    def pause(self) -> None:
        """Hold every attempt from now on."""
        self.paused = True

    def resume(self) -> None:
        """Make the attempts that were held."""
        self.paused = False
        held, self._held = self._held, deque()
        for delivery in held:
            self._attempt_now(delivery)

    def stop_for(self, target: Target) -> None:
        """What has not been delivered to the receiver never will be."""
        for delivery in self.deliveries.values():
            if delivery.target is target:
                delivery.end("stopped")

    # Attempts

    def _attempt_now(self, delivery: Delivery) -> None:
        delivery.timer = None
        delivery.next_attempt_at_ms = None
        if delivery.state != "pending":
            return
        if self.paused:
            self._held.append(delivery)
            return
        task = asyncio.get_running_loop().create_task(self._attempt(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            _log.error("webhook.attempt_broke", error=repr(failure))

    async def _attempt(self, delivery: Delivery) -> None:
        async with self._slots:
            receiver = delivery.target.receiver
            if delivery.state != "pending":
                return
            if receiver is None:
                delivery.end("stopped")
                return
            headers = {
                "Content-Type": "application/json",
                "X-Service-Event": delivery.event_type,
                "X-Service-Delivery-Id": delivery.delivery_id,
                "X-Service-Signature": sign(delivery.body, receiver.secret),
                **receiver.headers,
                **delivery.extra_headers,
            }
            if delivery.signature is not None:
                headers["X-Service-Signature"] = delivery.signature
            if not headers["X-Service-Signature"]:
                del headers["X-Service-Signature"]
            attempt = await self._post(receiver.url, delivery.body, headers)
        delivery.attempts.append(attempt)
        delivery.attempted.set()
        self._settle(delivery, attempt)

    def _settle(self, delivery: Delivery, attempt: Attempt) -> None:
        """Delivered, tried again later, or given up."""
        delays = self._settings.webhook_retry_delays_s if delivery.retry else ()
        made = len(delivery.attempts)
        if delivery.state != "pending":
            return
        if attempt.status is not None and 200 <= attempt.status < 300:
            delivery.state = "delivered"
        elif made > len(delays):
            delivery.state = "failed"
            _log.info("webhook.given_up", delivery_id=delivery.delivery_id, attempts=made)
        else:
            due = self._clock.now_ms() + round(delays[made - 1] * 1000)
            delivery.next_attempt_at_ms = due
            delivery.timer = self._clock.call_at(due, lambda: self._attempt_now(delivery))

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> Attempt:
        if self._session is None:
            raise RuntimeError("Webhooks.start() comes before the first delivery")
        at_ms = self._clock.now_ms()
        began = time.monotonic()
        status, error, answer = None, None, ""
        try:
            async with self._session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
                answer = (await response.content.read(200)).decode("utf-8", "replace")
        except TimeoutError:
            status, error = None, f"no answer within {self._settings.webhook_timeout_s:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            status, error = None, f"{type(failure).__name__}: {failure}"
        return Attempt(at_ms, status, error, round((time.monotonic() - began) * 1000), answer)
