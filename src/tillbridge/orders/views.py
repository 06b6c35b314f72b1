"""An order as people and programs see it: JSON for commands and the page, and its log in sentences.

The views of one row are pure; a page of orders and a whole one are read within one transaction.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, tzinfo
from typing import Any, TypedDict

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import local_second
from tillbridge.core.i18n import N_, _
from tillbridge.ledger import orders
from tillbridge.ledger.community import parent_of
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import items_then
from tillbridge.ledger.models import Delivery, LogEntry, OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, event_of, is_on_paper, read_log
from tillbridge.model.instant import ONE_DAY, day_of, day_starts, to_iso
from tillbridge.model.order import UNCLEAR, Order, OrderLine, OrderOption, OrderState, parse_order
from tillbridge.orders.reasons import customer_text
from tillbridge.orders.sentences import (
    Bill,
    Dish,
    Step,
    bill_of,
    dishes_of,
    kind_of,
    sentence,
    table_of,
    timeline,
)
from tillbridge.orders.state import FINAL

_MEANT = 10
_DELIVERED = N_("Received from the ordering service, verified and saved.")


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
    """How much was ordered, in short; `total` in minor units.

    `kind` is "delivery", "pickup", "dine_in" or "" where nobody knows; `dishes` are the first
    lines, and `more` counts the others.
    """

    items: int
    total: int | None
    currency: str
    kind: str
    table: str
    dishes: Sequence[Dish]
    more: int


class BriefOrder(OrderView, Worth):
    """An order as a list has it."""


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
    """An item on the menu when it was ordered; `price` in minor units.

    `size` is the name of the variant that was ordered, "" for none.
    """

    name: str
    size: str
    price: int
    on_sale: bool


class OrderedLine(OrderedOption):
    """A line of an order; `menu` in a whole order alone."""

    external_id: str | None
    variant: str | None
    options: list[OrderedOption]
    menu: MenuThen | None


class Ordered(TypedDict):
    """What was ordered; amounts in minor units. `kind` and `table` as in `Worth`."""

    lines: list[OrderedLine]
    total: int | None
    currency: str
    instructions: str
    order_type: str
    kind: str
    table: str
    bill: Bill


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


class Namesake(TypedDict):
    """Another order with the same number."""

    id: str
    store: str
    received_at: str
    open: bool


class OrderDetails(OrderView):
    """An order with its lines, what one may do about it, and all that happened to it.

    `order` is what the service sent; it and `ordered` are None once they are forgotten.
    `guest_text` is what the guest of a cancelled order reads, "" for the others; `same_number`
    are other orders with its number, the newest first.
    """

    timeline: list[Step]
    guest_text: str
    same_number: list[Namesake]

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


def brief_order(row: OrderRow) -> BriefOrder:
    """Return an order as a list has it."""
    return {**order_view(row), **worth_view(row)}


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
        (row.received_at, "delivery.kept", ids, _(_DELIVERED)),
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
    order = _parsed(row)
    if order is None:
        return None
    return {
        "lines": [_line(line) for line in order.lines],
        "total": order.total_amount,
        "currency": order.currency,
        "instructions": order.special_instructions,
        "order_type": order.order_type,
        "kind": kind_of(order.order_type),
        "table": table_of(order),
        "bill": bill_of(order.payload),
    }


def _parsed(row: OrderRow) -> Order | None:
    try:
        return parse_order(json.loads(row.payload)) if row.payload else None
    except ValueError:
        return None


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
    """Return the order that is meant by an id or a number: of several the only one still open.

    Raises BridgeError if there is none, and where several may be meant: it lists them.
    """
    if not rows:
        raise no_such_order(name)
    are_open = [row for row in rows if row.closed_at is None]
    if len(rows) == 1 or len(are_open) == 1:
        return rows[0] if len(rows) == 1 else are_open[0]
    meant = are_open or rows
    listed = [
        _("{number} of {time} in {store} ({id})").format(
            number=name, time=local_second(row.received_at), store=row.store, id=row.order_id
        )
        for row in meant[:_MEANT]
    ]
    more = len(meant) - len(listed)
    if more > 0:
        listed.append(_("and {count} more").format(count=more))
    raise BridgeError(
        _("There are several orders {order}: {orders}.").format(
            order=name, orders="; ".join(listed)
        ),
        fix=_("Use the id in brackets to say which one."),
    )


def no_such_order(name: str) -> BridgeError:
    """Return the failure of a name that no order has."""
    return BridgeError(
        _("There is no order {order}.").format(order=name),
        fix=_("List the orders with: tillbridge orders list"),
    )


def details_called(connection: Connection, name: str) -> OrderDetails:
    """Return an order whole, by its id or number: of several the newest, open ones first.

    Raises BridgeError if there is none.
    """
    rows = orders.find_called(connection, name)
    if not rows:
        raise no_such_order(name)
    return order_details(connection, next((row for row in rows if row.closed_at is None), rows[0]))


def order_details(connection: Connection, row: OrderRow) -> OrderDetails:
    """Return an order with its lines, the menu's items then, and all that happened to it."""
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
        "timeline": timeline(row, entries),
        "guest_text": customer_text(row.reason_code)
        if row.desired_state is OrderState.CANCELLED
        else "",
        "same_number": [
            {
                "id": each.order_id,
                "store": each.store,
                "received_at": to_iso(each.received_at),
                "open": each.closed_at is None,
            }
            for each in orders.with_number(connection, row.order_number)
            if (each.store, each.order_id) != (row.store, row.order_id)
        ],
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
    """Add to each line its item on the menu when the order was placed."""
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
            "size": "" if variant is None else variant.variant_name,
            "price": item.price if variant is None else variant.price,
            "on_sale": item.available and (variant is None or variant.available),
        }


