"""`/control/communities/...`: what commands ask a running bridge about communities."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tillbridge.status.ports import Answer, Control

_Ask = Callable[[web.Request, dict[str, Any]], Awaitable[Answer]]
Route = Callable[[str, str, _Ask], web.RouteDef]


def community_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes, each made by `route(method, path, ask)`.

    `control.communities` is looked up when it is asked for: most bridges are in no community.
    """
    root = "communities/{name}"
    return [
        route(
            "GET", f"{root}/items", lambda request, _body: control.communities.items(_name(request))
        ),
        route(
            "POST",
            f"{root}/sync",
            lambda request, body: control.communities.sync(
                _name(request), full=body.get("full") is True
            ),
        ),
        route(
            "POST",
            f"{root}/86",
            lambda request, body: control.communities.item_86(
                _name(request),
                str(body["item"]),
                until_ms=None if body.get("until_ms") is None else int(body["until_ms"]),
                by=str(body["by"]),
            ),
        ),
        route(
            "POST",
            f"{root}/restore",
            lambda request, body: control.communities.item_restore(
                _name(request), str(body["item"]), by=str(body["by"])
            ),
        ),
        route(
            "POST",
            f"{root}/orders",
            lambda request, body: control.communities.orders(_name(request), int(body["limit"])),
        ),
        route(
            "GET",
            f"{root}/hours",
            lambda request, _body: control.communities.hours(_name(request)),
        ),
        route(
            "POST",
            f"{root}/hours",
            lambda request, _body: control.communities.push_hours(_name(request)),
        ),
        route(
            "POST",
            f"{root}/webhook/test",
            lambda request, _body: control.communities.webhook_test(_name(request)),
        ),
        route(
            "GET",
            f"{root}/webhook/deliveries",
            lambda request, _body: control.communities.webhook_deliveries(_name(request)),
        ),
        route(
            "POST",
            f"{root}/webhook/remake",
            lambda request, _body: control.communities.webhook_remake(_name(request)),
        ),
    ]


def _name(request: web.Request) -> str:
    return request.match_info["name"]
