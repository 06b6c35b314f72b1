"""Orders: the live list, one order's life and what was ordered, and what can be done about it."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import groupby

from aiohttp import web

from tillbridge.core import formats
from tillbridge.core.actor import Role
from tillbridge.core.formats import day_text, local_second, money
from tillbridge.core.i18n import N_, _, joined
from tillbridge.ledger.orders import STATES
from tillbridge.model.instant import ONE_DAY, from_iso
from tillbridge.model.money import to_major
from tillbridge.model.order import ReasonCode
from tillbridge.orders.sentences import (
    KINDS,
    ORDER_STATES,
    REASONS,
    TICKETS,
    Step,
    bill_lines,
    failure_text,
    is_ticket_number,
    kind_text,
    reason_text,
)
from tillbridge.orders.views import ListedOrder, OrderDetails, OrderedLine, OrdersPage, OrderView
from tillbridge.status.sentences import CAUSES, store_names
from tillbridge.web.rendering import Cell, csv_file
from tillbridge.web.site.book import (
    TEXTS,
    Field,
    File,
    Filled,
    Page,
    Question,
    Visit,
    performs,
    subject,
)

_SPAN = "7d"
_DAYS = 31  # to choose from; older ones are reached day by day
_MOST_PAGES = 400  # of fifty orders: as many as a spreadsheet is pleasant with
_HEADS = (
    N_("store"), N_("number"), N_("id"), N_("type"), N_("table"), N_("placed"), N_("received"),
    N_("in the till"), N_("closed"), N_("status"), N_("state"), N_("ticket"), N_("reference"),
    N_("tries"), N_("last failure"), N_("reason"), N_("handled by"), N_("total"), N_("currency"),
)  # fmt: skip
_STATE_LABELS: Mapping[str, str] = TEXTS["order_filters"]


def _asked(visit: Visit, stores: Collection[str]) -> dict[str, str]:
    """Return which orders are asked for; what makes no sense asks for all."""
    return {
        "text": visit.text("q"),
        "state": visit.one_of("state", STATES),
        "store": visit.one_of("store", stores),
        "kind": visit.one_of("kind", KINDS),
        "day": _day(visit.text("day", 10)),
    }


def _day(typed: str) -> str:
    try:
        return date.fromisoformat(typed).isoformat()
    except ValueError:
        return ""


async def _fill(visit: Visit) -> Filled:
    status = await visit.status()
    stores = list(status["stores"])
    asked = _asked(visit, stores)
    if asked["store"]:
        visit.show_zone_of(asked["store"])
    found: OrdersPage = await visit.perform("orders.list", **asked, page=visit.page)
    today = date.fromisoformat(found["today"])
    totals = {each["day"]: each for each in found["days"]}
    return {
        **found,
        "days": [
            {
                "day": day,
                "called": _called(date.fromisoformat(day), today),
                "orders": [{**each, **worded(each), "time": _clock(each)} for each in orders],
                "totals": totals.get(day),
            }
            for day, orders in _by_day(found["orders"])
        ],
        "asked": asked,
        "narrowed": any(asked.values()),
        "store_names": store_names(status),
        "states": [(value, _(_STATE_LABELS[value])) for value in STATES],
        "kinds": [(value, kind_text(value)) for value in KINDS],
        "kind_text": kind_text,
        "shortcuts": _shortcuts(asked["day"], today),
        "choices": _choices(asked["day"], today),
        "status": status["stores"],
        "figures": [
            (name, part["orders"]["figures"][_SPAN])
            for name, part in status["stores"].items()
            if asked["store"] in {"", name}
        ],
    }


def _by_day(orders: Sequence[ListedOrder]) -> list[tuple[str, list[ListedOrder]]]:
    return [(day, list(each)) for day, each in groupby(orders, key=lambda each: each["day"])]


def _clock(order: ListedOrder) -> str:
    """Return when an order was received: the day is above it."""
    at_ms = from_iso(order["received_at"])
    return formats.clock_time(at_ms, at_ms)


def _called(day: date, today: date) -> str:
    """Return what people call a day: today, yesterday, or its date."""
    if day == today:
        return _("Today")
    if day == today - ONE_DAY:
        return _("Yesterday")
    return day_text(day, today)


def _choices(chosen: str, today: date) -> list[Filled]:
    """Return the days to choose from: the latest ones, and the one that is chosen."""
    days = [(today - back * ONE_DAY).isoformat() for back in range(_DAYS)]
    if chosen and chosen not in days:
        days.append(chosen)
    return [{"day": each, "called": _called(date.fromisoformat(each), today)} for each in days]


def _shortcuts(chosen: str, today: date) -> list[Filled]:
    """Return the days that are one touch away: around the chosen one, or the latest two."""
    if not chosen:
        near = [today, today - ONE_DAY]
    else:
        day = date.fromisoformat(chosen)
        near = [day - ONE_DAY] if day > date.min else []
        if day < today:
            near.append(day + ONE_DAY)
    return [{"day": each.isoformat(), "called": _called(each, today)} for each in near]


async def _export(visit: Visit) -> web.Response:
    """Give the orders that are asked for as CSV; nothing in it names a customer."""
    asked = _asked(visit, (await visit.status())["stores"])
    found: dict[tuple[str, str], ListedOrder] = {}
    page, pages = 0, 1
    while page < min(pages, _MOST_PAGES):
        page += 1
        listed: OrdersPage = await visit.perform("orders.list", **asked, page=page)
        pages = listed["pages"]
        # What arrives meanwhile moves the pages: an order may be on two of them.
        found |= {(each["store"], each["id"]): each for each in listed["orders"]}
    heads = [_(each) for each in _HEADS]
    return csv_file("tillbridge-orders.csv", heads, [_row(each) for each in found.values()])


def _row(order: ListedOrder) -> tuple[Cell, ...]:
    handled = order["handled"]
    return (
        order["store"],
        order["order_number"],
        order["id"],
        kind_text(order["kind"]),
        order["table"],
        *(_second(order[name]) for name in ("placed_at", "received_at", "written_at", "closed_at")),
        worded(order)["words"],
        order["state"],
        order["ticket"],
        order["ticket_reference"],
        order["attempts"],
        order["last_failure"],
        order["reason_code"],
        handled["by"] if handled else "",
        _amount(order["total"], order["currency"]),
        order["currency"],
    )


def _second(at: str | None) -> str:
    return local_second(from_iso(at)) if at else ""


def _amount(amount: int | None, currency: str) -> Cell:
    """Return an amount as a number that spreadsheets add up; "" where it is not known."""
    if amount is None:
        return ""
    try:
        return float(to_major(amount, currency))
    except (ArithmeticError, LookupError, ValueError):
        return amount


async def _fill_one(visit: Visit) -> Filled:
    order: OrderDetails = await visit.perform("orders.show", order=visit.params["order"])
    visit.show_zone_of(order["store"])
    may_read = visit.visitor.role >= Role.STAFF
    ordered = order["ordered"]
    return {
        "order": {**order, **worded(order)},
        "name": order["order_number"] or order["id"],
        "store_name": await visit.store_name(order["store"]),
        "then": _then,
        "size_of": _size_of,
        # Nothing is known of an order from before the ledger's menu.
        "menu_known": any(line["menu"] for line in (ordered["lines"] if ordered else ()))
        or any(each["event"] == "order.check_found" for each in order["life"]),
        "is_ticket_number": is_ticket_number,
        "tickets": TICKETS,
        "may_read": may_read,
        "reason": reason_text(order["reason_code"]),
        "kind": kind_text(ordered["kind"]) if ordered else "",
        "bill": bill_lines(ordered["bill"]) if ordered else [],
        "steps": _steps(order["timeline"]),
        "moment": partial(_moment, first_ms=from_iso(order["received_at"])),
    }


def _moment(at: int | str, first_ms: int) -> str:
    """Return a time of day to the second; of another day than the order's with its date."""
    at_ms = from_iso(at) if isinstance(at, str) else at
    same = formats.day_of(at_ms) == formats.day_of(first_ms)
    return formats.time_of_day(at_ms) if same else formats.local_second(at_ms)


