"""How endpoints are written: as rows of a table. And whom and what their calls reach.

A row names the method and path, what the path and the credentials stand for (found or refused
before the body is read), the model of the body, and the function that answers.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aiohttp import web
from pydantic import create_model

from tillbridge.sandbox.state import (
    Community,
    Integration,
    Link,
    Merchant,
    Order,
    ParentOrder,
    Store,
    Subscription,
)
from tillbridge.sandbox.validation import AnyBody, Body, Empty, Json, Model, ServiceError, parse

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox  # which imports every table

PUSH_DIRECTIONS = ("pos_to_quiqqy", "bidirectional")


Found = TypeVar("Found")


class Unread(Body):
    """For calls whose body nobody reads as JSON."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Found, AnyBody]):
    """A request on its way to the function that answers it."""

    sandbox: "Sandbox"
    request: web.Request
    found: Found
    body: AnyBody

    def part(self, name: str) -> str:
        """A part of the path."""
        return self.request.match_info[name]

    @property
    def origin(self) -> str:
        """Of the addresses that answers name, without a slash at the end."""
        return (self.sandbox.settings.public_url or str(self.request.url.origin())).rstrip("/")


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[Found, AnyBody]):
    """A row of a table, whose parts fit each other."""

    method: str
    path: str
    find: Callable[["Sandbox", web.Request], Found]
    body: Model[AnyBody]
    answer: Callable[[Call[Found, AnyBody]], Awaitable[Json | web.StreamResponse]]
    status: int = 200

    def route(self, sandbox: "Sandbox", *, api: bool) -> web.RouteDef:
        """For aiohttp. Outside the API a body may be left out, and its Content-Type is not read."""

        async def handle(request: web.Request) -> web.StreamResponse:
            found = self.find(sandbox, request)
            body = await _read(request, self.body, api=api)
            answer = await self.answer(Call(sandbox, request, found, body))
            if isinstance(answer, web.StreamResponse):
                return answer
            return web.json_response(answer, status=self.status)

        head = {"allow_head": False} if self.method == "GET" and api else {}
        return web.RouteDef(self.method, self.path, handle, head)


async def _read(request: web.Request, model: Model[Any], *, api: bool) -> Any:  # noqa: ANN401 (of the row)
    if model is Unread:
        return Unread()
    raw = await request.read()
    if not raw.strip() and (model is Empty or not api):
        raw = b"{}"
    elif api:
        return parse(raw, request.content_type, model)
    return parse(raw, "application/json", model)


# Who is calling, and what they may touch (specification, "Authentication")


def anyone(_sandbox: "Sandbox", _request: web.Request) -> None:
    """No credentials."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An app, calling on behalf of a merchant."""

    app_id: str
    merchant: Merchant


def caller(sandbox: "Sandbox", request: web.Request) -> Caller:
    """The app and merchant of the bearer token."""
    consent = sandbox.tokens.consent_of(_bearer(request))
    merchant = sandbox.world.merchant(consent.merchant_email)
    if merchant is None:
        raise ServiceError("auth.invalid_token", "The token's merchant is gone")
    return Caller(consent.app_id, merchant)


def reachable(sandbox: "Sandbox", request: web.Request) -> Link:
    """The caller's link to the store in the path, integrated or not."""
    who = caller(sandbox, request)
    store_id = request.match_info["store_id"]
    if store_id not in who.merchant.store_ids:
        raise ServiceError("store.not_found", f"No store {store_id} within reach of this token")
    return sandbox.world.link(who.app_id, sandbox.world.stores[store_id])


def integrated(sandbox: "Sandbox", request: web.Request) -> tuple[Link, Integration]:
    """The caller's link to the store in the path, which must have an active integration."""
    link = reachable(sandbox, request)
    return link, _active(link)


def pushing(sandbox: "Sandbox", request: web.Request) -> Link:
    """As `integrated`, and the direction must allow pushes from the POS."""
    link, integration = integrated(sandbox, request)
    if integration.menu_sync_direction not in PUSH_DIRECTIONS:
        raise ServiceError(
            "menu.push_not_allowed",
            f"menu_sync_direction is {integration.menu_sync_direction}; "
            f"pushes need {' or '.join(PUSH_DIRECTIONS)}",
        )
    return link


def own_order(sandbox: "Sandbox", request: web.Request) -> Order:
    """The order in the path, if it belongs to a store that the caller is integrated with."""
    who = caller(sandbox, request)
    order_id = request.match_info["order_id"]
    order = sandbox.world.orders.get(order_id)
    if (
        order is None
        or order.link.app_id != who.app_id
        or order.link.store.store_id not in who.merchant.store_ids
    ):
        raise ServiceError("order.not_found", f"No order {order_id} for this integration")
    _active(order.link)
    return order


