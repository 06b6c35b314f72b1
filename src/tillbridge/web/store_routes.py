"""`/control/stores/...`: what commands ask a running bridge about a store."""

from aiohttp import web

from tillbridge.web.asking import Route, below, count, flag, instant, text, texts
from tillbridge.web.ports import Control


def store_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes. A subject of `control` is looked up, and made, when it is asked for."""
    store = below(route, "stores")
    return [
        store("GET", "plan", lambda name, _body: control.menu.plan(name)),
        store("POST", "push", lambda name, body: control.menu.push(name, full=flag(body, "full"))),
        store("POST", "approve", lambda name, _body: control.menu.approve(name)),
        store("POST", "dismiss", lambda name, _body: control.menu.dismiss(name)),
        store("GET", "pushes", lambda name, _body: control.menu.history(name)),
        store(
            "POST",
            "items",
            lambda name, body: control.menu.items(
                name,
                text=text(body, "text"),
                page=count(body.get("page", 1)),
                at_ms=instant(body, "at_ms"),
            ),
        ),
        store("GET", "tables", lambda name, _body: control.tables.list(name)),
        store("GET", "tables/plan", lambda name, _body: control.tables.plan(name)),
        store("POST", "tables/push", lambda name, _body: control.tables.push(name)),
        store("POST", "tables/approve", lambda name, _body: control.tables.approve(name)),
        store(
            "POST",
            "tables/printed",
            lambda name, body: control.tables.printed(name, texts(body, "codes")),
        ),
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
        store("GET", "standing", lambda name, _body: control.store.show(name)),
        store(
            "POST",
            "settings/plan",
            lambda name, body: control.store.plan(name, full=flag(body, "full")),
        ),
        store(
            "POST",
            "settings/push",
            lambda name, body: control.store.push(name, full=flag(body, "full")),
        ),
        store(
            "POST",
            "pause",
            lambda name, body: control.store.pause(
                name,
                by=text(body, "by"),
                reason=text(body, "reason"),
                until_ms=instant(body, "until_ms"),
            ),
        ),
        store("POST", "resume", lambda name, body: control.store.resume(name, by=text(body, "by"))),
        store("POST", "tax", lambda name, _body: control.store.tax(name)),
    ]
