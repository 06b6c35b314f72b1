"""Control API, the service's records: state, orders, integrations, tokens, jobs, items, reset."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tillbridge.sandbox import control_bodies as bodies
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import Communities
from tillbridge.sandbox.deliveries import first_attempt
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.jobs import Jobs, NextJob
from tillbridge.sandbox.orders import Orders
from tillbridge.sandbox.placing import PlacementError, Wanted, WantedOption
from tillbridge.sandbox.requests import read_control, reply
from tillbridge.sandbox.state import Link, Order, World
from tillbridge.sandbox.state_dump import communities_dump, dump, order_dump
from tillbridge.sandbox.tokens import Tokens
from tillbridge.sandbox.webhooks import Webhooks


class ControlWorld:
    """Endpoints of the control API."""

    def __init__(
        self,
        world: World,
        orders: Orders,
        jobs: Jobs,
        tokens: Tokens,
        webhooks: Webhooks,
        clock: Clock,
        communities: Communities,
        reset: Callable[[], None],
    ) -> None:
        self._world = world
        self._communities = communities
        self._orders = orders
        self._jobs = jobs
        self._tokens = tokens
        self._webhooks = webhooks
        self._clock = clock
        self._reset = reset

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.get("/_control/state", self._state),
            web.post("/_control/reset", self._start_over),
            web.post("/_control/orders", self._place),
            web.get("/_control/orders/{order_id}", self._show_order),
            web.post("/_control/orders/{order_id}/deliver", self._deliver),
            web.post("/_control/orders/{order_id}/customer-cancel", self._customer_cancel),
            web.post("/_control/integrations/{store_id}/{status}", self._integration),
            web.post("/_control/tokens/expire", self._expire),
            web.post("/_control/tokens/invalidate", self._invalidate),
            web.post("/_control/tokens/revoke", self._revoke),
            web.post("/_control/tokens/mint", self._mint),
            web.post("/_control/consent", self._consent),
            web.post("/_control/apps/{client_id}/secret", self._app_secret),
            web.post("/_control/jobs/lose", self._lose_jobs),
            web.post("/_control/jobs/next", self._next_job),
            web.post("/_control/items/reject", self._reject_items),
        ]

    async def _state(self, _request: web.Request) -> web.Response:
        state = dump(self._world, self._tokens, self._webhooks, self._clock)
        now = self._clock.now_ms()
        return reply({**state, "communities": communities_dump(self._communities, now)})

    async def _start_over(self, request: web.Request) -> web.Response:
        await read_control(request, bodies.EMPTY)
        self._reset()
        return reply({"status": "success"})

    # Orders

    async def _place(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.ORDER)
        link = self._link(body["store_id"])
        wanted = [wanted_line(line) for line in body["items"]]
        overrides = body.get("overrides", {})
        odd = body.get("unchecked") or overrides or any(line.overrides for line in wanted)
        try:
            if odd:
                order = self._orders.place_unchecked(link, wanted, {**_fields(body), **overrides})
            else:
                order = self._orders.place(link, wanted, **_fields(body))
        except PlacementError as refusal:
            raise ServiceError("control.refused", str(refusal)) from None
        answer = order_dump(order)
        delivery = self._webhooks.of_order(order.order_id)
        if delivery is not None:
            answer["delivery"] = await first_attempt(delivery, wait=body.get("wait", False))
        return reply(answer)

    async def _show_order(self, request: web.Request) -> web.Response:
        return reply(order_dump(self._order(request)))

    async def _deliver(self, request: web.Request) -> web.Response:
        order = self._order(request)
        await read_control(request, bodies.EMPTY)
        self._orders.deliver(order)
        return reply(order_dump(order))

    async def _customer_cancel(self, request: web.Request) -> web.Response:
        order = self._order(request)
        body = await read_control(request, bodies.CUSTOMER_CANCEL)
        self._orders.cancel_by_customer(order, body.get("event_type"))
        return reply(order_dump(order))

    # Integrations, tokens and apps

    async def _integration(self, request: web.Request) -> web.Response:
        """Enable, disable (as an uninstall or a suspension does) or pending, for all apps."""
        await read_control(request, bodies.EMPTY)
        wanted = {"enable": "active", "disable": "disabled", "pending": "pending"}.get(
            request.match_info["status"]
        )
        store_id = request.match_info["store_id"]
        links = [link for link in self._world.links_of(store_id) if link.integration is not None]
        if wanted is None:
            raise ServiceError("request.not_found", "The last part is enable, disable or pending")
        if not links:
            raise ServiceError(
                "store.not_integrated", f"Store {store_id} has no integration to change"
            )
        for link in links:
            self._set_status(link, wanted)
        return reply(
            {
                "status": "success",
                "store_id": store_id,
                "integration_status": links[0].integration_status,
            }
        )

    def _set_status(self, link: Link, status: str) -> None:
        if link.integration is not None:
            link.integration.status = status
        if status != "active":
            self._webhooks.forget(link)

    async def _expire(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.KIND)
        return reply({"expired": self._tokens.expire(body.get("kind", "access"))})

    async def _invalidate(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.KIND)
        return reply({"invalidated": self._tokens.invalidate(body.get("kind", "access"))})

    async def _revoke(self, request: web.Request) -> web.Response:
        """The merchant revokes consent; with `uninstall` the integrations are disabled too."""
        body = await read_control(request, bodies.REVOKE)
        revoked = self._tokens.revoke(body.get("email"))
        if body.get("uninstall"):
            hit = {(consent.app_id, consent.merchant_email) for consent in revoked}
            for link in list(self._world.links.values()):
                if (link.app_id, link.store.merchant_email) in hit and link.integration is not None:
                    self._set_status(link, "disabled")
        return reply({"revoked": len(revoked)})

    async def _mint(self, request: web.Request) -> web.Response:
        """Tokens without the browser."""
        body = await read_control(request, bodies.MINT)
        client_id = body.get("client_id") or next(iter(self._world.apps))
        email = body.get("email") or next(iter(self._world.merchants.values())).email
        merchant = self._world.merchant(email)
        if client_id not in self._world.apps or merchant is None:
            raise ServiceError(
                "control.refused", "No such app or merchant; GET /_control/state lists them"
            )
        return reply(self._tokens.issue_for(client_id, merchant.email))

    async def _consent(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.CONSENT)
        self._world.auto_consent = body["auto"]
        return reply({"auto": self._world.auto_consent})

    async def _app_secret(self, request: web.Request) -> web.Response:
        """A rotation in the console: the new secret is valid at once, tokens go on working."""
        app = self._world.apps.get(request.match_info["client_id"])
        if app is None:
            raise ServiceError("control.refused", "No such app; GET /_control/state lists them")
        app.client_secret = (await read_control(request, bodies.APP_SECRET))["client_secret"]
        return reply({"client_id": app.client_id})

    # Menus

    async def _lose_jobs(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.JOBS_LOSE)
        return reply({"lost": self._jobs.lose(keep_work=body.get("keep_work", True))})

    async def _next_job(self, request: web.Request) -> web.Response:
        body = await read_control(request, bodies.JOBS_NEXT)
        self._jobs.next_job = NextJob(body.get("fail"), body.get("duration_s"))
        return reply({"fail": body.get("fail"), "duration_s": body.get("duration_s")})

    async def _reject_items(self, request: web.Request) -> web.Response:
        """Items that pushes refuse from now on; an empty list ends that."""
        body = await read_control(request, bodies.REJECT)
        reason = body.get("reason", "rejected by the merchant catalogue service")
        self._world.rejected_items = dict.fromkeys(body["external_ids"], reason)
        return reply({"rejected": self._world.rejected_items})

    # Finding

    def _link(self, store_id: str) -> Link:
        link = self._world.active_link(store_id)
        if store_id not in self._world.stores:
            raise ServiceError(
                "store.not_found", f"No store {store_id}; GET /_control/state lists them"
            )
        if link is None:
            raise ServiceError(
                "store.not_integrated", f"Store {store_id} has no active integration"
            )
        return link

    def _order(self, request: web.Request) -> Order:
        order = self._world.orders.get(request.match_info["order_id"])
        if order is None:
            raise ServiceError("order.not_found", f"No order {request.match_info['order_id']}")
        return order


def _fields(body: Mapping[str, Any]) -> dict[str, Any]:
    names = ("order_type", "tip", "discount", "special_instructions", "customer_id")
    return {name: body[name] for name in names if name in body}


def wanted_line(line: Mapping[str, Any]) -> Wanted:
    """A line of a control call's basket."""
    return Wanted(
        external_id=line.get("external_id"),
        quantity=line.get("quantity", 1),
        variant_external_id=line.get("variant_external_id"),
        options=tuple(
            WantedOption(option["external_id"], option.get("quantity", 1))
            for option in line.get("options", ())
        ),
        overrides=tuple((name, value) for name, value in line.get("overrides", {}).items()),
    )
