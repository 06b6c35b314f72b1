"""The menu: by category, with what the till has otherwise; and what is on hold."""

from datetime import datetime
from urllib.parse import urlsplit

from tillbridge.core.formats import local_input, money, number
from tillbridge.core.i18n import _, ngettext, reader
from tillbridge.menu.browse import MenuPage
from tillbridge.menu.describe import FIELD_LABELS, counted, push_columns
from tillbridge.menu.review import ReviewView, row_line
from tillbridge.menu.views import ItemsPage, MenuState, PushesPage
from tillbridge.model.instant import from_iso, to_iso
from tillbridge.status.sentences import store_names
from tillbridge.web.site.book import Filled, Page, Question, Visit, performs, subject

_LATEST = 8
_READ_AT_ONCE = 12
_MOST_HOSTS = 4

# Problems of the till's export that say which of its rows guests do not see.
UNREAD = {"export.bad_rows", "export.unreadable"}


async def _fill(visit: Visit) -> Filled:
    status = await visit.status()
    stores = status["stores"]
    store = visit.one_of("store", list(stores)) or next(iter(stores))
    visit.show_zone_of(store)
    text = visit.text("q", 60)
    shown: MenuState = await visit.perform("menu.show", store=store)
    history: PushesPage = await visit.perform("menu.history", store=store)
    found: MenuPage = await visit.perform(
        "menu.browse",
        store=store,
        category=visit.text("category", 200),
        text=text,
        page=visit.page,
        item=visit.text("item", 200),
    )
    hold = shown["hold"]
    review: ReviewView | None = None
    if hold is not None and not hold["approved"]:
        review = await visit.perform("menu.review", store=store, read=False)
    hosts = picture_hosts(found)
    return {
        **found,
        "stores": store_names(status),
        "store": store,
        "q": text,
        "state": shown,
        "hold": None if hold is None or hold["approved"] else hold,
        "review": review,
        "unread": [
            each
            for each in status["problems"]
            if (each["store"], each["subject"]) == (store, "menu") and each["code"] in UNREAD
        ],
        "counted": counted,
        "labels": FIELD_LABELS,
        "pushes": history["pushes"][:_LATEST],
        "push_columns": push_columns,
        "hosts": hosts,
        "picture_hosts": hosts if visit.query.get("pictures") else [],
        "progress": await visit.perform("menu.progress", store=store),
    }


def picture_hosts(found: MenuPage) -> list[str]:
    """Return from where the pictures of this page come: other machines' names, https alone.

    An export may say anything: an address of this network, or of this machine, is left out.
    """
    hosts = dict.fromkeys(
        host
        for group in found["groups"]
        for each in group["items"]
        if (host := picture_host(each["picture"]))
    )
    return list(hosts)[:_MOST_HOSTS]


def picture_host(address: str) -> str:
    """Return the host of a picture's address; "" for one that is not shown."""
    try:
        parts = urlsplit(address)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme != "https" or port not in {None, 443} or parts.username is not None:
        return ""
    labels = host.split(".")
    known = all(each and each.isascii() and each.replace("-", "").isalnum() for each in labels)
    is_name = known and len(labels) > 1 and not labels[-1].isdecimal()
    inside = labels[-1] in {"localhost", "local", "internal", "lan", "home", "test", "arpa"}
    return host if is_name and not inside else ""


async def _fill_items(visit: Visit) -> Filled:
    store, asked_at = visit.params["store"], visit.query.get("at", "")
    at_ms = _moment(asked_at)
    found: ItemsPage = await visit.perform(
        "menu.items",
        store=store,
        text=visit.text("q", 60),
        page=visit.page,
        at=None if at_ms is None else to_iso(at_ms),
    )
    return {
        **found,
        "store": store,
        "q": visit.text("q", 60),
        "ids": bool(visit.query.get("ids")),
        "asked_at": asked_at if at_ms is not None else "",
        "local_at": "" if at_ms is None else local_input(at_ms),
        "latest": local_input(visit.now_ms),
        "zone": str(reader().zone or ""),
        "wrong_at": bool(asked_at) and at_ms is None,
    }


