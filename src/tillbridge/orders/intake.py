"""Processes the deliveries of the inbox: makes orders of them, each in a write of its own.

The receiver has verified the signature and that the body is an envelope of this store; here only
`data` is read. Specification: Events, POS envelope. It does not show the data of order.delivered:
the order's id is looked for where such a body would have it (`id`, `order_id`, or an `order` object
with one).
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sqlalchemy import Connection

from tillbridge.config.store import StoreSettings
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger import menu, orders
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import prices_around
from tillbridge.ledger.models import Delivery, OrderRow, TicketState
from tillbridge.ledger.problems import report
from tillbridge.model.money import to_major
from tillbridge.model.numbers import parse_finite_float, printable
from tillbridge.model.order import (
    Order,
    OrderLine,
    OrderOption,
    OrderState,
    ReasonCode,
    parse_order,
    unclear_quantities,
)
from tillbridge.orders.events import Delivered
from tillbridge.orders.reasons import ChecksFailed, cancellation
from tillbridge.orders.repository import OrderRepository, SetAside, commit, save
from tillbridge.orders.state import Change, decide

log = get_logger()

OnFinding = Literal["write_and_warn", "cancel"]
BATCH = 64
UNREADABLE = "order.unreadable"
# The service's clock and this machine's differ a little, and a pushed price takes a moment.
_GRACE_MS = 60_000
_line = partial(printable, most=60)  # of a text that a stranger wrote


# -- what a delivery says


@dataclass(frozen=True, slots=True)
class OrderCreated:
    """A new order; `payload` is its data as ASCII JSON."""

    order: Order
    payload: str


@dataclass(frozen=True, slots=True)
class OrderDelivered:
    """The service says that the order is completed."""

    order_id: str


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event that changes nothing here; it is stored and acknowledged."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event about an order that does not identify the order; `text` says why."""

    text: str


def read_event(
    event_type: str, body: bytes
) -> OrderCreated | OrderDelivered | OtherEvent | Unreadable:
    """Return what the delivery says. Total: whatever cannot be read is Unreadable."""
    if event_type not in {"order.created", "order.delivered"}:
        return OtherEvent()
    try:
        envelope = json.loads(body, parse_float=parse_finite_float)
        data = envelope["data"] if isinstance(envelope, Mapping) else None
    except KeyError:
        return Unreadable("the event has no data")
    except (ValueError, RecursionError):
        return Unreadable("the event is not JSON")
    if event_type == "order.delivered":
        order_id = _delivered_id(data)
        if order_id is None:
            return Unreadable("the event does not say which order was delivered")
        return OrderDelivered(order_id)
    try:
        order, payload = parse_order(data), json.dumps(data)
    except (ValueError, RecursionError) as failure:
        return Unreadable(str(failure))
    # JSON allows halves of characters that UTF-8 does not.
    if not order.id.isprintable():
        return Unreadable("the order's id is not text")
    return OrderCreated(order, payload)


def _delivered_id(data: object) -> str | None:
    nested = data.get("order") if isinstance(data, Mapping) else None
    places = [place for place in (data, nested) if isinstance(place, Mapping)]
    ids = (place.get(name) for place in places for name in ("id", "order_id"))
    return next(
        (each for each in ids if isinstance(each, str) and each.isprintable() and each), None
    )


def order_of(order_id: str, payload: str) -> Order:
    """Return an order as it is written to a POS; only its id where the rest is forgotten ("").

    An amount beyond all numbers, which an earlier version stored and JSON does not have, is none.
    """
    if not payload:
        return for_ticket(parse_order({"id": order_id}))
    data = json.loads(payload, parse_float=parse_finite_float, parse_constant=lambda _name: None)
    return for_ticket(parse_order(data))


def for_ticket(order: Order) -> Order:
    """Return an order as it is written to a POS.

    Where a quantity is not clear the kitchen reads so in the note, whatever the POS makes of it.
    """
    unclear = unclear_quantities(order)
    if not unclear:
        return order
    ask = _("[ASK HOW MANY: {names}]").format(names=", ".join(unclear))
    # Behind what the guest says: some tills read the table at its head.
    note = " ".join(filter(None, [order.special_instructions, ask]))
    return replace(order, special_instructions=note)


