"""Deliveries and orders: the inbox, one row for each order, its log, and pages of orders.

Every delivery is committed before it is acknowledged (invariant 1). It is identified by its signed
event id; the delivery id in the header is not signed. Instants are ms since the epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert  # SQLite has its ON CONFLICT, too
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.database import all_rows, among, first_row
from tillbridge.ledger.models import Delivery, LogEntry, NewDelivery, OrderRow, TicketState
from tillbridge.model.numbers import whole
from tillbridge.model.order import OrderState

# -- deliveries


def which_are_new(deliveries: Sequence[NewDelivery], new: set[tuple[str, str]]) -> list[bool]:
    """Return for each delivery whether its store and event are in `new`; of two, the first is."""
    recorded = []
    for each in deliveries:
        key = (each.store, each.event_id)
        recorded.append(key in new)
        new.discard(key)
    return recorded


# The queries of every step of an order are made once: making one costs ten times its execution.
_OF_STORE: BindParameter[str] = bindparam("of_store")
_OPEN_DELIVERIES = (
    select(Delivery)
    .where(col(Delivery.handled_at).is_(None), col(Delivery.id) > bindparam("after"))
    .order_by(col(Delivery.id))
    .limit(bindparam("at_most"))
)
_OPEN_DELIVERIES_OF_STORE = _OPEN_DELIVERIES.where(col(Delivery.store) == _OF_STORE)
_HANDLED = update(Delivery).where(
    col(Delivery.id) == bindparam("of_delivery"), col(Delivery.handled_at).is_(None)
)


def open_deliveries(
    connection: Connection, limit: int, *, store: str | None = None, after: int = 0
) -> list[Delivery]:
    """Return the oldest unhandled deliveries, in the order of their arrival.

    `store` restricts to one store, `after` to larger row ids.
    """
    query = _OPEN_DELIVERIES if store is None else _OPEN_DELIVERIES_OF_STORE
    return all_rows(connection, query, of_store=store, after=after, at_most=limit)


def handled(connection: Connection, delivery: int, outcome: str, at: int) -> None:
    """Mark the delivery with this row id as handled; `outcome` is a short dotted name."""
    now = {"of_delivery": delivery, "handled_at": at, "outcome": outcome}
    connection.execute(_HANDLED, now)


def has_delivery(connection: Connection, store: str, delivery_id: str) -> bool:
    """Return whether a delivery with this id (of its header) is stored."""
    query = select(col(Delivery.id)).filter_by(store=store, delivery_id=delivery_id)
    return connection.execute(query.limit(1)).first() is not None


def delivery_of(connection: Connection, store: str, event_id: str) -> Delivery | None:
    """Return the delivery of an event; None once it is pruned."""
    return first_row(connection, select(Delivery).filter_by(store=store, event_id=event_id))


# -- orders

UNWRITTEN = frozenset({TicketState.WAITING, TicketState.WRITING})

# The beginning of a ticket's reference if it was printed because the till could not accept it.
ON_PAPER = "not in till"
PERHAPS_ON_PAPER_ONLY = "perhaps not in till"  # the till did not say whether it also has it
BY_HAND = "by hand"  # the reference of a ticket that a person typed in
_PAPER = (ON_PAPER, PERHAPS_ON_PAPER_ONLY)

_OLDEST_FIRST = (col(OrderRow.received_at), col(OrderRow.order_id))
_SAME_NUMBER = 20  # orders of different days or stores
_OF_ORDER: BindParameter[str] = bindparam("of_order")
_IS_IT = (col(OrderRow.store) == _OF_STORE, col(OrderRow.order_id) == _OF_ORDER)
_ORDER = select(OrderRow).where(*_IS_IT)
_CHANGED_ORDER = update(OrderRow).where(*_IS_IT)
_NEW_ORDER = insert(OrderRow).on_conflict_do_nothing().returning(col(OrderRow.order_id))
_NEW_ENTRY = insert(LogEntry)
_LAST_AT = (
    select(col(LogEntry.at))
    .where(
        col(LogEntry.store) == _OF_STORE,
        col(LogEntry.order_id) == _OF_ORDER,
        col(LogEntry.event) == bindparam("of_event"),
    )
    .order_by(col(LogEntry.id).desc())
    .limit(1)
)
_NEWEST_FIRST = (col(OrderRow.received_at).desc(), col(OrderRow.order_id))


def is_on_paper(row: OrderRow) -> bool:
    """Return whether the order was printed instead of entered, and nobody has handled it yet."""
    return row.ticket is TicketState.WRITTEN and row.ticket_reference in _PAPER


def insert_order(connection: Connection, row: OrderRow) -> bool:
    """Insert the order; return False if the store already has that id: the first one stays."""
    return connection.execute(_NEW_ORDER, dict(row)).first() is not None


def update_order(connection: Connection, store: str, order_id: str, at: int, **values: Any) -> None:  # noqa: ANN401 -- columns of several types
    """Set the named columns of the order."""
    changed = {"of_store": store, "of_order": order_id, "updated_at": at, **values}
    connection.execute(_CHANGED_ORDER, changed)


def get_order(connection: Connection, store: str, order_id: str) -> OrderRow | None:
    """Return the order, or None."""
    return first_row(connection, _ORDER, of_store=store, of_order=order_id)


def find_called(connection: Connection, name: str) -> list[OrderRow]:
    """Return the order with this id, or else all orders with this number, newest first.

    The number may start with #.
    """
    with_id = all_rows(connection, select(OrderRow).filter_by(order_id=name))
    return with_id or with_number(connection, name)


def with_number(connection: Connection, number: str) -> list[OrderRow]:
    """Return the orders with this number, newest first; none for no number."""
    number = number.strip().removeprefix("#").strip()
    if not number:
        return []
    is_it = col(OrderRow.order_number).in_((number, f"#{number}"))
    query = select(OrderRow).where(is_it)
    return all_rows(connection, query.order_by(*_NEWEST_FIRST).limit(_SAME_NUMBER))


def unseen_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something that nobody has seen yet, oldest first."""
    return _of_store(connection, store, col(OrderRow.unseen) != {})


