"""Finding orders and items: pages of orders, items by a few letters. Instants are in ms."""

import json
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, exists, func, or_, select
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.menu import items_by_id
from tillbridge.ledger.menu_codec import AcceptedItem, item_from
from tillbridge.ledger.models import (
    Delivery,
    LogEntry,
    MenuItem,
    OrderRow,
    TicketState,
    all_rows,
    first_row,
)
from tillbridge.ledger.orders import UNWRITTEN
from tillbridge.model.order import OrderState

# -- orders, page by page


PER_PAGE = 50
# What shows that a person had to step in.
_HANDS = ("order.handled", "order.retried")
_LONGEST_QUERY = 100


@dataclass(frozen=True, slots=True)
class OrderFilter:
    """Which orders to list.

    `text` is part of an order's id or number, or of its ticket's reference. `state` is "" (all),
    "waiting" (the till does not have it yet), "open", "over", "cancelled", "failed" (cancelled, or
    never written) or "by_hand". `stores` None: of all.
    """

    text: str = ""
    state: str = ""
    stores: Collection[str] | None = None


STATES = ("waiting", "open", "over", "cancelled", "failed", "by_hand")


@dataclass(frozen=True, slots=True)
class OrderPage:
    """A page of orders, newest first; `handled` tells who handled which by hand, by order id."""

    rows: Sequence[OrderRow]
    count: int
    handled: Mapping[str, LogEntry]


def find_page(
    connection: Connection, wanted: OrderFilter, *, page: int = 1, per_page: int = PER_PAGE
) -> OrderPage:
    """Return a page of the orders that are wanted, and how many there are in all."""
    where = _where(wanted)
    count = connection.execute(select(func.count()).select_from(OrderRow).where(where)).scalar_one()
    found = all_rows(
        connection,
        select(OrderRow)
        .where(where)
        .order_by(col(OrderRow.received_at).desc(), col(OrderRow.order_id))
        .limit(per_page)
        .offset((page - 1) * per_page),
    )
    return OrderPage(found, count, _handled(connection, found))


def handled_entry(connection: Connection, store: str, order_id: str) -> LogEntry | None:
    """Return who has seen to the order by hand, and how; None for nobody."""
    return _handled_query(connection, [order_id], [store]).get(order_id)


def arrived(connection: Connection, store: str, event_id: str) -> Delivery | None:
    """Return the delivery of an event; None once it is forgotten."""
    return first_row(connection, select(Delivery).filter_by(store=store, event_id=event_id))


def received_since(
    connection: Connection, at: int, *, stores: Collection[str] | None = None
) -> int:
    """Return how many orders were received after `at` (ms)."""
    query = select(func.count()).select_from(OrderRow).where(col(OrderRow.received_at) > at)
    if stores is not None:
        query = query.where(col(OrderRow.store).in_(stores))
    return connection.execute(query).scalar_one()


def _where(wanted: OrderFilter) -> ColumnElement[bool]:
    parts: list[ColumnElement[bool]] = [col(OrderRow.received_at).is_not(None)]
    if wanted.stores is not None:
        parts.append(col(OrderRow.store).in_(wanted.stores))
    if text := wanted.text.strip()[:_LONGEST_QUERY]:
        parts.append(
            or_(
                *(
                    column.icontains(text, autoescape=True)
                    for column in (
                        col(OrderRow.order_id),
                        col(OrderRow.order_number),
                        col(OrderRow.ticket_reference),
                    )
                )
            )
        )
    cancelled = col(OrderRow.desired_state) == OrderState.CANCELLED
    is_open = col(OrderRow.closed_at).is_(None)
    match wanted.state:
        case "waiting":
            unwritten = col(OrderRow.ticket).in_(UNWRITTEN)
            parts += [is_open, unwritten, ~cancelled]
        case "open":
            parts.append(is_open)
        case "over":
            parts.append(~is_open)
        case "cancelled":
            parts.append(cancelled)
        case "failed":
            parts.append(cancelled | (col(OrderRow.ticket) == TicketState.REFUSED))
        case "by_hand":
            parts.append(_by_hand())
        case _:
            pass
    return and_(*parts)


def _of_order() -> ColumnElement[bool]:
    return and_(
        col(LogEntry.store) == col(OrderRow.store), col(LogEntry.order_id) == col(OrderRow.order_id)
    )