async def _fill_review(visit: Visit) -> Filled:
    store = visit.params["store"]
    shown: MenuState = await visit.perform("menu.show", store=store)
    review: ReviewView = await visit.perform("menu.review", store=store, page=visit.page)
    hold = shown["hold"]
    return {
        **review,
        "store": store,
        "store_name": await visit.store_name(),
        "hold": None if hold is None or hold["approved"] else hold,
        "first": shown["first_import"] if not shown["accepted"] else None,
        "counted": counted,
        "labels": FIELD_LABELS,
        "ids": bool(visit.query.get("ids")),
    }


async def _fill_history(visit: Visit) -> Filled:
    store = visit.params["store"]
    found: PushesPage = await visit.perform(
        "menu.history", store=store, before=visit.number("before")
    )
    return {
        "store": store,
        "pushes": found["pushes"],
        "currency": found["currency"],
        "push_columns": push_columns,
        "before": found["pushes"][-1]["id"] if found["more"] else None,
    }


def _moment(text: str) -> int | None:
    """Return the instant; without an offset it is the store's time, as a browser's field has it."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            zone = reader().zone
            moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
        return from_iso(moment.isoformat())
    except (ValueError, OverflowError):
        return None


async def _ask_approve(visit: Visit) -> Question:
    store = visit.params["store"]
    shown: MenuState = await visit.perform("menu.show", store=store)
    review: ReviewView = await visit.perform("menu.review", store=store)
    hold = shown["hold"]
    counts = review["counts"] if hold is None else hold["counts"]
    lines = [row_line(each, review["currency"]) for each in review["worst"][:_READ_AT_ONCE]]
    more = review["count"] - len(lines)
    points = [*(text for _kind, text in counted(counts)), *(lines or _dishes(review))]
    if lines and more > 0:
        points.append(
            ngettext("and {n} more change", "and {n} more changes", more).format(n=number(more))
        )
    return Question(
        _("Publish this change to the storefront of {store}?").format(
            store=await visit.store_name()
        ),
        _("Publish this change"),
        points=points,
    )


def _dishes(review: ReviewView) -> list[str]:
    """Return a line for each category of a menu in which everything is new."""
    rows = [each for group in review["groups"] for each in group["rows"]]
    if any(each["kind"] != "added" for each in rows):
        return []
    lines: list[str] = []
    for group in review["groups"]:
        dishes = [
            f"{each['name']} {money(each['price'], review['currency'])}"
            for each in group["rows"]
            if each["part"] == "item" and each["price"] is not None
        ]
        if dishes:
            name = group["name"] or _("Without a category")
            lines.append(_("{name}: {fields}").format(name=name, fields=", ".join(dishes)))
    if review["pages"] > 1:
        lines.append("...")
    return lines


SUBJECT = subject(
    Page("/menu", _("Menu"), "menu.html", _fill),
    Page("/stores/{store}/menu/items", _("Menu at a moment"), "menu_items.html", _fill_items),
    Page(
        "/stores/{store}/menu/difference",
        _("Review change"),
        "menu_difference.html",
        _fill_review,
        live=False,
    ),
    Page(
        "/stores/{store}/menu/history", _("History of the menu"), "menu_history.html", _fill_history
    ),
    performs(
        "/stores/{store}/menu/approve", _("Publish this change"), "menu.approve", ask=_ask_approve
    ),
    performs(
        "/stores/{store}/menu/dismiss",
        _("Keep the storefront as it is"),
        "menu.dismiss",
        ask=Question(
            _("Keep the storefront of {store} as it is?"),
            _("Keep the storefront as it is"),
            points=(
                _("This change is not offered again."),
                _("The next change in the till is checked as usual."),
                _("Sold-out items are still updated."),
            ),
        ),
    ),
    performs(
        "/stores/{store}/menu/push",
        _("Update the storefront now"),
        "menu.push",
        fixed={"full": False},
    ),
    performs(
        "/stores/{store}/menu/push-all",
        _("Send the whole menu again"),
        "menu.push",
        fixed={"full": True},
    ),
    home="/menu",
)
