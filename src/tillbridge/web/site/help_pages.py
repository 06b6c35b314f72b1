"""Help: the guides, an index of the problems by what one sees, and a page for each."""

import asyncio
import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from aiohttp import web
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from tillbridge.core.actor import Role
from tillbridge.core.i18n import N_
from tillbridge.core.problems import PROBLEMS, anchor, index, title_of
from tillbridge.status.views import ProblemView
from tillbridge.web.rendering import CONTENT_SECURITY_POLICY, GUIDES, PICTURES, static_address
from tillbridge.web.site.book import File, Fill, Filled, Page, Visit, subject

# -- The guides of docs/ for the page: made from their Markdown, with links that lead on here.


NAMES = ("restaurant", "technician")
SHEET = "in-the-shop.html"  # for staff, to be printed
# Where the page has what a document is about. Other documents are named, without a link.
_PLACES: Mapping[str, str] = MappingProxyType(
    {
        **{f"{name}.md": f"/help/{name}" for name in NAMES},
        SHEET: f"/help/{SHEET}",
        "problems.md": "/help",
        "alerts.md": "/settings/alerts",
        "reach.md": "/reach",
    }
)
_CODES = MappingProxyType({anchor(code): code for code in PROBLEMS})
_LISTED = "Problems: "  # begins the paragraph of a chapter that names the problems it is about
_OWN = "http://127.0.0.1:8089"  # the page itself, as the guides write it


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a guide; one of `level` 3 is part of the last one of level 2 before it.

    `codes` are the problems that it is about.
    """

    title: str
    anchor: str
    level: int
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guide:
    """A guide of `NAMES`; `html` is what comes after its title."""

    name: str
    title: str
    chapters: tuple[Chapter, ...]
    html: Markup


@lru_cache
def guide(name: str) -> Guide:
    """Return a guide of `NAMES`."""
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
    _open, title, _close, *tokens = parser.parse((GUIDES / f"{name}.md").read_text("utf-8"))
    chapters = tuple(_chapters(tokens))
    for token in tokens:
        _lead_on(token.children or ())
    html = parser.renderer.render(tokens, parser.options, {})
    return Guide(name, title.content, chapters, Markup(html))  # noqa: S704 -- made of our own file


def chapter_of(code: str) -> Chapter | None:
    """Return the technician's chapter about a problem."""
    return next((each for each in guide("technician").chapters if code in each.codes), None)


class _Renderer(RendererHTML):
    """Makes headings that may be linked to, and the page's own pieces of code and tables."""

    def heading_open(self, tokens: Sequence[Token], index: int, *_rest: Any) -> str:  # noqa: ANN401 -- the library's
        return f'<{tokens[index].tag} id="{_anchor(tokens[index + 1].content)}">'

    def fence(self, tokens: Sequence[Token], index: int, *_rest: Any) -> str:  # noqa: ANN401 -- (as above)
        return f'<pre class="copy"><code>{escape(tokens[index].content)}</code></pre>\n'

    def image(self, tokens: Sequence[Token], index: int, *_rest: Any) -> str:  # noqa: ANN401 -- (as above)
        """Return a picture, and the one for dark screens where there is one beside it."""
        name = str(tokens[index].attrs["src"]).rpartition("/")[2]
        dark = name.replace(".png", "-dark.png")
        width, height = struct.unpack(">II", (PICTURES / name).read_bytes()[16:24])
        source = (
            f'<source media="(prefers-color-scheme: dark)" srcset="{static_address(dark)}">'
            if (PICTURES / dark).is_file()
            else ""
        )
        return (
            f'<picture>{source}<img src="{static_address(name)}" width="{width}" height="{height}" '
            f'loading="lazy" alt="{escape(tokens[index].content)}"></picture>'
        )


def _chapters(tokens: Sequence[Token]) -> Iterator[Chapter]:
    chapter: Chapter | None = None
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            if chapter is not None:
                yield chapter
            level = int(before.tag[1:])
            chapter = Chapter(token.content, _anchor(token.content), level, ())
        elif chapter is not None and token.content.startswith(_LISTED):
            links = [str(each.attrs["href"]) for each in token.children or () if each.attrs]
            codes = tuple(_CODES[each.removeprefix("problems.md#")] for each in links)
            chapter = replace(chapter, codes=codes)
    if chapter is not None:
        yield chapter


def _lead_on(tokens: Sequence[Token]) -> None:
    """Let links lead to what the page has; behind one that cannot, say which document it names."""
    unknown = ""
    for token in tokens:
        if token.type == "link_open":
            href = str(token.attrs["href"])
            token.attrs["href"] = _address(href)
            if not token.attrs["href"]:
                unknown = f" (docs/{href.partition('#')[0]})"
                token.type = "text"
        elif token.type == "link_close" and unknown:
            token.type, token.content, unknown = "text", unknown, ""


def _address(href: str) -> str:
    """Return where a link of a guide leads on the page; "" for what the page has not."""
    if href.startswith(_OWN):
        return href.removeprefix(_OWN) or "/"
    document, mark, heading = href.partition("#")
    if document in ("", "https:") or document.startswith("https:"):
        return href
    if document == "problems.md" and heading:
        return f"/help/{_CODES[heading]}"
    place = _PLACES.get(document, "")
    return f"{place}{mark}{heading}" if document[:-3] in NAMES else place


def _anchor(heading: str) -> str:
    """Return the end of the address of a heading, as GitHub names it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


async def _fill_index(visit: Visit) -> Filled:
    if visit.visitor.role is Role.ANYBODY:
        return {"groups": [], "open": [], "is_stranger": True}
    found: list[ProblemView] = (await visit.perform("problems.list"))["problems"]
    open_codes = dict.fromkeys(str(each["code"]) for each in found)
    return {
        "groups": index(),
        "open": [(code, title_of(code)) for code in open_codes if code in PROBLEMS],
        "is_stranger": False,
    }


async def _fill(visit: Visit) -> Filled:
    # A store's name is in commands that somebody may type: only one that there is.
    status = await visit.status()
    store = visit.one_of("store", status["stores"])
    code = visit.params["code"]
    found = await visit.perform("problems.show", code=code, store=store)
    return {"help": found, "chapter": await asyncio.to_thread(chapter_of, code)}


def _filler(name: str) -> Fill:
    async def fill(_visit: Visit) -> Filled:
        return {"guide": await asyncio.to_thread(guide, name)}

    return fill


async def _give_sheet(_visit: Visit) -> web.Response:
    """Give the sheet for staff as it is, with its own style and nothing else inline."""
    text = (GUIDES / "in-the-shop.html").read_text("utf-8")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(sha256(style[1].encode() if style else b"").digest()).decode()
    policy = CONTENT_SECURITY_POLICY.replace("style-src 'self'", f"style-src 'sha256-{digest}'")
    return web.Response(
        text=text, content_type="text/html", headers={"Content-Security-Policy": policy}
    )


def _guide(name: str, title: str) -> Page:
    # For anybody: they hold nothing of this restaurant, and who cannot sign in needs them most.
    path = f"/help/{name}"
    return Page(path, title, "guide.html", _filler(name), role=Role.ANYBODY, live=False)


SUBJECT = subject(
    Page("/help", N_("Help"), "help_index.html", _fill_index, role=Role.ANYBODY, live=False),
    _guide("restaurant", N_("From nothing to the first order")),
    _guide("technician", N_("When something does not work")),
    File("/help/in-the-shop.html", _give_sheet, role=Role.ANYBODY),
    Page("/help/{code}", N_("Help"), "help.html", _fill, live=False),
    home="/help",
)
