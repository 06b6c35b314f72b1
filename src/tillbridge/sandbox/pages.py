"""HTML pages: templates, money in words, headers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from aiohttp import web
from aiohttp.typedefs import Middleware

from tillbridge.model.money import exponent
from tillbridge.sandbox.middleware import Handler, translated
from tillbridge.sandbox.validation import ServiceError, error_response

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

HERE = Path(__file__).parent
STATIC = HERE / "static"

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
# No form-action: the consent page's form ends at the app's redirect_uri, wherever that is.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src http: https: data:; base-uri 'none'; frame-ancestors 'none'"
)


def money(amount: int, currency: str) -> str:
    """Minor units as a person reads them: 450, "USD" is $4.50."""
    places = exponent(currency)
    number = f"{Decimal(amount).scaleb(-places):,.{places}f}"
    symbol = _SYMBOLS.get(currency)
    return f"{symbol}{number}" if symbol else f"{number} {currency}"


def clock_time(at_ms: int) -> str:
    """An instant for people, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%d %b %H:%M UTC")


@dataclass(frozen=True, slots=True)
class Button:
    """What a person can make happen; `watch` is the sentence that says what to see then, and where.

    `press` may be a coroutine function.
    """

    label: str
    watch: str
    press: Callable[["Sandbox"], object]


@dataclass(frozen=True, slots=True)
class Group:
    """Buttons of the control panel by name, and how what they are about stands now."""

    title: str
    buttons: Mapping[str, Button]
    state: Callable[["Sandbox"], str] = lambda _sandbox: ""


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo that a sandbox plays the service in: the bridge's page, and faults of its own.

    `mend` puts right what these faults have broken.
    """

    bridge_url: str
    groups: Sequence[Group]
    mend: Callable[[], object]


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["money"] = money
    environment.filters["clock_time"] = clock_time
    return environment


class Pages:
    """Renders templates; values are escaped. `demo` is what the sandbox is a part of."""

    def __init__(self) -> None:
        self.demo: Demo | None = None

    def render(self, template: str, status: int = 200, **values: object) -> web.Response:
        """A page of a template."""
        text = _templates().get_template(template).render({"demo": self.demo, **values})
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