def worth_view(row: OrderRow) -> Worth:
    """Return how much was ordered, in short."""
    order = _parsed(row)
    if order is None:
        nothing: Worth = {
            "items": 0, "total": None, "currency": "", "kind": "", "table": "", "dishes": (),
            "more": 0,
        }  # fmt: skip
        return nothing
    dishes, more = dishes_of(order)
    return {
        "items": sum(line.quantity for line in order.lines),
        "total": order.total_amount,
        "currency": order.currency,
        "kind": kind_of(order.order_type),
        "table": table_of(order),
        "dishes": dishes,
        "more": more,
    }


# -- Pages of orders, newest first, with the totals of their days. Read within one transaction.


SEEN = "orders_seen"  # the fact: up to when somebody has looked at new orders (ms)
_NEW_MS = 4 * 3_600_000


class ListedOrder(BriefOrder):
    """An order of a page, its day where the store is, and whether it is new to whoever looks."""

    new: bool
    day: str


class DayTotals(TypedDict):
    """The orders of a day (`2026-11-23`, where the store is) that fit what was asked for.

    `count` includes the cancelled ones, `revenue` (minor units by currency) does not. `amounts`
    says whether the amounts of all are still known.
    """

    day: str
    count: int
    cancelled: int
    revenue: dict[str, int]
    amounts: bool


class OrdersPage(TypedDict):
    """A page of orders, newest first; `unseen` counts the new ones that nobody has looked at.

    `days` has the totals of each day that is on the page, the newest first; `today` is the day
    where the store is.
    """

    today: str
    days: list[DayTotals]
    orders: list[ListedOrder]
    count: int
    page: int
    pages: int
    unseen: int


def orders_page(
    connection: Connection,
    wanted: orders.OrderFilter,
    page: int,
    now: int,
    zone: tzinfo | None = None,
) -> OrdersPage:
    """Return a page of orders, newest first; days are those of `zone` (None: this machine's)."""
    found = orders.find_page(connection, wanted, page=page)
    # What is older than some hours needs no more noise.
    seen = max(_seen_at(get_fact(connection, "", SEEN)), now - _NEW_MS)
    return {
        "orders": [
            {
                **order_view(row, found.handled.get(row.order_id)),
                "new": row.received_at > seen,
                "day": day_of(row.received_at, zone).isoformat(),
                **worth_view(row),
            }
            for row in found.rows
        ],
        "days": _day_totals(connection, wanted, [row.received_at for row in found.rows], zone),
        "today": day_of(now, zone).isoformat(),
        "count": found.count,
        "page": page,
        "pages": max(1, -(-found.count // orders.PER_PAGE)),
        "unseen": orders.received_since(connection, seen, stores=wanted.stores),
    }


def _day_totals(
    connection: Connection,
    wanted: orders.OrderFilter,
    shown: Sequence[int],
    zone: tzinfo | None,
) -> list[DayTotals]:
    """Return the totals of the days of these instants (ms), of all orders that are wanted."""
    if not shown:
        return []
    first, last = day_of(min(shown), zone), day_of(max(shown), zone)
    days = {day_of(at, zone) for at in shown}
    span = replace(wanted, since=day_starts(first, zone), until=day_starts(last + ONE_DAY, zone))
    totals: dict[date, DayTotals] = {}
    for sold in orders.sold(connection, span):
        day = day_of(sold.received_at, zone)
        if day not in days:
            continue
        of_day = totals.setdefault(
            day,
            {"day": day.isoformat(), "count": 0, "cancelled": 0, "revenue": {}, "amounts": True},
        )
        of_day["count"] += 1
        if sold.cancelled:
            of_day["cancelled"] += 1
        elif sold.total is None:
            of_day["amounts"] = False
        else:
            revenue = of_day["revenue"]
            revenue[sold.currency] = revenue.get(sold.currency, 0) + sold.total
    return [totals[day] for day in sorted(totals, reverse=True)]


def _seen_at(fact: object) -> int:
    at = fact.get("at") if isinstance(fact, Mapping) else None
    return at if isinstance(at, int) else 0
