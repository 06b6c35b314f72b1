"""The one write that takes deliveries out of the inbox and makes orders of them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from tillbridge.core.problems import Found, Scope
from tillbridge.ledger import inbox, menu, orders
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu_past import prices_around
from tillbridge.ledger.orders import OrderRow, TicketState
from tillbridge.ledger.problems import report
from tillbridge.model.order import Order, OrderState
from tillbridge.orders.checks import (
    Findings,
    MenuThen,
    OnFinding,
    findings,
    named_ids,
    unseen_of,
    verdict,
)
from tillbridge.orders.commit import commit, insert, report_unknown
from tillbridge.orders.events import OrderCreated, OrderDelivered, Unreadable, read_event
from tillbridge.orders.reasons import Cancellation, cancellation
from tillbridge.orders.state import CANCELLED_UNSEEN
from tillbridge.orders.state import Delivered as ServiceDelivered

BATCH = 64
UNREADABLE = "order.unreadable"
_NONE: AbstractSet[int] = frozenset()
# The service's clock and this machine's differ a little, and a pushed price takes a moment.
_GRACE_MS = 60_000


@dataclass(frozen=True, slots=True)
class IntakePolicy:
    """The settings of a store that decide how an order begins."""

    store: str
    currency: str
    auto_accept_orders: bool
    unknown_item: OnFinding
    price_differs: OnFinding


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order that was taken in. `cancelled` where the policy ends it at once."""

    row: OrderRow
    lines: int
    found: Findings
    cancelled: Cancellation | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The service completed this order; not `known` where its order.created is still to come."""

    order_id: str
    known: bool


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An order that is known already came again; the first payload counts."""

    order_id: str


@dataclass(frozen=True, slots=True)
class DeliveredBefore:
    """An order came after the news that it is completed: it is not cooked again."""

    order_id: str


@dataclass(frozen=True, slots=True)
class Kept:
    """An event that changes nothing here."""

    event_type: str


@dataclass(frozen=True, slots=True)
class NotRead:
    """An event about an order that cannot be told from it."""

    event_id: str
    text: str


TakenIn = NewOrder | Delivered | Duplicate | DeliveredBefore | Kept | NotRead


def take_in(
    connection: Connection, policy: IntakePolicy, now_ms: int, *, skip: AbstractSet[int] = _NONE
) -> list[TakenIn]:
    """Take in the oldest open deliveries of the store and mark them handled, all or none.

    Those with a row id in `skip` are left as they are.
    """
    waiting = inbox.open_deliveries(connection, BATCH + len(skip), store=policy.store)
    return [take_one(connection, policy, each, now_ms) for each in waiting if each.id not in skip]


def take_one(
    connection: Connection, policy: IntakePolicy, waiting: inbox.OpenDelivery, now_ms: int
) -> TakenIn:
    """Take in this delivery, and mark it handled."""
    outcome, result = _take_one(connection, policy, waiting.delivery, now_ms)
    inbox.handled(connection, waiting.id, outcome, now_ms)
    return result


def _take_one(
    connection: Connection, policy: IntakePolicy, delivery: inbox.Delivery, now_ms: int
) -> tuple[str, TakenIn]:
    match read_event(delivery.event_type, delivery.body):
        case OrderCreated(order, payload):
            return _created(connection, policy, order, payload, delivery, now_ms)
        case OrderDelivered(order_id):
            return "delivered", _delivered(connection, policy.store, order_id, now_ms)
        case Unreadable(text):
            found = Found(UNREADABLE, delivery.event_id, {"detail": text})
            scope = Scope(policy.store, frozenset({UNREADABLE}), delivery.event_id)
            report(connection, scope, [found], now_ms)
            return "unreadable", NotRead(delivery.event_id, text)
        case _:
            return "kept", Kept(delivery.event_type)


