"""An order as people and programs see it: JSON for commands and the page, and its log in sentences.

The views of one row are pure; a page of orders and a whole one are read within one transaction.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.ledger import orders
from tillbridge.ledger.community import parent_of
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import items_then
from tillbridge.ledger.models import Delivery, LogEntry, OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, event_of, is_on_paper, read_log
from tillbridge.model.instant import to_iso
from tillbridge.model.order import UNCLEAR, OrderLine, OrderOption, OrderState, parse_order
from tillbridge.orders.state import FINAL

SEEN = "orders_seen"  # the fact: up to when somebody has looked at new orders (ms)
_NEW_MS = 4 * 3_600_000
_MEANT = 10
_DELIVERED = _(
    "Delivered by the service: its signature was right, and it was on disk before it was answered."
)


class Handled(TypedDict):
    """Who has seen to an order by hand, and how: "typed" or "settled"."""

    by: str
    how: str | None
    at: str


class OrderView(TypedDict):
    """How far an order is. Instants are ISO 8601; `wanted` is the state the service is to have."""

    id: str
    store: str
    order_number: str
    state: str
    wanted: str
    ticket: str
    ticket_reference: str
    on_paper: bool
    placed_at: str | None
    received_at: str
    written_at: str | None
    closed_at: str | None
    attempts: int
    last_failure: str
    reason_code: str | None
    message: str
    refused_calls: dict[str, Any]
    handled: Handled | None


class Worth(TypedDict):
    """How much was ordered; `total` in minor units."""

    items: int
    total: int | None
    currency: str


class ListedOrder(OrderView, Worth):
    """An order of a page, and whether it is new to whoever looks."""

    new: bool


class OrdersPage(TypedDict):
    """A page of orders, newest first; `unseen` counts the new ones that nobody has looked at."""

    orders: list[ListedOrder]
    count: int
    page: int
    pages: int
    unseen: int


class LoggedEvent(TypedDict):
    """What happened to an order, as a sentence too; `after_ms` since the event before it."""

    at: str
    event: str
    detail: dict[str, Any]
    text: str
    after_ms: int | None


class OrderedOption(TypedDict):
    """An option of a line; `quantity` is "?" where it is not clear, `unit_price` in minor units."""

    name: str
    quantity: int | str
    unit_price: int | None


class MenuThen(TypedDict):
    """What the menu said of an item when it was ordered; `price` in minor units."""

    name: str
    price: int
    on_sale: bool


class OrderedLine(OrderedOption):
    """A line of an order; `menu` in a whole order alone."""

    external_id: str | None
    variant: str | None
    options: list[OrderedOption]
    menu: MenuThen | None


class Ordered(TypedDict):
    """What was ordered; `total` in minor units."""

    lines: list[OrderedLine]
    total: int | None
    currency: str
    instructions: str
    order_type: str


class DeliveryView(TypedDict):
    """The delivery that brought an order."""

    event_id: str
    delivery_id: str
    received_at: str


class CommunityPart(TypedDict):
    """The community's order that an order is a part of."""

    community: str
    order_id: str
    order_number: str
    status: str


class WholeOrder(OrderView):
    """An order with its lines, what one may do about it, and all that happened to it.

    `order` is what the service sent; it and `ordered` are None once they are forgotten.
    """

    may: dict[str, bool]
    life: list[LoggedEvent]
    delivery: DeliveryView | None
    ordered: Ordered | None
    order: Any
    community_order: CommunityPart | None


# -- one row


def order_view(row: OrderRow, handled: LogEntry | None = None) -> OrderView:
    """Return how far an order is; `handled` is who has seen to it by hand, None for nobody."""
    return {
        "id": row.order_id,
        "store": row.store,
        "order_number": row.order_number,
        "state": row.service_state.value,
        "wanted": row.desired_state.value,
        "ticket": row.ticket.value,
        "ticket_reference": row.ticket_reference,
        "on_paper": is_on_paper(row),
        "placed_at": to_iso(row.placed_at),
        "received_at": to_iso(row.received_at),
        "written_at": to_iso(row.written_at),
        "closed_at": to_iso(row.closed_at),
        "attempts": row.attempts,
        "last_failure": row.last_failure,
        "reason_code": None if row.reason_code is None else row.reason_code.value,
        "message": row.message,
        "refused_calls": dict(row.refused),
        "handled": None
        if handled is None
        else {
            "by": by_whom(handled.detail.get("by")),
            "how": handled.detail.get("how"),
            "at": to_iso(handled.at),
        },
    }


