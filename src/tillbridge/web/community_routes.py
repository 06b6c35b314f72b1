"""`/control/communities/...`: what commands ask a running bridge about communities."""

from aiohttp import web

from tillbridge.web.asking import Route, below, count, flag, instant, text
from tillbridge.web.ports import Control


def community_routes(control: Control, route: Route) -> list[web.RouteDef]:
    """Return the routes.

    `control.communities` is looked up when it is asked for: most bridges are in no community.
    """
    community = below(route, "communities")
    return [
        community("GET", "items", lambda name, _body: control.communities.items(name)),
        community(
            "POST",
            "sync",
            lambda name, body: control.communities.sync(name, full=flag(body, "full")),
        ),
        community(
            "POST",
            "86",
            lambda name, body: control.communities.item_86(
                name,
                text(body, "item"),
                until_ms=instant(body, "until_ms"),
                by=text(body, "by"),
            ),
        ),
        community(
            "POST",
            "restore",
            lambda name, body: control.communities.item_restore(
                name, text(body, "item"), by=text(body, "by")
            ),
        ),
        community(
            "POST",
            "orders",
            lambda name, body: control.communities.orders(name, count(body["limit"])),
        ),
        community("GET", "hours", lambda name, _body: control.communities.hours(name)),
        community("POST", "hours", lambda name, _body: control.communities.push_hours(name)),
        community(
            "POST", "webhook/test", lambda name, _body: control.communities.webhook_test(name)
        ),
        community(
            "GET",
            "webhook/deliveries",
            lambda name, _body: control.communities.webhook_deliveries(name),
        ),
        community(
            "POST", "webhook/remake", lambda name, _body: control.communities.webhook_remake(name)
        ),
    ]
