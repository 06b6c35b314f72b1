"""`/control/setup...`: what commands ask a running bridge about setting it up."""

from aiohttp import web

from tillbridge.web.asking import Route, text
from tillbridge.web.ports import Control


def setup_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes, each made by `route(method, path, ask)`."""
    return [
        route("GET", "setup", lambda _request, _body: control.setup.show()),
        route("POST", "setup/text", lambda _request, _body: control.setup.text()),
        route(
            "POST",
            "setup/written",
            lambda _request, body: control.setup.written(text(body, "digest")),
        ),
    ]