def open_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something left to do, in the order of their arrival."""
    return _of_store(connection, store, col(OrderRow.closed_at).is_(None))


def orders_on_paper(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's printed orders that nobody has handled, finished or not."""
    is_written = col(OrderRow.ticket) == TicketState.WRITTEN
    return _of_store(connection, store, is_written, col(OrderRow.ticket_reference).in_(_PAPER))


def never_written_since(connection: Connection, store: str, since_ms: int) -> list[OrderRow]:
    """Return cancelled orders closed since then that were being written and left no ticket.

    A write whose outcome is unknown may still take effect afterwards.
    """
    return _of_store(
        connection,
        store,
        col(OrderRow.ticket) == TicketState.REFUSED,
        col(OrderRow.desired_state) == OrderState.CANCELLED,
        col(OrderRow.closed_at) >= since_ms,
        col(OrderRow.attempts) > 0,
    )


def was_never_written(row: OrderRow) -> bool:
    """Return whether `never_written_since` is about such an order."""
    return (
        row.ticket is TicketState.REFUSED
        and row.desired_state is OrderState.CANCELLED
        and row.closed_at is not None
        and row.attempts > 0
    )


def cancelled_among(connection: Connection, store: str, order_ids: Collection[str]) -> set[str]:
    """Return which of the orders are cancelled."""
    query = select(col(OrderRow.order_id)).where(among(col(OrderRow.order_id), order_ids))
    cancelled = query.filter_by(store=store, desired_state=OrderState.CANCELLED)
    return set(connection.scalars(cancelled))


def latest_orders(
    connection: Connection, chosen: "OrderFilter", limit: int = 100
) -> list[OrderRow]:
    """Return the matching orders that were received last, newest first."""
    query = select(OrderRow).where(*_where(chosen))
    return all_rows(connection, query.order_by(*_NEWEST_FIRST).limit(limit))


def latest_but(connection: Connection, store: str, place: int, since_ms: int) -> int | None:
    """Return when (ms) the `place`th latest order was received, counting from 1.

    Cancelled orders do not count; None if fewer were received since then.
    """
    query = (
        select(col(OrderRow.received_at))
        .where(
            col(OrderRow.store) == store,
            col(OrderRow.received_at) > since_ms,
            col(OrderRow.desired_state) != OrderState.CANCELLED,
        )
        .order_by(col(OrderRow.received_at).desc())
        .offset(max(0, place - 1))
        .limit(1)
    )
    return connection.scalar(query)


