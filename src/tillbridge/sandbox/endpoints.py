"""How endpoints are written: as functions in a table. And whom and what their calls reach."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web
from pydantic import create_model

from tillbridge.sandbox.settings import SandboxSettings
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
from tillbridge.sandbox.validation import Body, Empty, Model, ServiceError, parse

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox  # which imports every table

PUSH_DIRECTIONS = ("pos_to_quiqqy", "bidirectional")

Answer = TypeVar("Answer", bound=Callable[..., object])
Find = Callable[["Sandbox", web.Request], object]


@dataclass(frozen=True, slots=True)
class _Row:
    method: str
    path: str
    find: Find | None
    answer: Callable[..., object]
    status: int
    model: Callable[[SandboxSettings], Model[Any]] | None


class Endpoints:
    """A table of calls. Outside the API a body may be left out, and Content-Type is not read.

    The first parameter of a function in the table is the sandbox; with `find` the second is what
    that has found, or refused before the body is read. Of the others those whose type is the
    request or a record in the path stand for it, and names in the path are parts of it. `body` is
    the whole body, of a model that may hang on the settings; whatever is left are the fields of the
    body. Pages read their forms themselves.
    """

    def __init__(self, *, api: bool = False) -> None:
        self._api = api
        self._rows: list[_Row] = []

    def serves(
        self,
        method: str,
        path: str,
        find: Find | None = None,
        *,
        status: int = 200,
        model: Callable[[SandboxSettings], Model[Any]] | None = None,
    ) -> Callable[[Answer], Answer]:
        """Put a function into the table."""

        def put(answer: Answer) -> Answer:
            self._rows.append(_Row(method, path, find, answer, status, model))
            return answer

        return put

    def routes(self, sandbox: "Sandbox") -> list[web.RouteDef]:
        """For aiohttp."""
        return [self._route(sandbox, row) for row in self._rows]

    def _route(self, sandbox: "Sandbox", row: _Row) -> web.RouteDef:
        signature = _signature_of(row)
        finders, parts, fields = signature.finders, signature.parts, signature.fields
        model = signature.model
        if model is None and row.model is not None:
            model = row.model(sandbox.settings)

        async def handle(request: web.Request) -> web.StreamResponse:
            found = () if row.find is None else (row.find(sandbox, request),)
            given = {name: find(sandbox, request) for name, find in finders.items()}
            given |= {name: request.match_info[name] for name in parts}
            if model is not None:
                body = await _read(request, model, api=self._api)
                given |= {"body": body} if signature.has_body else {}
                given |= {name: getattr(body, name) for name in fields}
            answer = row.answer(sandbox, *found, **given)
            if inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, web.StreamResponse):
                return answer
            return web.json_response(answer, status=row.status)

        head = {"allow_head": False} if row.method == "GET" and self._api else {}
        return web.RouteDef(row.method, row.path, handle, head)


#: What the service itself answers, below its prefix; and the control API with the pages.
API = Endpoints(api=True)
SITE = Endpoints()


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a function of the table takes, as the names of its parameters."""

    finders: Mapping[str, Find]
    parts: Sequence[str]  # of the path
    has_body: bool
    fields: Sequence[str]  # of the body
    model: Model[Body] | None  # None: it hangs on the settings, or there is no body


@cache
def _signature_of(row: _Row) -> _Signature:
    """Return what its function takes. Made once: the models of a site take twenty milliseconds."""
    parameters = list(inspect.signature(row.answer).parameters.values())
    wanted = {each.name: each for each in parameters[1 if row.find is None else 2 :]}
    finders = {
        name: _FOUND[each.annotation] for name, each in wanted.items() if each.annotation in _FOUND
    }
    parts = [name for name in wanted if f"{{{name}}}" in row.path]
    fields = [name for name in wanted if name not in {"body", *finders, *parts}]
    model: Model[Body] | None = None
    if row.model is None and "body" in wanted:
        model = wanted["body"].annotation
    elif fields:
        model = _model_of(row.answer.__name__, [wanted[name] for name in fields])
    elif row.model is None and row.method == "POST" and "request" not in finders:
        model = Empty
    return _Signature(finders, parts, "body" in wanted, fields, model)


def _model_of(name: str, parameters: Iterable[inspect.Parameter]) -> type[Body]:
    """The model of a body whose fields are parameters of a function."""
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in parameters
    }
    return create_model(name, __base__=Body, **fields)


async def _read(request: web.Request, model: Model[Body], *, api: bool) -> Body:
    raw = await request.read()
    if not raw.strip() and (model is Empty or not api):
        raw = b"{}"
    elif api:
        return parse(raw, request.content_type, model)
    return parse(raw, "application/json", model)


def origin(sandbox: "Sandbox", request: web.Request) -> str:
    """Of the addresses that answers name, without a slash at the end."""
    return (sandbox.settings.public_url or str(request.url.origin())).rstrip("/")


# Who is calling, and what they may touch (specification, "Authentication")


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


def connected(sandbox: "Sandbox", request: web.Request) -> Link:
    """The caller's link to the store in the path, whose integration must be active."""
    link = reachable(sandbox, request)
    in_force(link)
    return link


def pushing(sandbox: "Sandbox", request: web.Request) -> Link:
    """As `connected`, and the direction must allow pushes from the POS."""
    link = connected(sandbox, request)
    direction = in_force(link).menu_sync_direction
    if direction not in PUSH_DIRECTIONS:
        raise ServiceError(
            "menu.push_not_allowed",
            f"menu_sync_direction is {direction}; pushes need {' or '.join(PUSH_DIRECTIONS)}",
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
    in_force(order.link)
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


_FOUND: dict[object, Find] = {
    web.Request: lambda _sandbox, request: request,
    Store: any_store,
    Order: any_order,
    Community: any_community,
    ParentOrder: any_parent,
}


def _bearer(request: web.Request) -> str:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise ServiceError("auth.invalid_token", "Send a token: Authorization: Bearer ...")
    return credential.strip()


def in_force(link: Link) -> Integration:
    """The active integration. Raises store.not_integrated."""
    if link.active is None:
        raise ServiceError(
            "store.not_integrated",
            f"Store {link.store.store_id} has no active integration with this app "
            f"({link.integration_status})",
        )
    return link.active
