"""The 86 board, for a tablet in the kitchen: find an item, tap, and it is off sale."""

from tillbridge.core.i18n import _
from tillbridge.core.spans import clock_time
from tillbridge.operations import items
from tillbridge.web.site.book import Done, Filled, Page, Subject, Visit, performs
from tillbridge.web.site.routing import path_of

_ENDS = {"opening": "opening", "hour": "1h", "always": None}


async def _fill(visit: Visit) -> Filled:
    stores = list((await visit.control.status())["stores"])
    store = visit.query.get("store", "")
    if store not in stores:
        store = stores[0]
    text = visit.query.get("q", "")[:60]
    off = await visit.perform("items.off", store=store)
    found = await visit.perform("items.find", store=store, text=text)
    ends = {
        "opening": clock_time(off["ends"]["opening_ms"], visit.now_ms),
        "hour": clock_time(off["ends"]["hour_ms"], visit.now_ms),
    }
    return {
        "stores": stores,
        "store": store,
        "q": text,
        "off": [
            {**each, "whom": items.taken_off_by(each), "reached": items.reached(each)}
            for each in off["items"]
        ],
        "found": found["items"],
        "more": found["count"] - len(found["items"]),
        "ends": ends,
    }


async def _stop(visit: Visit) -> Done:
    store, item = visit.params["store"], visit.params["item"]
    chosen = visit.form.get("until", "")
    if chosen not in _ENDS:
        return _back(Done(_("Say until when."), ok=False), store)
    answer = await visit.perform("item.86", store=store, item=item, until=_ENDS[chosen])
    return _back(Done.of(answer), store)


async def _restore(visit: Visit) -> Done:
    store, item = visit.params["store"], visit.params["item"]
    answer = await visit.perform("item.restore", store=store, item=item)
    return _back(Done.of(answer), store)


def _back(done: Done, store: str) -> Done:
    to = path_of("/86", {}, {"store": store})
    return Done(done.text, ok=done.ok, fix=done.fix, to=to)


SUBJECT = Subject(
    pages=(Page("/86", _("86"), "board.html", _fill),),
    actions=(
        performs(
            "/stores/{store}/items/{item}/86",
            _("Take it off sale"),
            "item.86",
            do=_stop,
            back="/86",
            section="/86",
        ),
        performs(
            "/stores/{store}/items/{item}/restore",
            _("Back on sale"),
            "item.restore",
            do=_restore,
            back="/86",
            section="/86",
        ),
    ),
)
