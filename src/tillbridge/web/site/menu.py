"""The menu: the till's, the storefront's, what waits for a person; and the 86 board."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.core.spans import clock_time, local_second
from tillbridge.menu.describe import counted
from tillbridge.model.instant import from_iso
from tillbridge.operations import items
from tillbridge.web.push_words import how_long, told, what
from tillbridge.web.site.book import Done, Filled, Page, Question, Subject, Visit, path_of, performs

_LATEST = 8
_READ_AT_ONCE = 24
_MOST_LINES = 500
_KINDS = {"success": "good", "running": "", "partial": "warn", "failed": "bad", "lost": "warn"}


async def _fill(visit: Visit) -> Filled:
    stores = []
    for name in (await visit.perform("status"))["stores"]:
        shown = await visit.perform("menu.show", store=name)
        history = await visit.perform("menu.history", store=name)
        hold = shown["hold"]
        stores.append(
            {
                **shown,
                "name": name,
                "hold": None if hold is None else _understood(hold),
                "pushes": [_worded(each) for each in history["pushes"][:_LATEST]],
            }
        )
    return {"stores": stores}


async def _fill_items(visit: Visit) -> Filled:
    store, asked_at = visit.params["store"], visit.query.get("at", "")
    at_ms = _moment(asked_at)
    found = await visit.perform(
        "menu.items",
        store=store,
        text=visit.query.get("q", "")[:60],
        page=_number(visit.query.get("page", "")),
        at=None if at_ms is None else asked_at,
    )
    return {
        **found,
        "store": store,
        "q": visit.query.get("q", "")[:60],
        "asked_at": asked_at if at_ms is not None else "",
        "local_at": "" if at_ms is None else local_second(at_ms)[:16].replace(" ", "T"),
        "wrong_at": bool(asked_at) and at_ms is None,
    }


async def _fill_difference(visit: Visit) -> Filled:
    store = visit.params["store"]
    plan = await visit.perform("menu.plan", store=store)
    lines = list(plan.get("lines", ()))
    return {
        "store": store,
        "held": list(plan.get("held", ())),
        "lines": [{"sign": line[:1], "text": line[1:].strip()} for line in lines[:_MOST_LINES]],
        "more": max(0, len(lines) - _MOST_LINES),
        "bad_rows": list(plan.get("bad_rows", ())),
        "first": list(plan.get("first_import_lines", ())),
        "calls": len(plan.get("calls", ())),
    }


async def _fill_history(visit: Visit) -> Filled:
    store = visit.params["store"]
    before = visit.query.get("before", "")
    found = await visit.perform(
        "menu.history",
        store=store,
        before=int(before) if before.isascii() and before.isdecimal() else None,
    )
    return {
        "store": store,
        "pushes": [_worded(each) for each in found["pushes"]],
        "before": found["pushes"][-1]["id"] if found["more"] else None,
    }


def _understood(hold: Mapping[str, Any]) -> Filled:
    """Return a hold with its counts in words, and its categories opened as far as one reads."""
    categories, read = [], 0
    for each in hold["categories"]:
        names = sum(len(each[kind]) for kind in ("removed", "added", "changed"))
        read += names
        categories.append({**each, "names": names, "open": read <= _READ_AT_ONCE})
    return {**hold, "lines": counted(hold["counts"]), "categories": categories}


def _worded(push: Mapping[str, Any]) -> Filled:
    return {
        **push,
        "what": what(push),
        "told": told(push),
        "took": how_long(push),
        "badge": _KINDS.get(push["state"], ""),
    }


def _moment(text: str) -> int | None:
    """Return the instant; without a zone it is this machine's time, as a browser's field has it."""
    try:
        return from_iso(datetime.fromisoformat(text).astimezone().isoformat()) if text else None
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and 0 < int(text) < 100_000 else 1


async def _ask_approve(visit: Visit) -> Question:
    plan = await visit.perform("menu.plan", store=visit.params["store"])
    return Question(
        _("The menu change of {store} that is held goes to the storefront as it is.").format(
            store=visit.params["store"]
        ),
        _("Release it"),
        points=_reviewed(plan),
        risky=True,
    )


def _reviewed(plan: Mapping[str, Any]) -> list[str]:
    """Return what a person should read before a change goes out: why it waits, the worst first."""
    lines = list(plan.get("lines", ()))
    points = [*plan.get("held", ()), *plan.get("first_import_lines", ()), *lines[:_READ_AT_ONCE]]
    more = len(lines) - _READ_AT_ONCE
    return [*points, _("and {n} more").format(n=f"{more:,}")] if more > 0 else points


async def _ask_dismiss(visit: Visit) -> Question:
    return Question(
        _("The storefront of {store} stays as it is.").format(store=visit.params["store"]),
        _("Dismiss the change"),
        points=(
            _("This very change is not offered again."),
            _("When the till tells something else, that is looked at anew."),
            _("What is sold out goes on being told all the time."),
        ),
    )


async def _ask_push(visit: Visit) -> Question:
    return Question(
        _("What differs between the till and the storefront of {store} is pushed now.").format(
            store=visit.params["store"]
        ),
        _("Push the menu"),
    )


async def _ask_push_all(visit: Visit) -> Question:
    return Question(
        _("The whole menu of {store} is pushed again.").format(store=visit.params["store"]),
        _("Push all of the menu"),
    )


SUBJECT = Subject(
    home="/menu",
    pages=(
        Page("/menu", _("Menu"), "menu.html", _fill),
        Page(
            "/stores/{store}/menu/items",
            _("What the storefront has"),
            "menu_items.html",
            _fill_items,
        ),
        Page(
            "/stores/{store}/menu/difference",
            _("What differs"),
            "menu_difference.html",
            _fill_difference,
            live=False,
        ),
        Page(
            "/stores/{store}/menu/history",
            _("Pushes of the menu"),
            "menu_history.html",
            _fill_history,
        ),
    ),
    actions=(
        performs(
            "/stores/{store}/menu/approve",
            _("Review the change"),
            "menu.approve",
            ask=_ask_approve,
        ),
        performs(
            "/stores/{store}/menu/dismiss",
            _("Keep the storefront as it is"),
            "menu.dismiss",
            ask=_ask_dismiss,
        ),
        performs(
            "/stores/{store}/menu/push",
            _("Push the menu now"),
            "menu.push",
            ask=_ask_push,
            fixed={"full": False},
        ),
        performs(
            "/stores/{store}/menu/push-all",
            _("Push all of the menu"),
            "menu.push",
            ask=_ask_push_all,
            fixed={"full": True},
        ),
    ),
)


_ENDS = {"opening": "opening", "hour": "1h", "always": None}


async def _fill_board(visit: Visit) -> Filled:
    stores = list((await visit.perform("status"))["stores"])
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


async def _back_on_sale(visit: Visit) -> Done:
    store, item = visit.params["store"], visit.params["item"]
    answer = await visit.perform("item.restore", store=store, item=item)
    return _back(Done.of(answer), store)


def _back(done: Done, store: str) -> Done:
    to = path_of("/86", {}, {"store": store})
    return Done(done.text, ok=done.ok, fix=done.fix, to=to)


BOARD = Subject(
    home="/86",
    pages=(Page("/86", _("86"), "board.html", _fill_board),),
    actions=(
        performs(
            "/stores/{store}/items/{item}/86",
            _("Take it off sale"),
            "item.86",
            do=_stop,
        ),
        performs(
            "/stores/{store}/items/{item}/restore",
            _("Back on sale"),
            "item.restore",
            do=_back_on_sale,
        ),
    ),
)