# -- whether its lines are those of the menu that was shown when it was placed
#
# Nothing here refuses an order: the checks say what they found, and the store's policy decides
# whether it is written with a warning or cancelled (settings `unknown_item` and `price_differs`).


# What the menu showed when an order was placed, by external id of an item, variant or add-on, in
# minor units: several prices where a change was so fresh that either may have been seen.
Prices = Mapping[str, Collection[int]]


@dataclass(frozen=True, slots=True)
class Findings:
    """What does not fit, one plain phrase each, without the customer's data.

    `currency` is the order's where it is not the store's, else "".
    """

    unknown_items: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    currency: str = ""
    quantities: tuple[str, ...] = ()

    def entry(self) -> dict[str, object]:
        """Return all that was found, for the order's log."""
        always = {"unknown_items": self.unknown_items, "prices": self.prices}
        found = {"currency": self.currency, "quantities": self.quantities}
        return {**always, **{name: what for name, what in found.items() if what}}


def findings(order: Order, prices: Prices | None, currency: str) -> Findings | None:
    """Return what does not fit the menu, None if all does.

    Without a menu (a fresh ledger) only quantities and the currency can be checked.
    """
    lines, prices = ((), {}) if prices is None else (order.lines, prices)
    differing: list[str] = []
    unknown: list[str] = []
    for line in lines:
        for thing, priced_by in _priced(line):
            if thing.external_id is None:
                nameless = _("{name} (no external_id)")
                unknown.append(nameless.format(name=_line(thing.product_name)))
            elif thing.external_id not in prices:
                unknown.append(f"{_line(thing.product_name)} ({_line(thing.external_id)})")
            shown = prices.get(priced_by or "")
            if thing.unit_price is not None and shown and thing.unit_price not in shown:
                differs = _("{name} ({id}) was ordered for {ordered}, the menu said {shown}")
                differing.append(
                    differs.format(
                        name=_line(thing.product_name),
                        id=_line(priced_by or ""),
                        ordered=_money(thing.unit_price, currency),
                        shown=" / ".join(_money(price, currency) for price in sorted(shown)),
                    )
                )
        variant = line.variant_external_id
        if variant is not None and variant not in prices:
            unknown.append(f"{_line(line.product_name)} ({_line(variant)})")
    other = _line(order.currency) if order.currency not in {"", currency} else ""
    unclear = tuple(map(_line, unclear_quantities(order)))
    if not (unknown or differing or other or unclear):
        return None
    return Findings(tuple(unknown), tuple(differing), other, unclear)


def _priced(line: OrderLine) -> list[tuple[OrderLine | OrderOption, str | None]]:
    """Return the line and its options, each with the id of what it is priced by."""
    options = [(option, option.external_id) for option in line.options]
    return [(line, line.variant_external_id or line.external_id), *options]


def named_ids(order: Order) -> frozenset[str]:
    """Return every external id that the order names."""
    priced = [each for line in order.lines for each in _priced(line)]
    ids = {
        *(thing.external_id for thing, _id in priced),
        *(priced_by for _thing, priced_by in priced),
    }
    return frozenset(each for each in ids if each and each.isprintable())


def unseen_of(found: Findings, currency: str, now_ms: int) -> dict[str, dict[str, object]]:
    """Return what a person has to see of the findings, by problem code."""
    phrases = {
        "order.unknown_item": found.unknown_items,
        "order.price_differs": found.prices,
        "order.quantity_unclear": found.quantities,
    }
    unseen: dict[str, dict[str, object]] = {
        code: {"at": now_ms, "detail": in_short(each)} for code, each in phrases.items() if each
    }
    if found.currency:
        other = {"at": now_ms, "theirs": found.currency, "ours": currency}
        unseen["order.other_currency"] = other
    return unseen