def possible_actions(row: OrderRow) -> dict[str, bool]:
    """Return which actions make sense for the order: `retry`, `cancel`, `typed`, `settled`."""
    over = row.service_state in FINAL
    closed = row.closed_at is not None
    unwritten = row.ticket in UNWRITTEN
    cancelled = row.desired_state is OrderState.CANCELLED
    left = (
        unwritten or row.ticket is TicketState.REFUSED or row.desired_state is not row.service_state
    )
    not_cancelled = "cancel" in row.refused  # the service would not: one may ask it again
    return {
        "retry": not over
        and (row.ticket is not TicketState.WITHDRAWN or not_cancelled)
        and left
        and not (closed and row.ticket is TicketState.WRITTEN),
        "cancel": not (over or closed) and (not cancelled or not_cancelled),
        "typed": not cancelled and (is_on_paper(row) or (not closed and unwritten)),
        "settled": not closed or is_on_paper(row) or bool(row.unseen),
    }


def log_view(
    row: OrderRow, entries: Sequence[LogEntry], delivery: Delivery | None
) -> list[LoggedEvent]:
    """Return all that happened to the order, oldest first."""
    ids = {"event_id": delivery.event_id, "delivery_id": delivery.delivery_id} if delivery else {}
    all_entries = [
        (row.received_at, "delivery.kept", ids, _DELIVERED),
        *((each.at, each.event, dict(each.detail), "") for each in entries),
    ]
    shown: list[LoggedEvent] = []
    before: int | None = None
    for at, event, detail, text in all_entries:
        shown.append(
            {
                "at": to_iso(at),
                "event": event,
                "detail": detail,
                "text": text or sentence(event, detail),
                "after_ms": None if before is None else max(0, at - before),
            }
        )
        before = at
    return shown


def lines_view(row: OrderRow) -> Ordered | None:
    """Return what was ordered; None once it is forgotten, or where it cannot be read."""
    if not row.payload:
        return None
    try:
        order = parse_order(json.loads(row.payload))
    except ValueError:
        return None
    return {
        "lines": [_line(line) for line in order.lines],
        "total": order.total_amount,
        "currency": order.currency,
        "instructions": order.special_instructions,
        "order_type": order.order_type,
    }


def _line(line: OrderLine) -> OrderedLine:
    return {
        **_option(line),
        "external_id": line.external_id,
        "variant": line.variant_external_id,
        "options": [_option(option) for option in line.options],
        "menu": None,
    }


def _option(thing: OrderLine | OrderOption) -> OrderedOption:
    return {
        "name": thing.product_name,
        "quantity": thing.quantity if thing.quantity_clear else UNCLEAR,
        "unit_price": thing.unit_price,
    }


# -- orders in the ledger


def single_order(rows: Sequence[OrderRow], name: str) -> OrderRow:
    """Return the order that is meant by an id or a number.

    Raises BridgeError where there is none, or where several have that number: it lists them.
    """
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise BridgeError(
            _("There is no order {order}.").format(order=name),
            fix=_("See which there are with: tillbridge orders list"),
        )
    listed = [f"{row.order_id} ({row.store}, {to_iso(row.received_at)})" for row in rows[:_MEANT]]
    more = len(rows) - len(listed)
    if more:
        listed.append(_("and {count} more").format(count=more))
    raise BridgeError(
        _("Several orders have the number {order}: {orders}.").format(
            order=name, orders=", ".join(listed)
        ),
        fix=_("Name the one you mean by its id."),
    )


