"""The first page: stores, how to connect, recent orders, and buttons that make things go wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import Communities
from tillbridge.sandbox.faults import FaultRule, Faults
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.requests import reply
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import World
from tillbridge.sandbox.tokens import Tokens
from tillbridge.sandbox.webhooks import Webhooks

#: Faults with a button: label, and the fields of the rule.
PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "unavailable_once": ("Next call: 503", {"action": "error", "status": 503, "count": 1}),
    "limited": (
        "Next 3 calls: 429",
        {"action": "error", "status": 429, "retry_after_s": 2, "count": 3},
    ),
    "gateway_applied": (
        "Next write: 504, but it took effect",
        {
            "action": "error",
            "status": 504,
            "when": "after",
            "method": "WRITE",
            "path": "^/pos/",
            "count": 1,
        },
    ),
    "gateway_lost": (
        "Next call: 504, without effect",
        {"action": "error", "status": 504, "count": 1},
    ),
    "drop": ("Next call: connection dropped", {"action": "drop", "count": 1}),
    "drop_applied": (
        "Next call: dropped after it took effect",
        {"action": "drop", "when": "after", "count": 1},
    ),
    "garbage": ("Next call: garbage instead of JSON", {"action": "garbage", "count": 1}),
    "slow": ("Every call: 3 s late", {"action": "delay", "delay_s": 3.0}),
    "down": ("Every call: 503", {"action": "error", "status": 503}),
}


class Panel:
    """The first page and its buttons."""

    def __init__(
        self,
        world: World,
        tokens: Tokens,
        webhooks: Webhooks,
        faults: Faults,
        clock: Clock,
        pages: Pages,
        communities: Communities,
        settings: SandboxSettings,
    ) -> None:
        self._world = world
        self._communities = communities
        self._tokens = tokens
        self._webhooks = webhooks
        self._faults = faults
        self._clock = clock
        self._pages = pages
        self._settings = settings
        self._actions: dict[str, Callable[[], object]] = {
            "clear": faults.clear,
            "pause": webhooks.pause,
            "resume": webhooks.resume,
            "expire": lambda: tokens.expire("access"),
            "revoke": tokens.revoke,
            "jump_minute": lambda: clock.jump(60),
            "jump_hour": lambda: clock.jump(3600),
            "jump_day": lambda: clock.jump(86400),
            "speed_1": lambda: clock.run_at(1),
            "speed_60": lambda: clock.run_at(60),
        }

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.get("/", self._index),
            web.get("/version", self._show_version),
            web.post("/panel", self._act),
        ]

    async def _index(self, request: web.Request) -> web.Response:
        origin = self._settings.public_url or str(request.url.origin())
        return self._pages.render(
            "index.html",
            base_url=origin.rstrip("/") + self._settings.api_prefix,
            apps=list(self._world.apps.values()),
            merchants=list(self._world.merchants.values()),
            stores=[
                (store, self._world.active_link(store.store_id))
                for store in self._world.stores.values()
            ],
            communities=list(self._communities.all.values()),
            orders=list(reversed(self._world.orders.values()))[:12],
            presets=PRESETS,
            rules=self._faults.in_force(),
            paused=self._webhooks.paused,
            speed=self._clock.speed,
            now_ms=self._clock.now_ms(),
            version=self._version(),
        )

    async def _show_version(self, _request: web.Request) -> web.Response:
        return reply({"version": self._version()})

    async def _act(self, request: web.Request) -> web.Response:
        name = str((await request.post()).get("do", ""))
        if name in PRESETS:
            self._faults.add(FaultRule(**PRESETS[name][1]))
        elif name in self._actions:
            self._actions[name]()
        else:
            return self._pages.message(
                "No such button", "Go back and press another one.", status=400
            )
        raise web.HTTPSeeOther("/#trouble")

    def _version(self) -> str:
        steps = sum(len(order.history) for order in self._world.orders.values())
        links = sum(link.active is not None for link in self._world.links.values())
        revisions = sum(link.catalogue.revision for link in self._world.links.values())
        hits = sum(hit for _, hit in self._faults.in_force())
        members = sum(len(community.store_ids) for community in self._communities.all.values())
        stores = len(self._world.stores)
        rules = len(self._faults.in_force())
        return f"{members}.{stores}.{steps}.{links}.{revisions}.{hits}.{rules}"
