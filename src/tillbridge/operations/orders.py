"""Orders: lists, one whole, and what people do about one."""

from typing import TYPE_CHECKING, Annotated, Literal

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.i18n import _, reader
from tillbridge.core.operation import Answer, Argument, operation

if TYPE_CHECKING:
    from datetime import date

    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.ledger.models import OrderRow
    from tillbridge.operations.bridge import Bridge


_FIRST_YEAR, _LAST_YEAR = 2000, 2100


# Those of the specification.
Reason = Literal[
    "ITEM_OUT_OF_STOCK", "STORE_CLOSED", "POS_OFFLINE", "CAPACITY", "PRICE_MISMATCH", "OTHER"
]
OrderId = Annotated[
    str,
    Argument(
        "ORDER",
        _("The order's number, as on the ticket; or its id."),
        complete="orders",
        audit="target",
    ),
]


@operation("orders.list", role=Role.LOOK, reads=True)
async def search_orders(
    bridge: "Bridge",
    *,
    text: str = "",
    state: str = "",
    store: str = "",
    kind: str = "",
    day: str = "",
    page: int = 1,
) -> Answer:
    """Return a page of orders, newest first; `unseen` counts new ones that nobody has looked at.

    `text` is part of a number, an id, a ticket's reference, a dish, a table or a guest's name;
    `state` one of `orders.STATES`, `kind` "delivery", "pickup" or "dine_in", `day` "2026-11-23" in
    the reader's time zone; "" for all. `sound`: whether new orders ring.
    """
    from tillbridge.ledger.orders import OrderFilter
    from tillbridge.orders.sentences import raw_types
    from tillbridge.orders.views import orders_page

    now, zone = bridge.clock.now_ms(), reader().zone
    asked = day_of_orders(day)
    since, until = (None, None) if asked is None else span_of_day(asked)
    wanted = OrderFilter(
        text,
        state,
        (store,) if store in bridge.settings.stores else None,
        since=since,
        until=until,
        types=raw_types(kind) if kind else None,
    )
    found = await bridge.ledger.read(orders_page, wanted, max(1, page), now, zone)
    return {**found, "sound": bridge.settings.status_page.new_orders_sound}


def day_of_orders(typed: str) -> "date | None":
    """Return a day; None for no day, and for one that makes no sense or has no neighbours."""
    from datetime import date

    try:
        day = date.fromisoformat(typed)
    except ValueError:
        return None
    return day if _FIRST_YEAR <= day.year < _LAST_YEAR else None


def span_of_day(day: "date") -> tuple[int, int]:
    """Return when a day begins and ends in the reader's time zone, in ms; the end is excluded."""
    from tillbridge.model.instant import ONE_DAY, day_starts

    return day_starts(day, reader().zone), day_starts(day + ONE_DAY, reader().zone)


@operation("orders.show", role=Role.LOOK, reads=True)
async def show(bridge: "Bridge", order: OrderId) -> Answer:
    """Return an order whole; of several with the same number the newest, open ones first."""
    from tillbridge.orders.views import details_called

    return await bridge.ledger.read(details_called, order)


@operation("orders.seen", role=Role.STAFF)
async def seen(bridge: "Bridge") -> Answer:
    """Acknowledge the new orders: they stop ringing."""
    from tillbridge.orders.views import SEEN

    now = bridge.clock.now_ms()
    await bridge.ledger.put_fact("", SEEN, {"at": now}, at=now)
    return {"ok": True, "text": _("Acknowledged the new orders.")}


@operation("order.retry", role=Role.STAFF, command="orders retry")
async def retry(bridge: "Bridge", order: OrderId) -> Answer:
    """Try at once what still has to be done for an order.

    A ticket that the till may already have is looked for before it is written again. An order that
    was too old to be printed is printed now.

    Example: tillbridge orders retry 1007
    """
    row, found = await _found(bridge, order)
    text = await found.orders.retry(row.order_id, by=current_actor().who)
    return {"ok": True, "text": bridge.later(text)}


@operation("order.cancel", role=Role.STAFF, command="orders cancel")
async def cancel(
    bridge: "Bridge",
    order: OrderId,
    *,
    reason_code: Annotated[
        Reason,
        Argument(
            "CODE",
            _("One of the service's reason codes."),
            option="--reason",
            audit="reason_code",
        ),
    ],
) -> Answer:
    """Cancel an order: the customer is refunded and told the reason.

    CODE: ITEM_OUT_OF_STOCK, STORE_CLOSED, POS_OFFLINE, CAPACITY, PRICE_MISMATCH or OTHER.

    Example: tillbridge orders cancel 1007 --reason STORE_CLOSED
    """
    from tillbridge.model.order import ReasonCode

    row, found = await _found(bridge, order)
    code = ReasonCode(reason_code)
    text = await found.orders.cancel(row.order_id, code, by=current_actor().who)
    return {"ok": True, "text": bridge.later(text)}


@operation("order.done", role=Role.STAFF, command="orders done")
async def done(
    bridge: "Bridge",
    order: OrderId,
    *,
    how: Annotated[
        Literal["typed", "settled"],
        Argument(
            "HOW",
            _("typed: you typed it into the till; settled: you dealt with it in another way."),
            audit="how",
        ),
    ] = "settled",
) -> Answer:
    """Mark an order as handled: the bridge stops trying.

    An order that was typed into the till is accepted at the service. An order that is settled is
    left to you. It also closes the reminder about an order that was printed as NOT IN TILL.

    Example: tillbridge orders done 1007 --how typed
    """
    row, found = await _found(bridge, order)
    text = await found.orders.done(row.order_id, how, by=current_actor().who)
    return {"ok": True, "text": bridge.later(text)}


async def _found(bridge: "Bridge", name: str) -> "tuple[OrderRow, StoreServices]":
    from tillbridge.ledger.orders import find_called
    from tillbridge.orders.views import single_order

    rows = await bridge.ledger.read(find_called, name)
    row = single_order([row for row in rows if row.store in bridge.settings.stores], name)
    return row, bridge.store(row.store)