def orders_page(
    connection: Connection, wanted: orders.OrderFilter, page: int, now: int
) -> OrdersPage:
    """Return a page of orders, newest first."""
    found = orders.find_page(connection, wanted, page=page)
    # What is older than some hours needs no more noise.
    seen = max(_seen_at(get_fact(connection, "", SEEN)), now - _NEW_MS)
    return {
        "orders": [
            {
                **order_view(row, found.handled.get(row.order_id)),
                "new": row.received_at > seen,
                **_worth(row),
            }
            for row in found.rows
        ],
        "count": found.count,
        "page": page,
        "pages": max(1, -(-found.count // orders.PER_PAGE)),
        "unseen": orders.received_since(connection, seen, stores=wanted.stores),
    }


def whole_order(connection: Connection, row: OrderRow) -> WholeOrder:
    """Return an order with its lines, what the menu said then, and all that happened to it."""
    entries = read_log(connection, row.store, row.order_id)
    event_id = event_of(entries)
    delivery = orders.delivery_of(connection, row.store, event_id) if event_id else None
    parent = parent_of(connection, row.order_id)
    ordered = lines_view(row)
    if ordered is not None:
        _add_menu_then(connection, row, ordered["lines"])
    return {
        **order_view(row, orders.handled_entry(connection, row)),
        "may": possible_actions(row),
        "life": log_view(row, entries, delivery),
        "delivery": None
        if delivery is None
        else {
            "event_id": delivery.event_id,
            "delivery_id": delivery.delivery_id,
            "received_at": to_iso(delivery.received_at),
        },
        "ordered": ordered,
        "order": json.loads(row.payload) if row.payload else None,
        "community_order": None
        if parent is None
        else {
            "community": parent.community.partition("/")[2],
            "order_id": parent.order_id,
            "order_number": parent.order_number,
            "status": parent.status,
        },
    }


def _add_menu_then(connection: Connection, row: OrderRow, lines: Sequence[OrderedLine]) -> None:
    """Add to each line what the menu said when it was placed, where it had such an item."""
    ids = {line["external_id"] for line in lines if line["external_id"]}
    then = items_then(connection, row.store, ids, row.placed_at or row.received_at)
    for line in lines:
        item = then.get(line["external_id"] or "")
        if item is None:
            continue
        variant = next(
            (each for each in item.variants if each.external_id == line["variant"]), None
        )
        line["menu"] = {
            "name": item.name,
            "price": item.price if variant is None else variant.price,
            "on_sale": item.available and (variant is None or variant.available),
        }


def _worth(row: OrderRow) -> Worth:
    ordered = lines_view(row)
    if ordered is None:
        return {"items": 0, "total": None, "currency": ""}
    counts = (line["quantity"] for line in ordered["lines"])
    return {
        "items": sum(each if isinstance(each, int) else 1 for each in counts),
        "total": ordered["total"],
        "currency": ordered["currency"],
    }


def _seen_at(fact: object) -> int:
    at = fact.get("at") if isinstance(fact, Mapping) else None
    return at if isinstance(at, int) else 0


# -- the log in sentences

_PLAIN: Mapping[str, str] = {
    "order.completed": _("The service says that the order is completed."),
    "order.not_written": _("Not written to the till: {why}."),
    "order.ready": _("Told the service that it is ready."),
    "order.preparing": _("Told the service that it is being prepared."),
    "order.accepted": _("Told the service that it is accepted."),
    "order.cancelled": _("Told the service that it is cancelled: {code}."),
    "order.wait": _("The till did not accept it: {reason}. It is tried again."),
    "order.on_paper": _("The till could not accept it ({why}), so it was printed: NOT IN TILL."),
    "order.held": _("It was too old to be printed without somebody asking for it."),
    "order.to_cancel": _("It is to be cancelled: {code}."),
    "order.call_refused": _(
        "The service refused the call {call} ({status} {code}): it is not made again unless "
        "somebody asks for it."
    ),
    "order.too_late": _(
        "The store was not integrated for so long that the call {call} is not made any more unless "
        "somebody asks for it."
    ),
    "order.seen": _("{by} has seen what there was to see of it."),
    "ticket.left": _("The till has its ticket after all: it has to be removed there by hand."),
    "ticket.taken_back": _("A ticket too many was taken back out of the till: {why}."),
    "order.untold": _("The service could not be told ({call}): {code}. It is told again."),
    "ticket.accepted": _("The kitchen has accepted it."),
    "ticket.preparing": _("The kitchen is preparing it."),
    "ticket.ready": _("The kitchen says that it is ready."),
    "ticket.completed": _("The till says that it is completed."),
    "order.retried": _("Tried again, as {by} asked."),
}
_REJECTED: Mapping[str, str] = {
    "item_unavailable": _("an item is not available"),
    "store_closed": _("the store is closed"),
    "pos_offline": _("the till is offline"),
    "capacity": _("too much to do"),
    "price_mismatch": _("a price is not right"),
}
_WITHDRAWN: Mapping[str, str] = {
    "never_written": _("The till never had its ticket."),
    "taken_back": _("Its ticket was taken back out of the till."),
    "left_to_person": _("Its ticket is still in the till, and has to be removed there by hand."),
}
_CLOSED: Mapping[str, str] = {
    "over": _("Nothing had happened for a day: it is over."),
    "order.closed_by_service": _("The service had finished it by itself."),
    "service.refused": _("The service refused what it was told ({call}): {code}."),
}
_HANDLED: Mapping[str, str] = {
    "typed": _("{by} has typed it into the till by hand."),
    "settled": _("{by} has settled it by hand; the bridge does nothing more."),
}


def sentence(event: str, detail: Mapping[str, Any]) -> str:
    """Return what happened as a sentence; the event's own name where there is none for it."""
    found = _chosen(event, detail)
    text = found.format_map(_Fields(detail)) if found else f"{event}."
    if detail.get("already"):
        text += " " + _("It knew already.")
    if isinstance(detail.get("ms"), int):
        text += " " + _("The call took {ms} ms.").format(ms=detail["ms"])
    return text


class _Fields(dict[str, Any]):
    def __getitem__(self, name: str) -> object:
        value = self.get(name)
        return by_whom(value) if name == "by" else "?" if value in (None, "") else value


def _chosen(event: str, detail: Mapping[str, Any]) -> str:
    match event:
        case "order.received":
            lines = detail.get("lines")
            count = lines if isinstance(lines, int) else 0
            return ngettext("Taken in: {n} line.", "Taken in: {n} lines.", count).format(n=count)
        case "order.written":
            if detail.get("reference"):
                return _("The till has it as ticket {reference}.")
            return _("The till has it.")
        case "order.check_found":
            return _found(detail)
        case "ticket.rejected":
            return _rejected(detail)
        case "order.withdrawn":
            return _WITHDRAWN.get(str(detail.get("how")), "")
        case "order.closed":
            return _CLOSED.get(str(detail.get("why")), _("Closed."))
        case "order.handled":
            return _HANDLED.get(str(detail.get("how")), "")
        case "order.to_cancel" if detail.get("by"):
            return _("{by} cancels it: {code}.")
        case _:
            return _PLAIN.get(event, "")


def _rejected(detail: Mapping[str, Any]) -> str:
    reasons = (_REJECTED.get(str(detail.get("reason"))), str(detail.get("message") or ""))
    why = "; ".join(each for each in reasons if each)
    text = _("The kitchen rejected it: {why}.") if why else _("The kitchen rejected it.")
    # What the till says is text from outside, which is no place for further fields.
    return text.replace("{why}", why.rstrip(".").replace("{", "{{").replace("}", "}}"))


def _found(detail: Mapping[str, Any]) -> str:
    parts = []
    for name, text in (
        ("unknown_items", _("not on the menu: {what}")),
        ("prices", _("other prices than the menu's: {what}")),
        ("currency", _("another currency than the store's: {what}")),
        ("quantities", _("it does not say how many of: {what}")),
    ):
        if found := detail.get(name):
            listed = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
            parts.append(text.format(what=listed))
    # What was found holds text from outside, which is no place for further fields.
    return (_("Looked odd: ") + "; ".join(parts) + ".").replace("{", "{{").replace("}", "}}")
