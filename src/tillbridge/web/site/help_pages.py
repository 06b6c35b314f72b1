"""Help: the guides, an index of the problems by what one sees, and a page for each."""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256

from aiohttp import web

from tillbridge.core.actor import Role
from tillbridge.core.i18n import N_
from tillbridge.core.problems import PROBLEMS, index, title_of
from tillbridge.status.views import ProblemView
from tillbridge.web.rendering import CONTENT_SECURITY_POLICY, GUIDES
from tillbridge.web.site.book import File, Fill, Filled, Page, Visit, subject


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
    from tillbridge.web.guides import chapter_of  # noqa: PLC0415 -- (as below)

    # A store's name is in commands that somebody may type: only one that there is.
    status = await visit.status()
    store = visit.one_of("store", status["stores"])
    code = visit.params["code"]
    found = await visit.perform("problems.show", code=code, store=store)
    return {"help": found, "chapter": await asyncio.to_thread(chapter_of, code)}


def _filler(name: str) -> Fill:
    async def fill(_visit: Visit) -> Filled:
        # Seldom read, and 35 ms at each start.
        from tillbridge.web.guides import guide  # noqa: PLC0415 -- (as above)

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
