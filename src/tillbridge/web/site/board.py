"""The 86 board, for a tablet in the kitchen: find an item, tap, and it is off sale."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.web.item_words import by_whom, reached
from tillbridge.web.roles import Role
from tillbridge.web.site.book import Action, Done, Filled, Page, Subject, Visit
from tillbridge.web.site.routing import path_of
from tillbridge.web.words import clock_time

_SHOWN = 40


async def _fill(visit: Visit) -> Filled:
    stores = list((await visit.control.status())["stores"])
    store = visit.query.get("store", "")
    if store not in stores:
        store = stores[0]
    text = visit.query.get("q", "")[:60]
    off = await visit.control.items.off(store)
    found = await visit.control.items.find(store, text, limit=_SHOWN)
    ends = {
        "opening": clock_time(off["ends"]["opening_ms"], visit.now_ms),
        "hour": clock_time(off["ends"]["hour_ms"], visit.now_ms),
    }
    return {
        "stores": stores,
        "store": store,
        "q": text,
        "off": [{**each, "whom": by_whom(each), "reached": reached(each)} for each in off["items"]],
        "found": found["items"],
        "more": found["count"] - len(found["items"]),
        "ends": ends,
    }


async def _stop(visit: Visit) -> Done:
    store, item = visit.params["store"], visit.params["item"]
    chosen = visit.form.get("until", "")
    until = None
    if chosen in {"opening", "hour"}:
        ends: Mapping[str, Any] = (await visit.control.items.off(store))["ends"]
        until = int(ends[f"{chosen}_ms"])
    elif chosen != "always":
        return _back(Done(_("Say until when."), ok=False), store)
    answer = await visit.control.items.take_off(store, item, until_ms=until, by=visit.visitor.who)
    return _back(Done.of(answer), store)


async def _restore(visit: Visit) -> Done:
    store, item = visit.params["store"], visit.params["item"]
    answer = await visit.control.items.restore(store, item)
    return _back(Done.of(answer), store)


def _back(done: Done, store: str) -> Done:
    to = path_of("/86", {}, {"store": store})
    return Done(done.text, ok=done.ok, fix=done.fix, to=to)


SUBJECT = Subject(
    pages=(Page("/86", _("86"), "board.html", _fill),),
    actions=(
        Action(
            "/stores/{store}/items/{item}/86",
            _("Take it off sale"),
            "item.86",
            Role.STAFF,
            _stop,
            back="/86",
            section="/86",
        ),
        Action(
            "/stores/{store}/items/{item}/restore",
            _("Back on sale"),
            "item.restore",
            Role.STAFF,
            _restore,
            back="/86",
            section="/86",
        ),
    ),
)