def _of_store(connection: Connection, store: str, *where: ColumnElement[bool]) -> list[OrderRow]:
    query = select(OrderRow).where(col(OrderRow.store) == store, *where)
    return all_rows(connection, query.order_by(*_OLDEST_FIRST))


# -- the log of an order, for people: dotted events, never customer data


def log_event(
    connection: Connection, store: str, order_id: str, event: str, at: int, **detail: object
) -> None:
    """Add an entry to the order's log."""
    entry = {"store": store, "order_id": order_id, "at": at, "event": event, "detail": detail}
    connection.execute(_NEW_ENTRY, entry)


def read_log(connection: Connection, store: str, order_id: str) -> list[LogEntry]:
    """Return the order's log, oldest entry first."""
    query = select(LogEntry).filter_by(store=store, order_id=order_id)
    return all_rows(connection, query.order_by(col(LogEntry.id)))


def event_of(entries: Sequence[LogEntry]) -> str:
    """Return the id of the event that brought the order, "" if the log does not say."""
    found = (each.detail.get("event_id") for each in entries)
    return next((each for each in found if isinstance(each, str)), "")


def last_at(connection: Connection, store: str, order_id: str, event: str) -> int | None:
    """Return when `event` last happened to the order (ms since the epoch); None: never."""
    return connection.scalar(_LAST_AT, {"of_store": store, "of_order": order_id, "of_event": event})


# -- pages of orders

PER_PAGE = 50
STATES = ("waiting", "open", "over", "cancelled", "failed", "by_hand")
_LONGEST_QUERY = 100


@dataclass(frozen=True, slots=True)
class OrderFilter:
    """Which orders to list.

    `text` matches part of an order's id or number, its ticket's reference, a dish, the table or the
    guest's name, as long as the ledger has what was ordered. `state` is "" (all), "waiting" (the
    till does not have it yet), "open", "over", "cancelled", "failed" (cancelled, or never written)
    or "by_hand". `stores` None: of all. `since` and `until` bound the time of receipt (ms; `until`
    is excluded). `types` are values of `order_type`, in lower case with underscores.
    """

    text: str = ""
    state: str = ""
    stores: Collection[str] | None = None
    since: int | None = None
    until: int | None = None
    types: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class SoldOrder:
    """An order as needed for day totals; `total` in minor units, None if unknown."""

    received_at: int
    cancelled: bool
    currency: str
    total: int | None


@dataclass(frozen=True, slots=True)
class OrderPage:
    """A page of orders, newest first; `handled` has who handled an order by hand, by order id."""

    rows: Sequence[OrderRow]
    count: int
    handled: Mapping[str, LogEntry]


def find_page(
    connection: Connection, chosen: OrderFilter, *, page: int = 1, per_page: int = PER_PAGE
) -> OrderPage:
    """Return a page of the matching orders, and how many there are in total."""
    where = _where(chosen)
    query = select(OrderRow).where(*where).order_by(*_NEWEST_FIRST)
    rows = all_rows(connection, query.limit(per_page).offset((page - 1) * per_page))
    return OrderPage(rows, _count(connection, *where), _handled(connection, rows))


def sold(connection: Connection, chosen: OrderFilter) -> list[SoldOrder]:
    """Return the time of receipt and the total of the matching orders."""
    path = "$.total_amount"
    is_whole = func.json_type(_PAYLOAD, path) == "integer"
    query = select(
        col(OrderRow.received_at),
        col(OrderRow.desired_state) == OrderState.CANCELLED,
        func.coalesce(func.json_extract(_PAYLOAD, "$.currency"), ""),
        case((is_whole, func.json_extract(_PAYLOAD, path))),
    ).where(*_where(chosen))
    return [
        SoldOrder(at, bool(cancelled), str(currency).upper(), whole(amount))
        for at, cancelled, currency, amount in connection.execute(query)
    ]


def handled_entry(connection: Connection, row: OrderRow) -> LogEntry | None:
    """Return the log entry of whoever handled the order by hand, or None."""
    return _handled(connection, [row]).get(row.order_id)


def received_since(
    connection: Connection, at: int, *, stores: Collection[str] | None = None
) -> int:
    """Return how many orders were received after `at` (ms)."""
    return _count(connection, col(OrderRow.received_at) > at, *_where(OrderFilter(stores=stores)))


