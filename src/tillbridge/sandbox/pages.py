"""HTML pages: templates, money in words, headers; and the first page with its buttons."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from aiohttp import web
from aiohttp.typedefs import Middleware

from tillbridge.sandbox.endpoints import Endpoints, origin
from tillbridge.sandbox.middleware import Armed, FaultRule, Handler, translated
from tillbridge.sandbox.validation import Json, ServiceError, error_response

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

HERE = Path(__file__).parent
STATIC = HERE / "static"

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_NO_DECIMALS = frozenset(
    {"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "XAF", "XOF"}
)
_THREE_DECIMALS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})

# No form-action: the consent page's form ends at the app's redirect_uri, wherever that is.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src http: https: data:; base-uri 'none'; frame-ancestors 'none'"
)


def money(amount: int, currency: str) -> str:
    """Minor units as a person reads them: 450, "USD" is $4.50."""
    places = 0 if currency in _NO_DECIMALS else 3 if currency in _THREE_DECIMALS else 2
    number = f"{Decimal(amount).scaleb(-places):,.{places}f}"
    symbol = _SYMBOLS.get(currency)
    return f"{symbol}{number}" if symbol else f"{number} {currency}"


def clock_time(at_ms: int) -> str:
    """An instant for people, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%d %b %H:%M UTC")


class Pages:
    """Renders templates; values are escaped."""

    def __init__(self) -> None:
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["money"] = money
        self._templates.filters["clock_time"] = clock_time

    def render(self, template: str, status: int = 200, **values: object) -> web.Response:
        """A page of a template."""
        text = self._templates.get_template(template).render(values)
        headers = {
            "Content-Security-Policy": _POLICY,
            "Cache-Control": "no-store",
            # Not no-referrer: that would hide the Origin of this site's own forms too.
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(text=text, status=status, content_type="text/html", headers=headers)

    def message(self, title: str, text: str, *, back: str = "/", status: int = 200) -> web.Response:
        """A page that says one thing, with a way back."""
        return self.render("message.html", status, title=title, text=text, back=back)


def site_middleware(pages: Pages, api_prefix: str) -> Middleware:
    """For what is not the API: the control API answers with its error envelope, pages with a page.

    Other sites' pages must not push this one's buttons.
    """

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(api_prefix + "/"):
            return await handler(request)
        own = (None, f"http://{request.host}", f"https://{request.host}")
        if request.method not in ("GET", "HEAD") and request.headers.get("Origin") not in own:
            text = "Origin: must be this site"
            return error_response(ServiceError("request.validation", text, status=403))
        control = request.path.startswith("/_control/")
        try:
            return await handler(request)
        except ServiceError as error:
            if control:
                return error_response(error)
            return pages.message("That did not work", f"{error.message}.", status=error.status)
        except web.HTTPException as error:
            if control:
                return error_response(translated(error, request))
            if error.status != 404:
                raise
            return pages.message("Nothing here", "There is no such page.", status=404)

    return answered


async def read_form(request: web.Request) -> dict[str, str]:
    """The last value of each text field; a choice among add-ons arrives as one field each."""
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


# The first page: stores, how to connect, recent orders, and buttons that make things go wrong

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


INDEX_ENDPOINTS = Endpoints()
_serves = INDEX_ENDPOINTS.serves


@_serves("GET", "/")
def _index(sandbox: "Sandbox", request: web.Request) -> web.Response:
    world = sandbox.world
    return sandbox.pages.render(
        "index.html",
        base_url=origin(sandbox, request) + sandbox.settings.api_prefix,
        apps=list(world.apps.values()),
        merchants=list(world.merchants.values()),
        stores=[(store, world.active_link(store.store_id)) for store in world.stores.values()],
        communities=list(world.communities.values()),
        orders=list(reversed(world.orders.values()))[:12],
        presets=PRESETS,
        rules=sandbox.traffic.rules,
        paused=sandbox.webhooks.paused,
        speed=sandbox.clock.speed,
        now_ms=sandbox.clock.now_ms(),
        version=_version(sandbox),
    )


@_serves("GET", "/version")
def _show_version(
    sandbox: "Sandbox",
) -> Json:
    return {"version": _version(sandbox)}


@_serves("POST", "/panel")
async def _press(sandbox: "Sandbox", request: web.Request) -> web.Response:
    name = (await read_form(request)).get("do", "")
    actions: dict[str, Callable[[], object]] = {
        "clear": sandbox.traffic.clear_faults,
        "pause": sandbox.webhooks.pause,
        "resume": sandbox.webhooks.resume,
        "expire": lambda: sandbox.tokens.expire("access"),
        "revoke": sandbox.tokens.revoke,
        "jump_minute": lambda: sandbox.clock.jump(60),
        "jump_hour": lambda: sandbox.clock.jump(3600),
        "jump_day": lambda: sandbox.clock.jump(86400),
        "speed_1": lambda: sandbox.clock.run_at(1),
        "speed_60": lambda: sandbox.clock.run_at(60),
    }
    if name in PRESETS:
        sandbox.traffic.rules.append(Armed(FaultRule(**PRESETS[name][1])))
    elif name in actions:
        actions[name]()
    else:
        return sandbox.pages.message("No such button", "Go back and press another one.", status=400)
    raise web.HTTPSeeOther("/#trouble")


def _version(sandbox: "Sandbox") -> str:
    """Changes with everything that the first page shows."""
    world, rules = sandbox.world, sandbox.traffic.rules
    counts = (
        sum(len(community.store_ids) for community in world.communities.values()),
        len(world.stores),
        sum(len(order.history) for order in world.orders.values()),
        sum(link.active is not None for link in world.links.values()),
        sum(link.catalogue.revision for link in world.links.values()),
        sum(each.hits for each in rules),
        len(rules),
    )
    return ".".join(map(str, counts))