def _by_hand() -> ColumnElement[bool]:
    asked = and_(
        col(LogEntry.event) == "order.to_cancel",
        func.json_extract(col(LogEntry.detail), "$.by").is_not(None),
    )
    return exists().where(_of_order(), col(LogEntry.event).in_(_HANDS) | asked).correlate(OrderRow)


def _handled(connection: Connection, rows: Sequence[OrderRow]) -> dict[str, LogEntry]:
    if not rows:
        return {}
    return _handled_query(connection, [row.order_id for row in rows], {row.store for row in rows})


def _handled_query(
    connection: Connection, order_ids: Collection[str], stores: Collection[str]
) -> dict[str, LogEntry]:
    query = select(LogEntry).where(
        col(LogEntry.store).in_(stores),
        col(LogEntry.order_id).in_(order_ids),
        col(LogEntry.event).in_(("order.handled", "order.retried")),
    )
    entries = all_rows(connection, query.order_by(col(LogEntry.id)))
    found = {each.order_id: each for each in entries}
    # Whoever has it tried again afterwards takes it out of that person's hands.
    return {key: each for key, each in found.items() if each.event == "order.handled"}


# -- items by a few letters, best first: the names are read for each question


_LONGEST_ITEM_QUERY = 60


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item, or a variant of one (`variant` is then its name)."""

    external_id: str
    name: str
    price: int
    on_sale: bool
    item_id: str  # of the item it is a variant of, or its own
    variant: str = ""
    pos_on_sale: bool = True


@dataclass(frozen=True, slots=True)
class FoundItems:
    """A page of what was found, best first, and how many there are in all.

    `count` is of lines, where each size has one of its own; `items_count` is of items.
    """

    items: Sequence[FoundItem]
    count: int
    items_count: int


def find_items(
    connection: Connection, store: str, text: str, *, limit: int, offset: int = 0
) -> FoundItems:
    """Return the items whose name, initials or id fit `text`; all by name where it is empty."""
    wanted = fold(text.strip()[:_LONGEST_ITEM_QUERY])
    ranked = sorted(
        (rank, folded, external_id, item_id)
        for external_id, item_id, name in _names(connection, store)
        if (rank := rank_of(wanted, folded := fold(name), external_id)) is not None
    )
    page = ranked[offset : offset + limit]
    known = items_by_id(connection, store, {each[3] for each in page})
    found = [
        made
        for _rank, _folded, external_id, item_id in page
        if item_id in known and (made := _found(known[item_id], external_id)) is not None
    ]
    return FoundItems(found, len(ranked), len({each[3] for each in ranked}))


def fold(text: str) -> str:
    """Return the text as it is compared: without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


def rank_of(wanted: str, name: str, external_id: str) -> int | None:
    """Return how well a folded name fits, 0 best; None where it does not.

    It begins so; its words begin so ("ma pi" too); its initials ("pm"); its id; somewhere in it.
    """
    if not wanted or name.startswith(wanted):
        return 0
    words = name.split()
    if all(any(word.startswith(part) for word in words) for part in wanted.split()):
        return 1
    if "".join(word[:1] for word in words).startswith(wanted):
        return 2
    if fold(external_id).startswith(wanted):
        return 3
    return 4 if wanted in name else None


def _names(connection: Connection, store: str) -> Iterator[tuple[str, str, str]]:
    """Yield id, id of its item, and name of all items and variants."""
    variants = case((func.instr(col(MenuItem.body), '"variants":') > 0, col(MenuItem.body)))
    rows = connection.execute(
        select(
            col(MenuItem.external_id), func.json_extract(col(MenuItem.body), "$.name"), variants
        ).where(col(MenuItem.store) == store)
    )
    for external_id, name, body in rows:
        yield external_id, external_id, name
        if body is not None:
            for each in item_from(json.loads(body)).variants:
                yield each.external_id, external_id, f"{name} {each.variant_name}"


def _found(accepted: AcceptedItem, external_id: str) -> FoundItem | None:
    item = accepted.item
    if item.external_id == external_id:
        return FoundItem(
            external_id,
            item.name,
            item.price,
            item.available,
            external_id,
            pos_on_sale=accepted.pos_available,
        )
    for each in item.variants:
        if each.external_id == external_id:
            on_sale = item.available and each.available
            said = accepted.pos_variants.get(external_id, each.available)
            return FoundItem(
                external_id,
                item.name,
                each.price,
                on_sale,
                item.external_id,
                each.variant_name,
                said,
            )
    return None
