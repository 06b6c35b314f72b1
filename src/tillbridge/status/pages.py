"""The technician's page: server-rendered, everything escaped, no script."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.i18n import _, ngettext
from tillbridge.model.instant import from_iso
from tillbridge.status.ports import CallbackAnswer
from tillbridge.status.words import span

if TYPE_CHECKING:
    from jinja2 import Environment, Template

STATIC = Path(__file__).with_name("static")
# Nothing but our own style sheet: what an export or an order says can run nothing.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def status_page(document: Mapping[str, Any], now_ms: int) -> str:
    """Return the page of a status document."""
    return _template("page.html").render(
        **document, ago=lambda iso: span((now_ms - from_iso(iso)) / 1000), now=_clock(now_ms)
    )


def callback_page(answer: CallbackAnswer) -> str:
    """Return what the merchant sees after consent."""
    return _template("callback.html").render(answer=answer)


def _clock(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().strftime("%H:%M:%S")


@lru_cache
def _template(name: str) -> "Template":
    return _environment().get_template(name)


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    # Two megabytes that a bridge whose page nobody opens need not carry.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 -- see above

    environment = Environment(
        loader=PackageLoader("tillbridge.status"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_=_, ngettext=ngettext, span=span)
    return environment
