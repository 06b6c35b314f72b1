"""`/control/stores/...`: what commands ask a running bridge about a store."""

from aiohttp import web

from tillbridge.web.asking import Route, below
from tillbridge.web.ports import Control


def store_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes. A subject of `control` is looked up, and made, when it is asked for."""
    store = below(route, "stores")
    return [
        store("GET", "integration", lambda name, _body: control.integration.show(name)),
        store("GET", "integration/plan", lambda name, _body: control.integration.plan(name)),
        store("POST", "integration/apply", lambda name, _body: control.integration.apply(name)),
        store(
            "POST",
            "integration/rotate-secret",
            lambda name, _body: control.integration.rotate_secret(name),
        ),
        store("POST", "integration/remove", lambda name, _body: control.integration.remove(name)),
        store(
            "POST",
            "integration/reintegrate",
            lambda name, _body: control.integration.reintegrate(name),
        ),
    ]
