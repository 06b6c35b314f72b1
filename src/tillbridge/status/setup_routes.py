"""`/control/setup...`: what commands ask a running bridge about setting it up."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tillbridge.status.ports import Answer, Control

_Ask = Callable[[web.Request, dict[str, Any]], Awaitable[Answer]]
Route = Callable[[str, str, _Ask], web.RouteDef]


def setup_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes, each made by `route(method, path, ask)`."""
    return [
        route("GET", "setup", lambda _request, _body: control.setup.show()),
        route("POST", "setup/text", lambda _request, _body: control.setup.text()),
        route(
            "POST",
            "setup/written",
            lambda _request, body: control.setup.written(str(body["digest"])),
        ),
    ]
