"""Tables: the floor plan as the service has it, and the sheet of QR codes to print."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.qr_sheets import Paper, QrTable, make_sheet, sheet_name
from tillbridge.web.rendering import download
from tillbridge.web.site.book import Done, File, Filled, Page, Question, Visit, performs, subject

PAPERS = (("a4", "A4"), ("letter", "Letter"))
_PER_PAGE = (2, 4, 6, 8, 12, 20)
_USUAL_PER_PAGE = 6
_MOST_LINES = 40


async def _fill(visit: Visit) -> Filled:
    stores = []
    for name, part in (await visit.status())["stores"].items():
        found = await visit.perform("tables.list", store=name)
        zones = sorted({each["zone"] for each in found["tables"] if each["zone"]})
        adapter = part["pos"]["adapter"]
        more = {"name": name, "zones": zones, "status": part["tables"], "adapter": adapter}
        is_asked = not (found["tables"] or found["told"]) and visit.visitor.role >= Role.TECHNICIAN
        stores.append({**found, **more, "may_read": is_asked and await _may_read(visit, adapter)})
    return {"stores": stores, "papers": PAPERS, "per_page": _PER_PAGE, "usual": _USUAL_PER_PAGE}


async def _may_read(visit: Visit, adapter: str) -> bool:
    """Return whether an option of the till says where its tables are."""
    till = (await visit.perform("setup.show", adapter=adapter))["till"]
    return any(each["name"] == "tables" for each in till["fields"])


async def _sheet(visit: Visit) -> web.Response:
    """Give the printable sheet; it has a style of its own, so it is a file to save and open."""
    store = visit.params["store"]
    answer = await visit.perform("tables.list", store=store)
    zone = visit.query.get("zone", "")
    chosen = _with_codes(answer["tables"], zone)
    if not chosen:
        raise BridgeError(
            _("There are no QR codes to print for {store}.").format(store=store),
            fix=_("Update the tables first, then try again."),
        )
    sheet = make_sheet(
        [
            QrTable(each["external_id"], each["name"], each["zone"], each["qr_url"])
            for each in chosen
        ],
        answer["title"],
        size=Paper.LETTER if visit.query.get("paper") == Paper.LETTER else Paper.A4,
        per_page=_chosen_number(visit.query.get("per_page", "")),
    )
    name = sheet_name(store, zone or None)
    return download(name, sheet.html.encode(), "text/html", charset="utf-8")


def _chosen_number(text: str) -> int:
    return int(text) if text.isdecimal() and int(text) in _PER_PAGE else _USUAL_PER_PAGE


def _with_codes(tables: Sequence[Mapping[str, Any]], zone: str) -> list[Mapping[str, Any]]:
    return [each for each in tables if each["qr_url"] and zone in {"", each["zone"]}]


async def _ask_printed(visit: Visit) -> Question:
    answer = await visit.perform("tables.list", store=visit.params["store"])
    count = len(_with_codes(answer["tables"], ""))
    return Question(
        ngettext(
            "The code of {n} table will count as printed.",
            "The codes of {n} tables will count as printed.",
            count,
        ).format(n=count),
        _("The codes are on the tables"),
        points=(_("You are warned if the ordering service replaces one of them."),),
    )


async def _printed(visit: Visit) -> Done:
    store = visit.params["store"]
    answer = await visit.perform("tables.list", store=store)
    codes = {each["external_id"]: each["code"] for each in _with_codes(answer["tables"], "")}
    return Done.of(await visit.perform("tables.printed", store=store, codes=codes))


async def _ask_approve(visit: Visit) -> Question:
    plan = await visit.perform("tables.plan", store=visit.params["store"])
    return Question(
        _("Publish this floor plan to the storefront of {store}?").format(
            store=await visit.store_name()
        ),
        _("Publish this change"),
        points=[*plan.get("held", ()), *plan.get("lines", ())][:_MOST_LINES],
    )


SUBJECT = subject(
    Page("/tables", _("Tables"), "tables.html", _fill),
    File("/stores/{store}/tables/sheet", _sheet),
    performs(
        "/stores/{store}/tables/approve", _("Review change"), "tables.approve", ask=_ask_approve
    ),
    performs("/stores/{store}/tables/push", _("Update the tables now"), "tables.push"),
    performs(
        "/stores/{store}/tables/printed",
        _("I have printed them"),
        "tables.printed",
        do=_printed,
        ask=_ask_printed,
    ),
    home="/tables",
)