def verdict(
    found: Findings, unknown_item: OnFinding, price_differs: OnFinding
) -> ChecksFailed | None:
    """Return why the policy cancels the order, or None if it is written."""
    if found.unknown_items and unknown_item == "cancel":
        return ChecksFailed(ReasonCode.ITEM_OUT_OF_STOCK, in_short(found.unknown_items))
    if (found.prices or found.currency) and price_differs == "cancel":
        other = (_("the order is in {currency}").format(currency=found.currency),)
        return ChecksFailed(ReasonCode.PRICE_MISMATCH, in_short(found.prices or other))
    return None


def in_short(phrases: tuple[str, ...]) -> str:
    """Return the first of several phrases, and how many more there are."""
    first, more = phrases[0], len(phrases) - 1
    return _("{first} (and {count} more)").format(first=first, count=more) if more else first


def _money(minor: int, currency: str) -> str:
    try:
        return to_major(minor, currency)
    except ArithmeticError:  # more digits than any money has
        return _line(str(minor))


# -- the transaction


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What came of a delivery; `change` is what it made of an order, None for nothing.

    `outcome` is that of the inbox: order, duplicate (the first payload counts), delivered,
    delivered_before (completed before it came: it is not cooked again), kept, unreadable; or that
    an order was resumed after a restart. `logged` is what no change logs.
    """

    outcome: str
    event_type: str
    change: Change | None = None
    logged: Mapping[str, object] = field(default_factory=dict)


def process_delivery(
    connection: Connection, store: str, settings: StoreSettings, delivery: Delivery, now_ms: int
) -> IntakeResult:
    """Process a delivery, and mark it handled."""
    match read_event(delivery.event_type, delivery.body):
        case OrderCreated(order, payload):
            result = _created(connection, settings, order, payload, delivery, now_ms)
        case OrderDelivered(order_id):
            change = commit(connection, store, order_id, Delivered(), now_ms)
            if change is None:  # its order.created is still to come
                orders.log_event(connection, store, order_id, "order.completed", now_ms)
            unknown = {"order": order_id, "known": False} if change is None else {}
            result = IntakeResult("delivered", delivery.event_type, change, unknown)
        case Unreadable(text):
            found = Found(UNREADABLE, delivery.event_id, {"detail": text})
            scope = Scope.of_one(UNREADABLE, store, delivery.event_id)
            report(connection, scope, [found], now_ms)
            why = {"event_id": delivery.event_id, "why": text}
            result = IntakeResult("unreadable", delivery.event_type, logged=why)
        case _:
            kind = {"event_type": delivery.event_type}
            result = IntakeResult("kept", delivery.event_type, logged=kind)
    orders.handled(connection, delivery.id, result.outcome, now_ms)
    return result


def _created(
    connection: Connection,
    settings: StoreSettings,
    order: Order,
    payload: str,
    delivery: Delivery,
    now_ms: int,
) -> IntakeResult:
    """Insert the order as it begins: to be written, or over, or cancelled by the policy."""
    store, received_at = delivery.store, delivery.received_at
    row = OrderRow(
        store=store,
        order_id=order.id,
        order_number=order.order_number.encode("utf-8", "replace").decode(),
        payload=payload,
        placed_at=order.placed_at,
        received_at=received_at,
        desired_state=OrderState.CREATED,
        service_state=OrderState.ACCEPTED if settings.auto_accept_orders else OrderState.CREATED,
        updated_at=now_ms,
    )
    received = {"lines": len(order.lines), "event_id": delivery.event_id}
    begun, entries = Change(row, row), [("order.received", received)]
    outcome, logged = "order", {}
    if orders.last_at(connection, store, order.id, "order.completed") is not None:
        outcome, logged = "delivered_before", {"order": order.id}
        begun = replace(decide(row, Delivered(), now_ms), entries=())
        entries.append(("order.not_written", {"why": "completed before it arrived"}))
    else:
        at_ms = order.placed_at or received_at
        around = prices_around(connection, store, named_ids(order), at_ms, grace_ms=_GRACE_MS)
        prices = {each: shown for each, shown in around.items() if shown}
        is_known = bool(prices) or menu.item_count(connection, store) > 0
        found = findings(order, prices if is_known else None, settings.currency)
        failed = None
        if found is not None:
            row = row.replace(unseen=unseen_of(found, settings.currency, now_ms))
            entries.append(("order.check_found", found.entry()))
            failed = verdict(found, settings.orders.unknown_item, settings.orders.price_differs)
        if failed is not None:
            begun = decide(row, cancellation(failed), now_ms)
        elif _may_be_in_pos(connection, order, received_at):
            begun = Change(row, row.replace(ticket=TicketState.WRITING))
        else:
            begun = Change(row, row)
    entries += begun.entries
    change = Change(None, begun.after, tuple(entries), begun.event, for_ticket(order))
    if not save(connection, change, now_ms):
        return IntakeResult("duplicate", delivery.event_type, logged={"order": order.id})
    return IntakeResult(outcome, delivery.event_type, change, logged)


def _may_be_in_pos(connection: Connection, order: Order, received_at: int) -> bool:
    """Return whether a ledger that was lost may have had this order written already."""
    rebuilt = get_fact(connection, "", "rebuilt")
    if not isinstance(rebuilt, Mapping) or not isinstance(rebuilt.get("at_ms"), int):
        return False
    return bool(min(received_at, order.placed_at or 0) <= rebuilt["at_ms"] + _GRACE_MS)


# -- the worker

# How an outcome is logged that no change of an order shows.
_LOGGED = {
    "duplicate": ("info", "order.duplicate"),
    "delivered": ("info", "order.completed"),
    "delivered_before": ("warning", "order.delivered_before"),
    "kept": ("info", "event.kept"),
    "unreadable": ("error", "order.unreadable"),
}


class Intake:
    """Processes what the receiver has committed.

    `results` is what came of deliveries, for whoever takes it from there; `on_processed` is called
    with each.
    """

    def __init__(
        self,
        settings: StoreSettings,
        repository: OrderRepository,
        on_processed: Callable[[], None],
    ) -> None:
        self.results: deque[IntakeResult] = deque()
        self._on_processed = on_processed
        self._settings = settings
        self._orders = repository
        self._aside = SetAside("intake", repository)  # by the delivery's row id
        self.worker = Worker("intake", self._step, repository.supervisor, repository.clock)
        self.worker.wake()  # what was committed before this start of the process
        # Since when (monotonic, s) something waits and none of it is processed; None: nothing is.
        self.behind_since: float | None = time.monotonic()

    def deliveries_arrived(self) -> None:
        """Look into the inbox."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self.worker.wake()

    async def _step(self) -> float | None:
        """Process what has been delivered, the oldest first; return when the next try is due.

        A delivery that cannot be processed is set aside and tried again later; the others continue.
        The writes of a batch share a commit.
        """
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        try:
            more = True
            while more:
                skip, now_ms = self._aside.not_due(), self._orders.clock.now_ms()
                found = await self._orders.ledger.read(
                    orders.open_deliveries, BATCH + len(skip), store=self._orders.store
                )
                waiting = [each for each in found if each.id not in skip]
                writes = [
                    self._orders.write(process_delivery, self._settings, each, now_ms)
                    for each in waiting
                ]
                done = await asyncio.gather(*writes, return_exceptions=True)
                self.behind_since = time.monotonic()
                for delivery, result in zip(waiting, done, strict=True):
                    if isinstance(result, BaseException):
                        self._aside.failed(delivery.id, result, order=delivery.event_id)
                        continue
                    self._aside.works(delivery.id)
                    if result.logged:
                        level, event = _LOGGED[result.outcome]
                        getattr(log, level)(event, store=self._orders.store, **result.logged)
                    self.results.append(result)
                    self._on_processed()
                more = len(waiting) >= BATCH
        finally:
            # What raises is tried again; that nothing gets on meanwhile ends no process.
            self.behind_since = None
        return self._aside.due_in()
