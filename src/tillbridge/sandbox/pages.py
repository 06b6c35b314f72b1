"""HTML pages: templates, money in words, and the headers that keep a page to itself."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import jinja2
from aiohttp import web

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