# The width of a timeline's bars, in the units of their drawing.
_WIDE = 1000
_KITCHEN = frozenset({"preparing", "ready", "completed"})
_STEPS: Mapping[str, str] = TEXTS["order_steps"]
_NOT_YET: Mapping[str, str] = TEXTS["order_steps_to_come"]


def _steps(found: Sequence[Step]) -> list[Filled]:
    """Return the steps in words, each with its bar: from the step before it to this one.

    What the bridge does takes seconds and the kitchen minutes: each has a scale of its own.
    """
    shown: list[Filled] = []
    ends = {
        kitchen: [
            each["at"]
            for each in found
            if each["at"] is not None and (each["key"] in _KITCHEN) is kitchen
        ]
        for kitchen in (False, True)
    }
    begins = {False: min(ends[False], default=0), True: max(ends[False], default=0)}
    before: int | None = None
    for each in found:
        at, kitchen = each["at"], each["key"] in _KITCHEN
        bar = None
        if at is not None and before is not None:
            begin = begins[kitchen]
            length = max(1, max(ends[kitchen]) - begin)
            x = min(_WIDE, max(0, (min(before, at) - begin) * _WIDE // length))
            width = max(6, (at - before) * _WIDE // length)
            bar = {"x": min(x, _WIDE - 6), "width": min(width, _WIDE - min(x, _WIDE - 6))}
        words = _STEPS[each["key"]] if at is not None else _NOT_YET[each["key"]]
        shown.append({**each, "words": _(words), "bar": bar, "kitchen": kitchen})
        before = at if at is not None else before
    return shown


async def _fill_payload(visit: Visit) -> Filled:
    order: OrderDetails = await visit.perform("orders.show", order=visit.params["order"])
    payload = order["order"]
    text = "" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()  # halves of characters are no text
    return {"order": order, "payload": text}


async def _ask_cancel(visit: Visit) -> Question:
    order: OrderDetails = await visit.perform("orders.show", order=visit.params["order"])
    points = [_("The guest gets the money back and is told the reason.")]
    if order["ticket"] in {"written", "writing"}:
        points.append(_("Its ticket is removed from the till, where the till allows that."))
    return Question(
        _("Cancel order {order}? This cannot be undone.").format(order=_name(order)),
        _("Cancel order {order}").format(order=_name(order)),
        points=points,
        fields=(
            Field(
                "reason_code",
                _("Reason"),
                choices=tuple((code.value, _(text)) for code, text in REASONS.items()),
                value=ReasonCode.ITEM_OUT_OF_STOCK.value,
            ),
        ),
        risky=True,
    )


async def _ask_done(visit: Visit) -> Question:
    order: OrderDetails = await visit.perform("orders.show", order=visit.params["order"])
    points: list[str] = []
    fields: tuple[Field, ...] = ()
    if order["may"]["typed"]:
        choices = (
            ("typed", _("I entered it into the till")),
            ("settled", _("I handled it in another way")),
        )
        fields = (Field("how", _("What did you do?"), choices=choices, value="typed"),)
        if order["on_paper"]:
            points.append(_("It is on paper and not in the till: NOT IN TILL."))
        points.append(_("Entered into the till: it is reported as accepted."))
        points.append(_("Handled in another way: the bridge reports nothing more."))
        if order["ticket"] == "writing":
            points.append(_("The till may already have it: check there before you enter it."))
    return Question(
        _what_done_does(order).format(order=_name(order)),
        _("Mark as handled"),
        points=points,
        fields=fields,
    )


def _name(order: OrderView) -> str:
    return order["order_number"] or order["id"]


def _what_done_does(order: OrderDetails) -> str:
    if order["may"]["typed"]:
        return _("The bridge stops trying to send order {order} to the till.")
    if order["closed_at"] is not None:
        return _("Order {order} is closed. Confirm that you have taken care of it.")
    if order["ticket"] == "written":
        return _(
            "Order {order} is in the till. The bridge stops following it: changes in the till are "
            "no longer reported to the ordering service."
        )
    return _("Order {order} is left to you: the bridge reports nothing more about it.")


def worded(order: OrderView) -> Filled:
    """Return an order's status, in words and as a kind of badge."""
    state, wanted, ticket = order["state"], order["wanted"], order["ticket"]
    code = order["reason_code"] or ""
    label = _(ORDER_STATES.get(state, state))
    if order["handled"]:
        text, kind = _("Handled by {who}").format(who=order["handled"]["by"]), "warn"
    elif wanted == "cancelled" or state == "cancelled":
        text, kind = (_("Cancelled") if state == "cancelled" else _("Being cancelled")), "bad"
    elif order["on_paper"]:
        text, kind = _("On paper, not in the till"), "bad"
    elif ticket in {"waiting", "writing"} and order["closed_at"] is None:
        text, kind = _("Waiting for the till"), "warn"
    elif ticket == "refused" and state != "completed":
        text, kind = _("Not in the till"), "bad"
    else:
        text, kind = label, "good" if order["closed_at"] is None else ""
    return {
        "words": text,
        "kind_of_badge": kind,
        "failure": failure_text(order["last_failure"]) if order["closed_at"] is None else "",
        "cause": _(CAUSES[code]) if state == "cancelled" and code in CAUSES else "",
        "reported": _("Not yet") if state == "created" else label,
        "to_report": _(ORDER_STATES.get(wanted, wanted)) if wanted != state else "",
    }


def _size_of(line: OrderedLine) -> str:
    """Return the size that was ordered; "" where there is none, or the line's name says it."""
    size = line["menu"]["size"] if line["menu"] else ""
    return "" if size in line["name"] else size


def _then(line: OrderedLine, currency: str) -> str:
    """Return how the menu of that moment differs from the line; "" where it does not."""
    menu = line["menu"]
    if menu is None:
        return _("Not on the menu at that time")
    found = []
    # A line is called by its variant too: "Margherita (Large)".
    same = menu["name"] in line["name"] if line["variant"] else menu["name"] == line["name"]
    if line["name"] and not same:
        found.append(_("as “{name}”").format(name=menu["name"]))
    if line["unit_price"] is not None and menu["price"] != line["unit_price"]:
        found.append(_("at {price}").format(price=money(menu["price"], currency)))
    if not menu["on_sale"]:
        found.append(_("sold out"))
    return _("On the menu then: {what}").format(what=joined(", ", found)) if found else ""


SUBJECT = subject(
    Page("/orders", N_("Orders"), "orders.html", _fill),
    Page("/orders/{order}", N_("Order"), "order.html", _fill_one),
    Page(
        "/orders/{order}/payload",
        N_("Original order data"),
        "order_payload.html",
        _fill_payload,
        role=Role.STAFF,
        live=False,
    ),
    File("/orders.csv", _export),
    performs("/orders/{order}/retry", N_("Try again"), "order.retry", back="/orders/{order}"),
    performs(
        "/orders/{order}/cancel",
        N_("Cancel order"),
        "order.cancel",
        ask=_ask_cancel,
        back="/orders/{order}",
    ),
    performs(
        "/orders/{order}/done",
        N_("Mark as handled"),
        "order.done",
        ask=_ask_done,
        back="/orders/{order}",
    ),
    performs("/orders/seen", N_("Acknowledge"), "orders.seen"),
    home="/orders",
)
