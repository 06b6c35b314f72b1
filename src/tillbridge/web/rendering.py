"""Templates: everything escaped, nothing undefined, made ready when first needed."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.spans import span

if TYPE_CHECKING:
    from jinja2 import Environment, Template

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
