"""The four order endpoints that the POS calls."""

from typing import Any

from aiohttp import web

from tillbridge.sandbox.bodies import CANCEL, order_status
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.orders import Orders, unreachable
from tillbridge.sandbox.requests import read_body, read_no_body, reply
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Order


class OrderRoutes:
    """The endpoints under "Orders"."""

    def __init__(self, orders: Orders, gate: Gate, settings: SandboxSettings) -> None:
        self._orders = orders
        self._gate = gate
        self._status_field = settings.order_status_field
        self._status_check = order_status(settings.order_status_field)

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        order = "/pos/orders/{order_id}"
        return [
            web.post(f"{order}/accept", self._accept),
            web.post(f"{order}/status", self._status),
            web.post(f"{order}/ready", self._ready),
            web.post(f"{order}/cancel", self._cancel),
        ]

    async def _accept(self, request: web.Request) -> web.Response:
        order = self._gate.order(request)
        await read_no_body(request)
        self._orders.move(order, "accepted", by="pos")
        return reply(_told(order))

    async def _status(self, request: web.Request) -> web.Response:
        """To preparing; the other states have calls of their own, and answer 409 here."""
        order = self._gate.order(request)
        body = await read_body(request, self._status_check)
        wanted = body[self._status_field]
        if wanted != "preparing":
            raise unreachable(order, wanted)
        self._orders.move(order, wanted, by="pos")
        return reply(_told(order))

    async def _ready(self, request: web.Request) -> web.Response:
        order = self._gate.order(request)
        await read_no_body(request)
        self._orders.move(order, "ready", by="pos")
        return reply(_told(order))

    async def _cancel(self, request: web.Request) -> web.Response:
        order = self._gate.order(request)
        body = await read_body(request, CANCEL)
        self._orders.cancel(order, body["reason"], body["reason_code"], body.get("message"))
        return reply({**_told(order), "reason": body["reason"], "reason_code": body["reason_code"]})


def _told(order: Order) -> dict[str, Any]:
    """What accept, status and ready answer (not shown in the specification)."""
    return {"status": "success", "order_id": order.order_id, "order_status": order.state}
