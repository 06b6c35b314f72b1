"""Templates, headers and files to save: everything escaped, nothing undefined.

Templates are made ready when first needed.
"""

import csv
import io
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tillbridge.core.formats import (
    language_name,
    money,
    number,
    percent,
    price,
    short_span,
    size,
    span,
    weekday,
)
from tillbridge.core.i18n import Text, _, languages, ngettext, reader
from tillbridge.status.sentences import opening_of, store_names
from tillbridge.status.views import Level, StatusDocument
from tillbridge.stores.consent import CallbackAnswer

STATIC = Path(__file__).with_name("static")
_INSTALLED = Path(__file__).with_name("guides")
GUIDES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "docs"  # of a clone
PICTURES = GUIDES / "images" / "guide"
# Control characters, marks that override the direction of text, halves of characters.
_UNSEEMLY = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ms|s|min|h|kB|[MG]i?B|Mo)\b|%)")


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


def _together(text: str) -> str:
    """Return a text with its numbers on one line with their units."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _harmless(value: object) -> object:
    if isinstance(value, Text):
        value = _together(str(value))
    # Markup is text that was escaped already.
    return harmless(value) if type(value) is str else value


def _translated(text: str) -> str:
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
        _=_translated,
        ngettext=_counted,
        language=lambda: reader().language,
        languages=languages,
        language_name=language_name,
        number=number,
        size=lambda count: _together(str(size(count))),
        percent=percent,
        price=price,
        span=span,
        short=lambda ms: _together(str(short_span(ms))),
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


# -- CSV for spreadsheets: what a customer typed must not become a formula of the one who opens it
#
# Cells that a spreadsheet would take for a formula get an apostrophe before them, which it shows as
# nothing; a line stays a line. With a byte order mark, since Excel takes CSV for the local code
# page without one.

Cell = str | int | float | None

# ASCII, and the full-width forms that Excel in East Asian locales takes for the same.
_FORMULA = ("=", "+", "-", "@", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_BOM = "\ufeff"


def csv_bytes(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return the whole file; numbers stay numbers, text is always text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow([_cell(head) for head in heads])
    for row in rows:
        writer.writerow([_cell(cell) for cell in row])
    return (_BOM + text.getvalue()).encode("utf-8", "replace")


def csv_file(name: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> web.Response:
    """Return the answer with which a browser saves a table (see `download`)."""
    return download(name, csv_bytes(heads, rows), "text/csv", charset="utf-8")


def download(
    name: str, body: bytes, content_type: str, *, charset: str | None = None
) -> web.Response:
    """Return the answer with which a browser saves `name` (plain ASCII, with its ending)."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type=content_type, charset=charset, headers=headers)


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    # Breaks and other control characters become spaces: a line that starts is a new cell to
    # some, and what is before a sign must not hide it.
    line = "".join(c if c.isprintable() or c == "\u3000" else " " for c in cell).strip()
    bare = line.lstrip("\"'` \u00a0\u3000\ufeff;,")
    return f"'{line}" if bare.startswith(_FORMULA) or line.startswith("'") else line


# -- what stands around every page: the tab's title and icon, the store, the count of problems

_ICONS: Mapping[Level, str] = {
    "ok": "icon.svg",
    "warning": "icon-warning.svg",
    "down": "icon-down.svg",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a page, as `layout.html` shows it.

    `title` is what the tab says before the page's own title: "" while all is well. `count` are the
    problems that nobody handles yet; `level` is the verdict's.
    """

    title: str = ""
    store: str = ""
    count: int = 0
    level: Level = "ok"

    @property
    def icon(self) -> str:
        """The address of the tab's picture."""
        return static_address(_ICONS[self.level])


def frame_of(status: StatusDocument) -> Frame:
    """Return the frame of a page that is shown while the bridge is as `status` says."""
    verdict = status["verdict"]
    count = sum(not each["acknowledged"] for each in status["problems"])
    title, level = "", verdict["level"]
    if verdict["handled"]:
        title, level = _("Being handled"), "ok"
    elif level == "down":
        title = _("({n}) Needs help").format(n=count)
    elif level == "warning":
        title = _("({n}) Needs attention").format(n=count)
    return Frame(title, _stores(status), count, level)


def _stores(status: StatusDocument) -> str:
    stores = status["stores"]
    if len(stores) > 1:
        return ngettext("{n} store", "{n} stores", len(stores)).format(n=len(stores))
    return next(iter(store_names(status).values()), "")