def _count(connection: Connection, *where: ColumnElement[bool]) -> int:
    return connection.scalar(select(func.count()).select_from(OrderRow).where(*where)) or 0


def _where(chosen: OrderFilter) -> list[ColumnElement[bool]]:
    cancelled = col(OrderRow.desired_state) == OrderState.CANCELLED
    is_open = col(OrderRow.closed_at).is_(None)
    by_state: dict[str, list[ColumnElement[bool]]] = {
        "waiting": [is_open, col(OrderRow.ticket).in_(UNWRITTEN), ~cancelled],
        "open": [is_open],
        "over": [~is_open],
        "cancelled": [cancelled],
        "failed": [cancelled | (col(OrderRow.ticket) == TicketState.REFUSED)],
        "by_hand": [_by_hand()],
    }
    parts = by_state.get(chosen.state, [])
    if chosen.stores is not None:
        parts.append(col(OrderRow.store).in_(chosen.stores))
    if chosen.since is not None:
        parts.append(col(OrderRow.received_at) >= chosen.since)
    if chosen.until is not None:
        parts.append(col(OrderRow.received_at) < chosen.until)
    if chosen.types is not None:
        written = func.lower(func.coalesce(func.json_extract(_PAYLOAD, "$.order_type"), ""))
        plain = func.replace(func.replace(written, "-", "_"), " ", "_")
        parts.append(plain.in_(chosen.types))
    if text := chosen.text.strip()[:_LONGEST_QUERY]:
        parts.append(_fits(text))
    return parts


# What the service sent, as long as it is kept.
_PAYLOAD = case((func.json_valid(col(OrderRow.payload)) == 1, col(OrderRow.payload)), else_="{}")
_GUEST_AND_TABLE = ("$.customer.name", "$.customer_name", "$.table_name", "$.table.name", "$.table")


def _fits(text: str) -> ColumnElement[bool]:
    """Return whether an order matches a text; longer parts are searched in every case."""
    number = text.removeprefix("#")
    names = (OrderRow.order_id, OrderRow.order_number, OrderRow.ticket_reference)
    by_name = [col(name).icontains(number, autoescape=True) for name in names if number]
    # SQLite only knows ASCII capitals.
    spellings = {text} if text.isascii() else {text, text.lower(), text.upper(), text.capitalize()}
    tree = func.json_tree(_PAYLOAD, "$.items").table_valued("key", "atom")
    inside: list[ColumnElement[bool]] = []
    for each in spellings:
        dish = tree.c.atom.icontains(each, autoescape=True)
        inside += [
            exists().select_from(tree).where(tree.c.key == "product_name", dish),
            *(
                func.json_extract(_PAYLOAD, path).icontains(each, autoescape=True)
                for path in _GUEST_AND_TABLE
            ),
            func.json_extract(_PAYLOAD, "$.special_instructions").istartswith(
                each if each.lower().startswith("table ") else f"table {each}", autoescape=True
            ),
        ]
    found = or_(*inside)
    if text.isascii() and text.replace(" ", "").isalnum():
        # A dish occurs in the text unchanged, so most orders need not be parsed.
        found = col(OrderRow.payload).icontains(text, autoescape=True) & found
    return or_(*by_name, found)


def _by_hand() -> ColumnElement[bool]:
    """Return whether a person had to step in."""
    asked = and_(
        col(LogEntry.event) == "order.to_cancel",
        func.json_extract(col(LogEntry.detail), "$.by").is_not(None),
    )
    of_order = and_(
        col(LogEntry.store) == col(OrderRow.store), col(LogEntry.order_id) == col(OrderRow.order_id)
    )
    by_person = col(LogEntry.event).in_(("order.handled", "order.retried"))
    return exists().where(of_order, by_person | asked).correlate(OrderRow)


def _handled(connection: Connection, rows: Sequence[OrderRow]) -> dict[str, LogEntry]:
    query = select(LogEntry).where(
        col(LogEntry.store).in_({row.store for row in rows}),
        col(LogEntry.order_id).in_([row.order_id for row in rows]),
        col(LogEntry.event).in_(("order.handled", "order.retried")),
    )
    found = {each.order_id: each for each in all_rows(connection, query.order_by(col(LogEntry.id)))}
    # If it was retried afterwards, it is no longer in that person's hands.
    return {key: each for key, each in found.items() if each.event == "order.handled"}
