"""The 86 board: what is sold out, at a touch; and how a kitchen's tablet shows it."""

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import segno
from aiohttp import web

from tillbridge.config.values import is_loopback
from tillbridge.core.formats import clock_time
from tillbridge.core.i18n import N_, _
from tillbridge.model.instant import from_iso, to_iso
from tillbridge.operations import items
from tillbridge.qr_sheets import QUIET_ZONE
from tillbridge.status.sentences import store_names
from tillbridge.web.rendering import static_address
from tillbridge.web.site.book import Done, File, Filled, Page, Visit, link, performs, subject

_ENDS = {"opening": "opening", "hour": "1h", "always": None}
_LONGEST = 60
# Of the surface in the light, as in style.css: what the system paints around the page.
_THEME = "#f6f5f2"


async def _store_of(visit: Visit) -> tuple[str, dict[str, str]]:
    """Return the store that is asked for, else the first; and what people call each of them."""
    names = store_names(await visit.status())
    return visit.one_of("store", names) or next(iter(names)), names


async def _fill(visit: Visit) -> Filled:
    store, names = await _store_of(visit)
    asked = {"q": visit.text("q", _LONGEST), "category": visit.text("category")}
    answer: items.Board = await visit.perform(
        "items.board", store=store, text=asked["q"], category=asked["category"], page=visit.page
    )
    board, ends = answer["board"], answer["ends"]
    return {
        "stores": names,
        "store": store,
        "board": board,
        **asked,
        # What a tap leads back to.
        "kept": {
            "until": visit.one_of("until", _ENDS) or "opening",
            "q": asked["q"],
            "category": board["category"],
            "page": str(visit.page),
        },
        "off": [
            {**each, "whom": items.taken_off_by(each), "reached": items.reached(each)}
            for each in board["off"]
        ],
        "ends": {
            "opening": clock_time(ends["opening_ms"], visit.now_ms),
            "hour": clock_time(ends["hour_ms"], visit.now_ms),
        },
        "theme": _THEME,
    }


async def _stop(visit: Visit) -> Done:
    chosen = visit.form.get("until", "")
    if chosen not in _ENDS and not _is_instant(chosen):
        return Done(_("Choose until when."), ok=False, to=_board_of(visit))
    answer = await visit.perform("item.86", **visit.params, until=_ENDS.get(chosen, chosen))
    return _tapped(visit, answer, "restore")


async def _back_on_sale(visit: Visit) -> Done:
    off: items.OffSaleNow = await visit.perform("items.off", store=visit.params["store"])
    before = next(
        (each for each in off["items"] if each["external_id"] == visit.params["item"]), None
    )
    answer = await visit.perform("item.restore", **visit.params)
    if answer["ok"] is False or before is None:
        return Done.of(answer, to=_board_of(visit))
    return _tapped(visit, answer, "86", until=before["until"] or "always")


def _tapped(visit: Visit, answer: Mapping[str, Any], undo: str, **fields: str) -> Done:
    """Return what came of a tap, and the action that takes it back."""
    return Done(
        str(answer["text"]),
        to=_board_of(visit),
        about=visit.params["item"],
        undo=link(f"/stores/{{store}}/items/{{item}}/{undo}", **visit.params),
        undo_fields={**_view_fields(visit), **fields},
    )


def _is_instant(text: str) -> bool:
    """Return whether this is the end that an item had before somebody restored it."""
    try:
        return to_iso(from_iso(text)) == text
    except (ValueError, OverflowError):
        return False


def _view_fields(visit: Visit) -> dict[str, str]:
    """Return what of the board somebody looks at, from the form that a tap sends."""
    return {name: visit.form.get(name, "")[:100] for name in ("q", "category", "page")}


def _board_of(visit: Visit) -> str:
    until = visit.form.get("until", "")
    return link(
        "/86",
        store=visit.params["store"],
        **_view_fields(visit),
        until=until if until in _ENDS else "",
    )


# -- on a tablet


async def _fill_tablet(visit: Visit) -> Filled:
    store, names = await _store_of(visit)
    host = urlsplit(visit.origin).hostname or ""
    return {
        "stores": names,
        "store": store,
        "address": _address(visit, store, names),
        "is_here_only": is_loopback(host),
        "is_secure": visit.origin.startswith("https:"),
        "signs_in": bool(visit.visitor.name),
    }


def _address(visit: Visit, store: str, names: dict[str, str]) -> str:
    return visit.origin + link("/86", store=store if len(names) > 1 else "")


async def _code(visit: Visit) -> web.Response:
    """Give the QR code of the board's own address."""
    store, names = await _store_of(visit)
    stream = io.BytesIO()
    segno.make_qr(_address(visit, store, names), error="m").save(
        stream, kind="svg", border=QUIET_ZONE, scale=10, light="#fff", xmldecl=False
    )
    return web.Response(body=stream.getvalue(), content_type="image/svg+xml")


async def _manifest(visit: Visit) -> web.Response:
    """Give what an installed board is called, where it starts and how it looks.

    https://www.w3.org/TR/appmanifest/
    """
    store, names = await _store_of(visit)
    start = link("/86", store=store if len(names) > 1 else "")
    manifest = {
        "id": start,
        "name": _("Sold out: {store}").format(store=names[store]),
        "short_name": _("Sold out"),
        "description": _("Mark dishes as sold out, so that guests cannot order them."),
        "start_url": start,
        "scope": "/",
        "display": "standalone",
        "theme_color": _THEME,
        "background_color": _THEME,
        "icons": [
            {"src": static_address("app-192.png"), "sizes": "192x192", "type": "image/png"},
            {"src": static_address("app-512.png"), "sizes": "512x512", "type": "image/png"},
            {
                "src": static_address("app-maskable-512.png"),
                "sizes": "512x512",
                "type": "image/png",
                "purpose": "maskable",
            },
        ],
    }
    return web.json_response(manifest, content_type="application/manifest+json")


SUBJECT = subject(
    Page("/86", N_("Sold out"), "board.html", _fill),
    Page("/86/tablet", N_("The board on a tablet"), "board_tablet.html", _fill_tablet, live=False),
    File("/86/code.svg", _code),
    File("/86/app.webmanifest", _manifest),
    performs("/stores/{store}/items/{item}/86", N_("Mark as sold out"), "item.86", do=_stop),
    performs(
        "/stores/{store}/items/{item}/restore", N_("Back on sale"), "item.restore", do=_back_on_sale
    ),
    home="/86",
)
