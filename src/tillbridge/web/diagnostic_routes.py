"""`/control/diagnostics/...`: what commands ask a running bridge about its own health."""

from aiohttp import web

from tillbridge.web.asking import Route
from tillbridge.web.ports import DiagnosticsControl


def diagnostic_routes(diagnostics: DiagnosticsControl, route: Route) -> list[web.RouteDef]:
    """Return the routes, each made by `route(method, path, ask)`."""
    return [
        route("POST", "diagnostics/doctor", lambda _request, _body: diagnostics.begin()),
        route(
            "GET",
            "diagnostics/doctor/{run}",
            lambda request, _body: diagnostics.result(request.match_info["run"]),
        ),
    ]
