"""Templates and headers: everything escaped, nothing undefined, made ready when first needed."""

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tillbridge.core.formats import language_name, money, number, percent, price, size, weekday
from tillbridge.core.i18n import Text, _, languages, ngettext, reader
from tillbridge.core.spans import short_span, span
from tillbridge.status.sentences import opening_of
from tillbridge.stores.consent import CallbackAnswer

STATIC = Path(__file__).with_name("static")
_INSTALLED = Path(__file__).with_name("guides")
GUIDES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "docs"  # of a clone
PICTURES = GUIDES / "images" / "guide"
# Control characters, marks that override the direction of text, halves of characters.
_UNSEEMLY = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@lru_cache
def template(name: str) -> Template:
    """Return a template of `templates/`."""
    return _environment().get_template(name)


@lru_cache(maxsize=1)
def static_version() -> str:
    """Return what changes when a static file does, so that browsers may keep the old ones."""
    whole = 0
    for path in sorted((*STATIC.iterdir(), *PICTURES.glob("*.png"))):
        whole = crc32(path.read_bytes(), whole)
    return f"{whole:08x}"


def static_address(name: str) -> str:
    """Return where a browser finds a file of `static/`, or a picture of the guides."""
    return f"/static/{name}?{static_version()}"


def harmless(text: str) -> str:
    """Take out what could turn the text around it, end a line's meaning, or not be sent at all.

    Escaping comes after this, and is done whatever this does.
    """
    return text if text.isprintable() else _UNSEEMLY.sub("\ufffd", text)


def _harmless(value: object) -> object:
    if isinstance(value, Text):
        value = str(value)
    # Markup is text that was escaped already.
    return harmless(value) if type(value) is str else value


def _said(text: str) -> str:
    """Return a text of a template in the reader's language."""
    return str(_(text))


def _counted(one: str, many: str, count: int) -> str:
    return str(ngettext(one, many, count))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tillbridge.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        _=_said,
        ngettext=_counted,
        language=lambda: reader().language,
        languages=languages,
        language_name=language_name,
        number=number,
        size=size,
        percent=percent,
        price=price,
        span=span,
        short=short_span,
        money=money,
        opening_of=opening_of,
        weekday=weekday,
        static=static_address,
        demo=_demo,
    )
    return environment


def _demo() -> str:
    """Return where the service of the demo has its pages; "" in a bridge that is no demo's."""
    return os.environ.get("TILLBRIDGE_DEMO", "").rstrip("/")


# Our own style sheet, script and pictures, and nothing inline: what an export or an order says can
# run nothing, load nothing and send nothing anywhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def policy_with_pictures(hosts: Iterable[str]) -> str:
    """Return the policy of a page whose visitor asked for pictures of these hosts (https)."""
    sources = " ".join(f"https://{host}" for host in hosts)
    return CONTENT_SECURITY_POLICY.replace("img-src 'self'", f"img-src 'self' {sources}")


HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: with that a browser sends `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Server": "tillbridge",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


# Takes the query of a request to redirect_uri (code and state, or error).
OnCallback = Callable[[Mapping[str, str]], Awaitable[CallbackAnswer]]


def callback_page(answer: CallbackAnswer) -> str:
    """Return what the merchant sees after consent."""
    return template("callback.html").render(answer=answer)
