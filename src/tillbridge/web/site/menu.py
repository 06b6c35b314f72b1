"""The menu: the till's, the storefront's, what waits for a person; and the 86 board."""

from datetime import datetime

from tillbridge.core.formats import clock_time, local_input, number
from tillbridge.core.i18n import _, ngettext
from tillbridge.menu.describe import counted, push_columns
from tillbridge.menu.views import (
    FoundView,
    HoldView,
    ItemsPage,
    MenuState,
    PlanView,
    PushesPage,
)
from tillbridge.model.instant import from_iso
from tillbridge.operations import items
from tillbridge.web.site.book import Done, Filled, Page, Question, Visit, link, performs, subject

_LATEST = 8
_READ_AT_ONCE = 24
_MOST_LINES = 500


async def _fill(visit: Visit) -> Filled:
    stores = []
    for name in (await visit.status())["stores"]:
        shown: MenuState = await visit.perform("menu.show", store=name)
        history: PushesPage = await visit.perform("menu.history", store=name)
        hold = shown["hold"]
        stores.append(
            {
                **shown,
                "name": name,
                "hold": None if hold is None else _understood(hold),
                "pushes": history["pushes"][:_LATEST],
            }
        )
    return {"stores": stores, "push_columns": push_columns}


async def _fill_items(visit: Visit) -> Filled:
    store, asked_at = visit.params["store"], visit.query.get("at", "")
    at_ms = _moment(asked_at)
    found: ItemsPage = await visit.perform(
        "menu.items",
        store=store,
        text=visit.text("q", 60),
        page=visit.page,
        at=None if at_ms is None else asked_at,
    )
    return {
        **found,
        "store": store,
        "q": visit.text("q", 60),
        "asked_at": asked_at if at_ms is not None else "",
        "local_at": "" if at_ms is None else local_input(at_ms),
        "wrong_at": bool(asked_at) and at_ms is None,
    }


async def _fill_difference(visit: Visit) -> Filled:
    store = visit.params["store"]
    plan: PlanView = await visit.perform("menu.plan", store=store)
    lines = plan["lines"]
    return {
        "store": store,
        "held": plan["held"],
        "lines": [{"sign": line[:1], "text": line[1:].strip()} for line in lines[:_MOST_LINES]],
        "more": max(0, len(lines) - _MOST_LINES),
        "bad_rows": plan["bad_rows"],
        "first": plan["first_import_lines"],
        "calls": len(plan["calls"]),
    }


async def _fill_history(visit: Visit) -> Filled:
    store = visit.params["store"]
    found: PushesPage = await visit.perform(
        "menu.history", store=store, before=visit.number("before")
    )
    return {
        "store": store,
        "pushes": found["pushes"],
        "push_columns": push_columns,
        "before": found["pushes"][-1]["id"] if found["more"] else None,
    }


def _understood(hold: HoldView) -> Filled:
    """Return a hold with its counts in words, and its categories opened as far as one reads."""
    categories, read = [], 0
    for each in hold["categories"]:
        names = len(each["removed"]) + len(each["added"]) + len(each["changed"])
        read += names
        categories.append({**each, "names": names, "open": read <= _READ_AT_ONCE})
    return {**hold, "lines": counted(hold["counts"]), "categories": categories}


def _moment(text: str) -> int | None:
    """Return the instant; without a zone it is this machine's time, as a browser's field has it."""
    try:
        return from_iso(datetime.fromisoformat(text).astimezone().isoformat()) if text else None
    except (ValueError, OverflowError):
        return None


async def _ask_approve(visit: Visit) -> Question:
    plan: PlanView = await visit.perform("menu.plan", store=visit.params["store"])
    return Question(
        _("Guests of {store} see this change once you release it.").format(
            store=await visit.store_name()
        ),
        _("Release it"),
        points=_reviewed(plan),
        risky=True,
    )


def _reviewed(plan: PlanView) -> list[str]:
    """Return what a person should read before a change goes out: why it waits, the worst first."""
    lines = plan["lines"]
    points = [*plan["held"], *plan["first_import_lines"], *lines[:_READ_AT_ONCE]]
    more = len(lines) - _READ_AT_ONCE
    if more > 0:
        points.append(
            ngettext("and {n} more change", "and {n} more changes", more).format(n=number(more))
        )
    return points


SUBJECT = subject(
    Page("/menu", _("Menu"), "menu.html", _fill),
    Page(
        "/stores/{store}/menu/items", _("What the storefront has"), "menu_items.html", _fill_items
    ),
    Page(
        "/stores/{store}/menu/difference",
        _("What differs"),
        "menu_difference.html",
        _fill_difference,
        live=False,
    ),
    Page(
        "/stores/{store}/menu/history", _("Pushes of the menu"), "menu_history.html", _fill_history
    ),
    performs(
        "/stores/{store}/menu/approve", _("Review the change"), "menu.approve", ask=_ask_approve
    ),
    performs(
        "/stores/{store}/menu/dismiss",
        _("Keep the storefront as it is"),
        "menu.dismiss",
        ask=Question(
            _("The storefront of {store} stays as it is."),
            _("Dismiss the change"),
            points=(
                _("This very change is not offered again."),
                _("When the till tells something else, that is looked at anew."),
                _("What is sold out goes on being told all the time."),
            ),
        ),
    ),
    performs(
        "/stores/{store}/menu/push",
        _("Push the menu now"),
        "menu.push",
        ask=Question(
            _("What differs between the till and the storefront of {store} is pushed now."),
            _("Push the menu"),
        ),
        fixed={"full": False},
    ),
    performs(
        "/stores/{store}/menu/push-all",
        _("Push all of the menu"),
        "menu.push",
        ask=Question(_("The whole menu of {store} is pushed again."), _("Push all of the menu")),
        fixed={"full": True},
    ),
    home="/menu",
)


_ENDS = {"opening": "opening", "hour": "1h", "always": None}


async def _fill_board(visit: Visit) -> Filled:
    stores = list((await visit.status())["stores"])
    store = visit.one_of("store", stores) or stores[0]
    text = visit.text("q", 60)
    off: items.Board = await visit.perform("items.off", store=store)
    found: FoundView = await visit.perform("items.find", store=store, text=text)
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
    if (chosen := visit.form.get("until", "")) not in _ENDS:
        return Done(_("Say until when."), ok=False, to=_board_of(visit))
    answer = await visit.perform("item.86", **visit.params, until=_ENDS[chosen])
    return Done.of(answer, to=_board_of(visit))


async def _back_on_sale(visit: Visit) -> Done:
    return Done.of(await visit.perform("item.restore", **visit.params), to=_board_of(visit))


def _board_of(visit: Visit) -> str:
    return link("/86", store=visit.params["store"])


BOARD = subject(
    Page("/86", _("86"), "board.html", _fill_board),
    performs("/stores/{store}/items/{item}/86", _("Take it off sale"), "item.86", do=_stop),
    performs(
        "/stores/{store}/items/{item}/restore", _("Back on sale"), "item.restore", do=_back_on_sale
    ),
    home="/86",
)