def app(sandbox: "Sandbox", request: web.Request) -> str:
    """The app of a bearer token for communities."""
    return sandbox.tokens.app_of(_bearer(request), sandbox.settings.community_audience)


def own_community(sandbox: "Sandbox", request: web.Request) -> Community:
    """The community in the path, if the app's tokens reach it."""
    return sandbox.world.community(request.match_info["community_id"], app(sandbox, request))


def own_subscription(sandbox: "Sandbox", request: web.Request) -> Subscription:
    """The subscription in the path, if it is of a community of the app."""
    app_id, webhook_id = app(sandbox, request), request.match_info["webhook_id"]
    found = sandbox.world.subscriptions.get(webhook_id)
    if found is None or sandbox.world.communities[found.community_id].app_id != app_id:
        raise ServiceError("webhook.not_found", f"No webhook subscription {webhook_id}")
    return found


# For the control API and the pages, which ask for no credentials


def any_store(sandbox: "Sandbox", request: web.Request) -> Store:
    """The store in the path."""
    return sandbox.world.store(request.match_info["store_id"])


def any_order(sandbox: "Sandbox", request: web.Request) -> Order:
    """The order in the path."""
    order_id = request.match_info["order_id"]
    if order_id not in sandbox.world.orders:
        raise ServiceError("order.not_found", f"There is no order {order_id} here")
    return sandbox.world.orders[order_id]


def any_community(sandbox: "Sandbox", request: web.Request) -> Community:
    """The community in the path."""
    return sandbox.world.community(request.match_info["community_id"])


def any_parent(sandbox: "Sandbox", request: web.Request) -> ParentOrder:
    """The community order in the path, which is of the community in the path, if one is named."""
    order_id = request.match_info["order_id"]
    parent = sandbox.world.parent_orders.get(order_id)
    community_id = request.match_info.get("community_id")
    if parent is None or community_id not in (None, parent.community.community_id):
        raise ServiceError("order.not_found", f"There is no community order {order_id} here")
    return parent


_RECORDS: dict[object, Callable[["Sandbox", web.Request], object]] = {
    Store: any_store,
    Order: any_order,
    Community: any_community,
    ParentOrder: any_parent,
}
Control = TypeVar("Control", bound=Callable[..., object])


def control(
    endpoints: list[Endpoint[Any, Any]], method: str, path: str, status: int = 200
) -> Callable[[Control], Control]:
    """Make a function a call of the control API, and a row of `endpoints`.

    The first parameter is the sandbox. Of the others those whose type is a record stand for it in
    the path, `body` is a whole body, names in the path are parts of it; the rest are the fields of
    the body.
    """

    def register(function: Control) -> Control:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        records = {each.name: each.annotation for each in parameters if each.annotation in _RECORDS}
        parts = [each.name for each in parameters if f"{{{each.name}}}" in path]
        fields: dict[str, Any] = {
            each.name: (each.annotation, ... if each.default is each.empty else each.default)
            for each in parameters
            if each.name not in (*records, *parts, "body", "request")
        }
        whole = next((each.annotation for each in parameters if each.name == "body"), None)
        model: type[Body] = whole or (Unread if method in ("GET", "DELETE") else Empty)
        if fields:
            model = create_model(function.__name__, __base__=Body, **fields)
        asks = any(each.name == "request" for each in parameters)

        def find(sandbox: "Sandbox", request: web.Request) -> dict[str, object]:
            found = {name: _RECORDS[kind](sandbox, request) for name, kind in records.items()}
            return {**found, **{name: request.match_info[name] for name in parts}}

        async def answer(call: Call[dict[str, object], Body]) -> Json:
            sent = (
                {"body": call.body}
                if whole
                else {name: getattr(call.body, name) for name in fields}
            )
            found = {**call.found, "request": call.request} if asks else call.found
            answered = function(call.sandbox, **found, **sent)
            return await answered if inspect.isawaitable(answered) else answered

        endpoints.append(Endpoint(method, path, find, model, answer, status))
        return function

    return register


def _bearer(request: web.Request) -> str:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise ServiceError("auth.invalid_token", "Send a token: Authorization: Bearer ...")
    return credential.strip()


def _active(link: Link) -> Integration:
    if link.active is None:
        raise ServiceError(
            "store.not_integrated",
            f"Store {link.store.store_id} has no active integration with this app "
            f"({link.integration_status})",
        )
    return link.active
