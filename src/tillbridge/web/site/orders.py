"""Orders: the live list, one order's life and what was ordered, and what can be done about it."""

import json
from collections.abc import Collection, Mapping

from aiohttp import web

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.core.spans import local_second
from tillbridge.ledger.orders import STATES
from tillbridge.model.instant import from_iso
from tillbridge.model.money import to_major
from tillbridge.model.order import ReasonCode
from tillbridge.orders.views import ListedOrder, OrderedLine, OrdersPage, OrderView, WholeOrder
from tillbridge.web.csv_export import Cell, csv_file
from tillbridge.web.rendering import money
from tillbridge.web.site.book import (
    Done,
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
_MOST_PAGES = 400  # of fifty orders: as many as a spreadsheet is pleasant with
_HEADS = (
    _("store"), _("order"), _("number"), _("placed"), _("received"), _("in the till"), _("over"),
    _("how it stands"), _("state"), _("ticket"), _("reference"), _("tries"), _("last failure"),
    _("reason"), _("handled by"), _("total"), _("currency"),
)  # fmt: skip
_STATE_LABELS: Mapping[str, str] = {
    "waiting": _("wait for the till"),
    "open": _("not over yet"),
    "over": _("over"),
    "cancelled": _("cancelled"),
    "failed": _("cancelled or not written"),
    "by_hand": _("a person stepped in"),
}
_REASONS: Mapping[ReasonCode, str] = {
    ReasonCode.ITEM_OUT_OF_STOCK: _("something is sold out"),
    ReasonCode.STORE_CLOSED: _("the store is closed"),
    ReasonCode.POS_OFFLINE: _("the till cannot be reached"),
    ReasonCode.CAPACITY: _("too much to do"),
    ReasonCode.PRICE_MISMATCH: _("the prices do not fit"),
    ReasonCode.OTHER: _("something else"),
}


def _asked(visit: Visit, stores: Collection[str]) -> dict[str, str]:
    """Return which orders are asked for; what makes no sense asks for all."""
    return {
        "text": visit.text("q"),
        "state": visit.one_of("state", STATES),
        "store": visit.one_of("store", stores),
    }


async def _fill(visit: Visit) -> Filled:
    status = await visit.status()
    stores = list(status["stores"])
    asked = _asked(visit, stores)
    found: OrdersPage = await visit.perform("orders.list", **asked, page=visit.page)
    return {
        **found,
        "orders": [{**each, **_worded(each)} for each in found["orders"]],
        "asked": asked,
        "stores": stores,
        "states": [(value, _STATE_LABELS[value]) for value in STATES],
        "figures": [
            (name, part["orders"]["figures"][_SPAN])
            for name, part in status["stores"].items()
            if asked["store"] in {"", name}
        ],
    }


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
    return csv_file("tillbridge-orders.csv", _HEADS, [_row(each) for each in found.values()])


def _row(order: ListedOrder) -> tuple[Cell, ...]:
    handled = order["handled"]
    return (
        order["store"],
        order["id"],
        order["order_number"],
        *(_second(order[name]) for name in ("placed_at", "received_at", "written_at", "closed_at")),
        _worded(order)["words"],
        order["state"],
        order["ticket"],
        order["ticket_reference"],
        order["attempts"],
        order["last_failure"],
        order["reason_code"],
        handled["by"] if handled else "",
        _amount(order.get("total"), str(order.get("currency") or "")),
        order.get("currency") or "",
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
    order: WholeOrder = await visit.perform("orders.show", order=visit.params["order"])
    may_read = visit.visitor.role >= Role.STAFF
    return {
        "order": {**order, **_worded(order)},
        "store_name": await visit.store_name(order["store"]),
        "then": _then,
        "may_read": may_read,
        "reason": _reason(order["reason_code"]),
    }


async def _fill_payload(visit: Visit) -> Filled:
    order: WholeOrder = await visit.perform("orders.show", order=visit.params["order"])
    payload = order["order"]
    text = "" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()  # halves of characters are no text
    return {"order": order, "payload": text}


async def _cancel(visit: Visit) -> Done:
    code = visit.form.get("reason_code", "")
    if code not in {each.value for each in ReasonCode}:
        return Done(_("Choose a reason first."), ok=False)
    return Done.of(
        await visit.perform("order.cancel", order=visit.params["order"], reason_code=code)
    )


async def _ask_done(visit: Visit) -> Question:
    order: WholeOrder = await visit.perform("orders.show", order=visit.params["order"])
    points: list[str] = []
    fields: tuple[Field, ...] = ()
    if order["may"]["typed"]:
        choices = (
            ("typed", _("typed it into the till")),
            ("settled", _("seen to it in another way")),
        )
        fields = (Field("how", _("What have you done?"), choices=choices, value="typed"),)
        if order["on_paper"]:
            points.append(_("It is on paper, and not in the till: NOT IN TILL."))
        points.append(_("Typed into the till: it is accepted at the service."))
        points.append(_("Seen to in another way: the service hears nothing more from the bridge."))
        if order["ticket"] == "writing":
            points.append(_("The till may have it already: look there before you type it."))
    return Question(
        _what_done_does(order).format(order=order["order_number"] or order["id"]),
        _("Handled by hand"),
        points=points,
        fields=fields,
        risky=True,
    )


def _what_done_does(order: WholeOrder) -> str:
    if order["may"]["typed"]:
        return _("The bridge stops trying to bring order {order} into the till.")
    if order["closed_at"] is not None:
        return _("Order {order} is over; with this you say that you have seen to it.")
    if order["ticket"] == "written":
        return _(
            "Order {order} is in the till. The bridge does nothing more for it: what the till says "
            "of it from now on is not told to the service."
        )
    return _("Order {order} is left to you: the service hears nothing more of it from the bridge.")


async def _done(visit: Visit) -> Done:
    how = visit.form.get("how", "settled")  # not asked where only that makes sense
    if how not in {"typed", "settled"}:
        return Done(_("Say first what you have done."), ok=False)
    return Done.of(await visit.perform("order.done", order=visit.params["order"], how=how))


def _worded(order: OrderView) -> Filled:
    """Return how an order stands, in words and as a kind of badge."""
    state, wanted, ticket = order["state"], order["wanted"], order["ticket"]
    label = _STATES.get(state, state)
    if order["handled"]:
        text, kind = _("handled by hand by {who}").format(who=order["handled"]["by"]), "warn"
    elif wanted == "cancelled" or state == "cancelled":
        text, kind = (_("cancelled") if state == "cancelled" else _("being cancelled")), "bad"
    elif order["on_paper"]:
        text, kind = _("on paper, not in the till"), "bad"
    elif ticket in {"waiting", "writing"} and order["closed_at"] is None:
        text, kind = _("waits for the till"), "warn"
    elif ticket == "refused" and state != "completed":
        text, kind = _("not in the till"), "bad"
    else:
        text, kind = label, "good" if order["closed_at"] is None else ""
    return {
        "words": text,
        "kind": kind,
        "told": _("nothing yet") if state == "created" else label,
        "to_tell": _STATES.get(wanted, wanted) if wanted != state else "",
    }


_STATES: Mapping[str, str] = {
    "created": _("in the till, not accepted yet"),
    "accepted": _("accepted"),
    "preparing": _("being prepared"),
    "ready": _("ready"),
    "completed": _("completed"),
    "cancelled": _("cancelled"),
}


def _reason(code: str | None) -> str:
    return "" if code is None else _REASONS[ReasonCode(code)]


def _then(line: OrderedLine, currency: str) -> str:
    """Return how the menu of that moment differs from the line; "" where it does not."""
    menu = line["menu"]
    if menu is None:
        return _("not on the menu then, as far as the bridge knows")
    found = []
    # A line is called by its variant too: "Margherita (Large)".
    same = menu["name"] in line["name"] if line["variant"] else menu["name"] == line["name"]
    if line["name"] and not same:
        found.append(_("called {name}").format(name=menu["name"]))
    if line["unit_price"] is not None and menu["price"] != line["unit_price"]:
        found.append(_("at {price}").format(price=money(menu["price"], currency)))
    if not menu["on_sale"]:
        found.append(_("off sale"))
    return _("the menu had it then: {what}").format(what=", ".join(found)) if found else ""


SUBJECT = subject(
    Page("/orders", _("Orders"), "orders.html", _fill),
    Page("/orders/{order}", _("Order"), "order.html", _fill_one),
    Page(
        "/orders/{order}/payload",
        _("What the service sent"),
        "order_payload.html",
        _fill_payload,
        role=Role.STAFF,
        live=False,
    ),
    File("/orders.csv", _export),
    performs(
        "/orders/{order}/retry",
        _("Try it again"),
        "order.retry",
        ask=Question(
            _("Order {order} is tried again at once."),
            _("Try it again"),
            points=(_("The till is asked first whether it has the order already."),),
        ),
        back="/orders/{order}",
    ),
    performs(
        "/orders/{order}/cancel",
        _("Cancel the order"),
        "order.cancel",
        do=_cancel,
        ask=Question(
            _("Order {order} is cancelled: the guest gets the money back and is told why."),
            _("Cancel the order"),
            points=(
                _("A ticket that the till has already is taken back, where the till can do that."),
                _("This cannot be undone."),
            ),
            fields=(
                Field(
                    "reason_code",
                    _("Why"),
                    choices=tuple((code.value, text) for code, text in _REASONS.items()),
                    value=ReasonCode.ITEM_OUT_OF_STOCK.value,
                ),
            ),
            risky=True,
        ),
        back="/orders/{order}",
    ),
    performs(
        "/orders/{order}/done",
        _("Handled by hand"),
        "order.done",
        do=_done,
        ask=_ask_done,
        back="/orders/{order}",
    ),
    performs("/orders/seen", _("I have seen them"), "orders.seen"),
    home="/orders",
)
