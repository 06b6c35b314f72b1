"""Templates and headers: everything escaped, nothing undefined, made ready when first needed."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.spans import span

if TYPE_CHECKING:
    from jinja2 import Environment, Template
from collections.abc import Awaitable, Callable, Mapping
from html import escape

from tillbridge.stores.consent import CallbackAnswer

STATIC = Path(__file__).with_name("static")
# Control characters, marks that override the direction of text, halves of characters.
_UNSEEMLY = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@lru_cache
def template(name: str) -> "Template":
    """Return a template of `templates/`."""
    return _environment().get_template(name)


@lru_cache(maxsize=1)
def static_version() -> str:
    """Return what changes when a static file does, so that browsers may keep the old ones."""
    whole = 0
    for path in sorted(STATIC.iterdir()):
        whole = crc32(path.read_bytes(), whole)
    return f"{whole:08x}"


def static_address(name: str) -> str:
    """Return where a browser finds a file of `static/`."""
    return f"/static/{name}?{static_version()}"


def harmless(text: str) -> str:
    """Take out what could turn the text around it, end a line's meaning, or not be sent at all.

    Escaping comes after this, and is done whatever this does.
    """
    return text if text.isprintable() else _UNSEEMLY.sub("\ufffd", text)


def _harmless(value: object) -> object:
    # Markup is text that was escaped already.
    return harmless(value) if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    # Two megabytes that a bridge whose page nobody opens need not carry.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 -- see above

    environment = Environment(
        loader=PackageLoader("tillbridge.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_=_, ngettext=ngettext, span=span, static=static_address)
    return environment


# Our own style sheet, script and pictures, and nothing inline: what an export or an order says can
# run nothing, load nothing and send nothing anywhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
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


# `templates/base.html` without Jinja: a bridge that was connected should not carry that for it.
_CALLBACK = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{heading} · tillbridge</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
<link rel="stylesheet" href="{style}">
</head>
<body>
<main class="inner narrow">
  <section class="verdict {level}" role="status">
    <h1>{heading}</h1>
    {paragraphs}
  </section>
  <p class="quiet">{close}</p>
</main>
</body>
</html>
"""


# Takes the query of a request to redirect_uri (code and state, or error).
OnCallback = Callable[[Mapping[str, str]], Awaitable[CallbackAnswer]]


def callback_page(answer: CallbackAnswer) -> str:
    """Return what the merchant sees after consent."""
    told = [answer.text, *([answer.fix] if answer.fix else [])]
    return _CALLBACK.format(
        heading=_escaped(_("Connected") if answer.ok else _("Not connected")),
        icon=static_address("icon.svg"),
        style=static_address("style.css"),
        level="ok" if answer.ok else "down",
        paragraphs="\n    ".join(f"<p>{_escaped(text)}</p>" for text in told),
        close=_escaped(_("You can close this page.")),
    )


def _escaped(text: str) -> str:
    return escape(harmless(text))
