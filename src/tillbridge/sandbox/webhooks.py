"""Signed deliveries to receivers, and their retries (specification, "Events")."""

import asyncio
import json
import time
from collections import OrderedDict, deque
from dataclasses import replace
from typing import Any, Literal

import aiohttp
import structlog

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.deliveries import (
    Attempt,
    Delivery,
    LinkTarget,
    Target,
    encode,
    end,
    envelope,
    sign,
)
from tillbridge.sandbox.schema import Json
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Link, new_id

_log = structlog.get_logger("tillbridge.sandbox.webhooks")

RedeliveryMode = Literal["same", "new_delivery_id", "new_event_id"]


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

    async def start(self) -> None:
        """Open the way out; before the first delivery."""
        timeout = aiohttp.ClientTimeout(total=self._settings.webhook_timeout_s)
        # No connection is kept: a receiver that was restarted must not look like a failed attempt.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)

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
            end(delivery, "stopped")
        for task in self._tasks:
            task.cancel()
        self._held.clear()
        self.deliveries = OrderedDict()
        self.paused = False

    # Events

    def emit(
        self, link: Link, event_type: str, data: Json, *, order_id: str | None = None
    ) -> Delivery | None:
        """Deliver an event to the link's receiver; None when no active integration wants it."""
        if link.active is None:
            return None
        body = envelope(
            link, event_type, data, event_id=new_id("evt"), timestamp=self._clock.timestamp()
        )
        return self.send(LinkTarget(link), event_type, body, order_id=order_id)

    def send(
        self,
        target: Target,
        event_type: str,
        body: dict[str, Any],
        *,
        order_id: str | None = None,
        retry: bool = True,
    ) -> Delivery:
        """Deliver an envelope, whoever the receiver is."""
        delivery = Delivery(
            new_id("dlv"),
            body["event_id"],
            event_type,
            target,
            encode(body),
            retry=retry,
            order_id=order_id,
        )
        self.dispatch(delivery)
        return delivery

    def redeliver(self, original: Delivery, mode: RedeliveryMode) -> Delivery:
        """The same event again: byte for byte, under a new delivery id, or as a new event."""
        copy = replace(
            original,
            state="pending",
            attempts=[],
            next_attempt_ms=None,
            timer=None,
            attempted=asyncio.Event(),
            extra_headers=dict(original.extra_headers),
        )
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
        while (
            key in self.deliveries
        ):  # a byte-for-byte repeat keeps its id on the wire, and gets a row of its own
            key += "+"
        self.deliveries[key] = delivery
        while len(self.deliveries) > self._settings.webhook_log_size:
            _, oldest = self.deliveries.popitem(last=False)
            end(oldest, "stopped")
        self._attempt_now(delivery)

    def of_order(self, order_id: str) -> Delivery | None:
        """The first delivery about an order: its order.created."""
        return next(
            (found for found in self.deliveries.values() if found.order_id == order_id), None
        )

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

    def forget(self, link: Link) -> None:
        """The integration ended: what has not been delivered never will be."""
        self.stop_for(LinkTarget(link))

    def stop_for(self, target: Target) -> None:
        """Stop what is under way to a receiver."""
        for delivery in self.deliveries.values():
            if delivery.target.key == target.key:
                end(delivery, "stopped")

    # Attempts

    def _attempt_now(self, delivery: Delivery) -> None:
        delivery.timer = None
        delivery.next_attempt_ms = None
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
            endpoint = delivery.target.endpoint
            if delivery.state != "pending":
                return
            if endpoint is None:
                end(delivery, "stopped")
                return
            headers = {
                "Content-Type": "application/json",
                "X-Service-Event": delivery.event_type,
                "X-Service-Delivery-Id": delivery.delivery_id,
                "X-Service-Signature": sign(delivery.body, endpoint.secret),
                **dict(endpoint.headers),
                **delivery.extra_headers,
            }
            if delivery.signature is not None:
                headers["X-Service-Signature"] = delivery.signature
            if not headers["X-Service-Signature"]:
                del headers["X-Service-Signature"]
            attempt = await self._post(endpoint.url, delivery.body, headers)
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
            delivery.next_attempt_ms = due
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
