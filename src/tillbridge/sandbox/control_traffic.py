"""Control API, what goes over the wire: clock, faults, rate limit, request log, webhooks."""

from dataclasses import asdict
from typing import Any

from aiohttp import web

from tillbridge.sandbox import control_bodies as bodies
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.deliveries import (
    Delivery,
    LinkTarget,
    delivery_body,
    envelope,
    first_attempt,
)
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.faults import FAULT, FaultRule, Faults
from tillbridge.sandbox.limits import RateLimit
from tillbridge.sandbox.made_up import made_up
from tillbridge.sandbox.request_log import RequestLog, entry_body
from tillbridge.sandbox.requests import read_control, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.state import Link, World, new_id
from tillbridge.sandbox.webhooks import Webhooks


class ControlTraffic:
    """Endpoints of the control API."""

    def __init__(
        self,
        world: World,
        webhooks: Webhooks,
        faults: Faults,
        limit: RateLimit,
        log: RequestLog,
        clock: Clock,
    ) -> None:
        self._world = world
        self._webhooks = webhooks
        self._faults = faults
        self._limit = limit
        self._log = log
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.get("/_control/clock", self._show_clock),
            web.post("/_control/clock", self._set_clock),
            web.get("/_control/faults", self._show_faults),
            web.post("/_control/faults", self._add_fault),
            web.delete("/_control/faults", self._clear_faults),
            web.delete("/_control/faults/{rule_id}", self._remove_fault),
            web.post("/_control/rate", self._rate),
            web.get("/_control/requests", self._requests),
            web.delete("/_control/requests", self._clear_requests),
            web.get("/_control/deliveries", self._deliveries),
            web.post("/_control/webhooks/pause", self._pause),
            web.post("/_control/webhooks/resume", self._resume),
            web.post("/_control/webhooks/redeliver", self._redeliver),
            web.post("/_control/webhooks/send", self._send),
        ]

    # Time, faults, rate

    async def _show_clock(self, _request: web.Request) -> web.Response:
        return reply(self._time())

    async def _set_clock(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.CLOCK)
        if "speed" in body:
            self._clock.run_at(body["speed"])
        if "jump_s" in body:
            self._clock.jump(body["jump_s"])
        return reply(self._time())

    def _time(self) -> dict[str, Any]:
        return {"now": self._clock.timestamp(), "speed": self._clock.speed}

    async def _show_faults(self, _request: web.Request) -> web.Response:
        return reply(
            {"faults": [{**asdict(rule), "hits": hits} for rule, hits in self._faults.in_force()]}
        )

    async def _add_fault(self, request: web.Request) -> web.Response:
        rule = self._faults.add(FaultRule(**await read_control(request, FAULT)))
        return reply(asdict(rule), 201)

    async def _clear_faults(self, _request: web.Request) -> web.Response:
        self._faults.clear()
        return reply({"faults": []})

    async def _remove_fault(self, request: web.Request) -> web.Response:
        removed = self._faults.remove(request.match_info["rule_id"])
        return reply({"removed": removed})

    async def _rate(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.RATE)
        self._limit.set(body["limit"], body.get("window_s", self._limit.window_s))
        return reply({"limit": self._limit.limit, "window_s": self._limit.window_s})

    # The request log

    async def _requests(self, request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        if not since.isdecimal():
            raise wrong("since", "must be the `next` of an earlier answer")
        entries = self._log.since(int(since))
        last = entries[-1].seq if entries else int(since)
        return reply({"requests": [entry_body(entry) for entry in entries], "next": last})

    async def _clear_requests(self, _request: web.Request) -> web.Response:
        self._log.clear()
        return reply({"requests": []})

    # Webhooks

    async def _deliveries(self, request: web.Request) -> web.Response:
        order_id = request.query.get("order_id")
        found = [
            delivery_body(delivery)
            for delivery in self._webhooks.deliveries.values()
            if order_id in (None, delivery.order_id)
        ]
        return reply({"deliveries": found})

    async def _pause(self, request: web.Request) -> web.Response:
        await read_control(request, bodies.EMPTY)
        self._webhooks.pause()
        return reply({"paused": True})

    async def _resume(self, request: web.Request) -> web.Response:
        await read_control(request, bodies.EMPTY)
        self._webhooks.resume()
        return reply({"paused": False})

    async def _redeliver(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.REDELIVER)
        if ("delivery_id" in body) == ("order_id" in body):
            raise wrong("delivery_id", "name a delivery_id or an order_id, one of them")
        found = (
            self._webhooks.deliveries.get(body["delivery_id"])
            if "delivery_id" in body
            else self._webhooks.of_order(body["order_id"])
        )
        if found is None:
            raise ServiceError(
                "control.refused", "No such delivery; GET /_control/deliveries lists them"
            )
        copy = self._webhooks.redeliver(found, body.get("mode", "same"))
        return reply(await first_attempt(copy, wait=body.get("wait", False)))

    async def _send(self, request: web.Request) -> web.Response:
        """Any event to a store's receiver, honest or not."""
        body = await read_control(request, bodies.SEND)
        link = self._world.active_link(body["store_id"])
        if link is None:
            raise ServiceError(
                "store.not_integrated", f"Store {body['store_id']} has no active integration"
            )
        delivery = self._made_up(link, body)
        self._webhooks.dispatch(delivery)
        return reply(await first_attempt(delivery, wait=body.get("wait", False)))

    def _made_up(self, link: Link, body: dict[str, Any]) -> Delivery:
        content = envelope(
            link,
            body["event_type"],
            body.get("data", {}),
            event_id=body.get("event_id") or new_id("evt"),
            timestamp=self._clock.timestamp(),
        )
        content["store_id"] = body.get("body_store_id", content["store_id"])
        content["location_id"] = body.get("body_location_id", content["location_id"])
        fields = {**body, "delivery_id": body.get("delivery_id") or new_id("dlv")}
        return made_up(LinkTarget(link), content, fields)