def _created(
    connection: Connection,
    policy: IntakePolicy,
    order: Order,
    payload: str,
    delivery: inbox.Delivery,
    now_ms: int,
) -> tuple[str, TakenIn]:
    store, received_at = policy.store, delivery.received_at
    completed = orders.has_event(connection, store, order.id, "order.completed")
    found = findings(
        order,
        _menu_then(connection, store, order, order.placed_at or received_at),
        policy.currency,
    )
    failed = verdict(found, unknown_item=policy.unknown_item, price_differs=policy.price_differs)
    cancelled = None if completed or failed is None else cancellation(failed)
    row = _first_row(policy, order, payload, received_at, now_ms, cancelled)
    if completed:
        row = _completed(row, now_ms)
    else:
        row = replace(row, unseen=_unseen(found, policy.currency, cancelled, now_ms))
        if cancelled is None and _may_be_in_pos(connection, order, received_at):
            row = replace(row, ticket=TicketState.WRITING)
    if not insert(connection, row, now_ms):
        return "duplicate", Duplicate(order.id)
    report_unknown(connection, store, order.id, now_ms, unknown=False)

    def told(event: str, **detail: object) -> None:
        orders.log_event(connection, store, order.id, event, now_ms, **detail)

    told("order.received", lines=len(order.lines), event_id=delivery.event_id)
    if completed:
        told("order.not_written", why="completed before it arrived")
        return "delivered_before", DeliveredBefore(order.id)
    if found:
        told(
            "order.check_found",
            unknown_items=found.unknown_items,
            prices=found.prices,
            **({"currency": found.currency} if found.currency else {}),
            **({"quantities": found.quantities} if found.quantities else {}),
        )
    if cancelled is not None:
        told("order.to_cancel", code=cancelled.code, message=cancelled.message)
    return "order", NewOrder(row, len(order.lines), found, cancelled)


def _first_row(
    policy: IntakePolicy,
    order: Order,
    payload: str,
    received_at: int,
    now_ms: int,
    cancelled: Cancellation | None,
) -> OrderRow:
    return OrderRow(
        store=policy.store,
        order_id=order.id,
        order_number=order.order_number.encode("utf-8", "replace").decode(),
        payload=payload,
        placed_at=order.placed_at,
        received_at=received_at,
        ticket=TicketState.WAITING if cancelled is None else TicketState.REFUSED,
        wanted=OrderState.CREATED if cancelled is None else OrderState.CANCELLED,
        told=OrderState.ACCEPTED if policy.auto_accept_orders else OrderState.CREATED,
        reason_code=None if cancelled is None else cancelled.code,
        message="" if cancelled is None else cancelled.message,
        updated_at=now_ms,
    )


def _unseen(
    found: Findings, currency: str, cancelled: Cancellation | None, now_ms: int
) -> Mapping[str, Mapping[str, object]]:
    unseen = unseen_of(found, currency, now_ms)
    if cancelled is not None:
        unseen[CANCELLED_UNSEEN] = {"at": now_ms, "cause": cancelled.cause}
    return unseen


def _completed(row: OrderRow, now_ms: int) -> OrderRow:
    """Return the row of an order that is over before it came."""
    done = OrderState.COMPLETED
    return replace(row, ticket=TicketState.REFUSED, wanted=done, told=done, closed_at=now_ms)


def _menu_then(connection: Connection, store: str, order: Order, at_ms: int) -> MenuThen | None:
    """Return what the order's items cost when it was placed; None where no menu is known yet."""
    if not menu.item_count(connection, store):
        return None
    prices = prices_around(connection, store, named_ids(order), at_ms, grace_ms=_GRACE_MS)
    return MenuThen({each: frozenset(shown) for each, shown in prices.items() if shown})


def _may_be_in_pos(connection: Connection, order: Order, received_at: int) -> bool:
    """Return whether a ledger that was lost may have had this order written already."""
    rebuilt = get_fact(connection, "", "rebuilt")
    if not isinstance(rebuilt, Mapping) or not isinstance(rebuilt.get("at_ms"), int):
        return False
    return bool(min(received_at, order.placed_at or 0) <= rebuilt["at_ms"] + _GRACE_MS)


def _delivered(connection: Connection, store: str, order_id: str, now_ms: int) -> Delivered:
    change = commit(connection, store, order_id, ServiceDelivered(), now_ms)
    if change is None:
        orders.log_event(connection, store, order_id, "order.completed", now_ms)
    return Delivered(order_id, known=change is not None)
