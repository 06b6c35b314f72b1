"""Takes deliveries out of the inbox and makes orders of them, in one write for several.

The receiver has verified the signature and that the body is an envelope of this store; here only
`data` is read. Specification: Events, POS envelope. It does not show the data of order.delivered:
the order's id is looked for where such a body would have it (`id`, `order_id`, or an `order` object
with one).
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sqlalchemy import Connection

from tillbridge.config import StoreSettings
from tillbridge.core.errors import LedgerError
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
from tillbridge.model.numbers import parse_finite_float
from tillbridge.model.order import (
    Order,
    OrderLine,
    OrderOption,
    OrderState,
    ReasonCode,
    parse_order,
    unclear_quantities,
)
from tillbridge.orders.reasons import Cancellation, ChecksFailed, cancellation
from tillbridge.orders.repository import (
    OrderRepository,
    SetAside,
    commit,
    insert,
    report_unknown,
)
from tillbridge.orders.state import CANCELLED_UNSEEN, Change, Delivered, Entry

log = get_logger()

OnFinding = Literal["write_and_warn", "cancel"]
BATCH = 64
UNREADABLE = "order.unreadable"
_NONE: AbstractSet[int] = frozenset()
# The service's clock and this machine's differ a little, and a pushed price takes a moment.
_GRACE_MS = 60_000


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
    """An event that changes nothing here; it is kept and acknowledged."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event about an order from which the order cannot be told; `text` says why."""

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
        return _delivered_order(data)
    try:
        order, payload = parse_order(data), json.dumps(data)
    except (ValueError, RecursionError) as failure:
        return Unreadable(str(failure))
    # JSON allows halves of characters that UTF-8 does not.
    if not order.id.isprintable():
        return Unreadable("the order's id is not text")
    return OrderCreated(order, payload)


def _delivered_order(data: object) -> OrderDelivered | Unreadable:
    nested = data.get("order") if isinstance(data, Mapping) else None
    for place in (data, nested):
        if isinstance(place, Mapping):
            for order_id in (place.get("id"), place.get("order_id")):
                if isinstance(order_id, str) and order_id and order_id.isprintable():
                    return OrderDelivered(order_id)
    return Unreadable("the event does not say which order was delivered")


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


@dataclass(frozen=True, slots=True)
class MenuThen:
    """The menu as it was when an order was placed.

    `prices` holds, by external id of an item, variant or add-on, what was shown, in minor units:
    all of them where a change was so fresh that either may have been seen, none where the thing is
    known and its price is not.
    """

    prices: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Findings:
    """What does not fit, one plain phrase each, without the customer's data.

    `currency` is the order's where it is not the store's, else "".
    """

    unknown_items: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    currency: str = ""
    quantities: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown_items or self.prices or self.currency or self.quantities)

    def entry(self) -> dict[str, object]:
        """Return all that was found, for the order's log."""
        always = {"unknown_items": self.unknown_items, "prices": self.prices}
        found = {"currency": self.currency, "quantities": self.quantities}
        return {**always, **{name: what for name, what in found.items() if what}}


def named_ids(order: Order) -> frozenset[str]:
    """Return every external id that the order names."""
    ids: set[str | None] = set()
    for line in order.lines:
        ids.update((line.external_id, line.variant_external_id))
        ids.update(option.external_id for option in line.options)
    return frozenset(each for each in ids if each and each.isprintable())


def findings(order: Order, menu: MenuThen | None, currency: str) -> Findings:
    """Return what does not fit the menu; without one (a fresh ledger) only the currency can."""
    prices: list[str] = []
    unknown: list[str] = []
    if menu is not None:
        for line in order.lines:
            not_there, other_prices = _check_line(line, menu, currency)
            unknown += not_there
            prices += other_prices
    other = _short(order.currency) if order.currency not in {"", currency} else ""
    return Findings(
        tuple(unknown), tuple(prices), other, tuple(map(_short, unclear_quantities(order)))
    )


def unseen_of(found: Findings, currency: str, now_ms: int) -> dict[str, dict[str, object]]:
    """Return what a person has to see of the findings, by problem code."""
    unseen: dict[str, dict[str, object]] = {}
    for code, phrases in (
        ("order.unknown_item", found.unknown_items),
        ("order.price_differs", found.prices),
        ("order.quantity_unclear", found.quantities),
    ):
        if phrases:
            unseen[code] = {"at": now_ms, "detail": in_short(phrases)}
    if found.currency:
        unseen["order.other_currency"] = {
            "at": now_ms,
            "theirs": found.currency,
            "ours": currency,
        }
    return unseen


def verdict(
    found: Findings, unknown_item: OnFinding, price_differs: OnFinding
) -> ChecksFailed | None:
    """Return why the policy cancels the order, or None where it is written."""
    if found.unknown_items and unknown_item == "cancel":
        return ChecksFailed(ReasonCode.ITEM_OUT_OF_STOCK, in_short(found.unknown_items))
    if (found.prices or found.currency) and price_differs == "cancel":
        other = (_("the order is in {currency}").format(currency=found.currency),)
        return ChecksFailed(ReasonCode.PRICE_MISMATCH, in_short(found.prices or other))
    return None


def in_short(phrases: tuple[str, ...]) -> str:
    """Return the first of several phrases, and how many more there are."""
    more = len(phrases) - 1
    return (
        phrases[0]
        if not more
        else _("{first} (and {count} more)").format(first=phrases[0], count=more)
    )


def _check_line(line: OrderLine, menu: MenuThen, currency: str) -> tuple[list[str], list[str]]:
    """Return what of the line is not on the menu, and what has another price there."""
    unknown, prices = [], []
    things: list[tuple[OrderLine | OrderOption, str | None]] = [
        (line, line.variant_external_id or line.external_id)
    ]
    things += [(option, option.external_id) for option in line.options]
    for thing, priced_by in things:
        name, external_id = _short(thing.product_name), thing.external_id
        if external_id is None:
            unknown.append(_("{name} (no external_id)").format(name=name))
        elif external_id not in menu.prices:
            unknown.append(f"{name} ({_short(external_id)})")
        shown = menu.prices.get(priced_by or "", frozenset())
        if thing.unit_price is not None and shown and thing.unit_price not in shown:
            differs = _("{name} ({id}) was ordered for {ordered}, the menu said {shown}").format(
                name=name,
                id=_short(priced_by or ""),
                ordered=_money(thing.unit_price, currency),
                shown=" / ".join(_money(price, currency) for price in sorted(shown)),
            )
            prices.append(differs)
    variant = line.variant_external_id
    if variant is not None and variant not in menu.prices:
        unknown.append(f"{_short(line.product_name)} ({_short(variant)})")
    return unknown, prices


def _money(minor: int, currency: str) -> str:
    try:
        return to_major(minor, currency)
    except ArithmeticError:  # more digits than any money has
        return _short(str(minor))


def _short(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)[:60]


# -- the transaction


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What came of a delivery; `change` is what it made of an order, None for nothing.

    `outcome` is that of the inbox: order, duplicate (the first payload counts), delivered,
    delivered_before (completed before it came: it is not cooked again), kept, unreadable.
    `cancelled` where the policy ends a new order at once; `logged` is what no change logs.
    """

    outcome: str
    event_type: str
    change: Change | None = None
    cancelled: Cancellation | None = None
    logged: Mapping[str, object] = field(default_factory=dict)


def take_in(
    connection: Connection,
    store: str,
    settings: StoreSettings,
    now_ms: int,
    *,
    skip: AbstractSet[int] = _NONE,
) -> list[TakenIn]:
    """Take in the oldest open deliveries of the store and mark them handled, all or none.

    Those with a row id in `skip` are left as they are.
    """
    waiting = orders.open_deliveries(connection, BATCH + len(skip), store=store)
    return [
        take_one(connection, store, settings, each, now_ms)
        for each in waiting
        if each.id not in skip
    ]


def take_one(
    connection: Connection, store: str, settings: StoreSettings, delivery: Delivery, now_ms: int
) -> TakenIn:
    """Take in this delivery, and mark it handled."""
    match read_event(delivery.event_type, delivery.body):
        case OrderCreated(order, payload):
            taken = _created(connection, settings, order, payload, delivery, now_ms)
        case OrderDelivered(order_id):
            change = commit(connection, store, order_id, Delivered(), now_ms)
            if change is None:  # its order.created is still to come
                orders.log_event(connection, store, order_id, "order.completed", now_ms)
            unknown = {"order": order_id, "known": False} if change is None else {}
            taken = TakenIn("delivered", delivery.event_type, change, logged=unknown)
        case Unreadable(text):
            found = Found(UNREADABLE, delivery.event_id, {"detail": text})
            scope = Scope(store, frozenset({UNREADABLE}), delivery.event_id)
            report(connection, scope, [found], now_ms)
            why = {"event_id": delivery.event_id, "why": text}
            taken = TakenIn("unreadable", delivery.event_type, logged=why)
        case _:
            kind = {"event_type": delivery.event_type}
            taken = TakenIn("kept", delivery.event_type, logged=kind)
    orders.handled(connection, delivery.id, taken.outcome, now_ms)
    return taken


def _created(
    connection: Connection,
    settings: StoreSettings,
    order: Order,
    payload: str,
    delivery: Delivery,
    now_ms: int,
) -> TakenIn:
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
    entries: list[Entry] = [
        ("order.received", {"lines": len(order.lines), "event_id": delivery.event_id})
    ]
    outcome, cancelled = "order", None
    if orders.has_event(connection, store, order.id, "order.completed"):
        outcome = "delivered_before"
        row = row.replace(
            ticket=TicketState.REFUSED,
            desired_state=OrderState.COMPLETED,
            service_state=OrderState.COMPLETED,
            closed_at=now_ms,
        )
        entries.append(("order.not_written", {"why": "completed before it arrived"}))
    else:
        found = _check(connection, settings, order, store, order.placed_at or received_at)
        row = row.replace(unseen=unseen_of(found, settings.currency, now_ms))
        if found:
            entries.append(("order.check_found", found.entry()))
        failed = verdict(found, settings.orders.unknown_item, settings.orders.price_differs)
        if failed is not None:
            cancelled = cancellation(failed)
            row = _cancelled(row, cancelled, now_ms)
            detail = {"code": cancelled.code, "message": cancelled.message}
            entries.append(("order.to_cancel", detail))
        elif _may_be_in_pos(connection, order, received_at):
            row = row.replace(ticket=TicketState.WRITING)
    change = Change(None, row, tuple(entries), order=for_ticket(order))
    if not insert(connection, change, now_ms):
        return TakenIn("duplicate", delivery.event_type, logged={"order": order.id})
    report_unknown(connection, store, order.id, now_ms, unknown=False)
    before = {"order": order.id} if outcome == "delivered_before" else {}
    return TakenIn(outcome, delivery.event_type, change, cancelled, before)


def _check(
    connection: Connection, settings: StoreSettings, order: Order, store: str, at_ms: int
) -> Findings:
    """Compare the order with what the menu said when it was placed, where one is known."""
    prices = prices_around(connection, store, named_ids(order), at_ms, grace_ms=_GRACE_MS)
    then = MenuThen({each: frozenset(shown) for each, shown in prices.items() if shown})
    is_known = bool(then.prices) or menu.item_count(connection, store) > 0
    return findings(order, then if is_known else None, settings.currency)


def _cancelled(row: OrderRow, cancelled: Cancellation, now_ms: int) -> OrderRow:
    """Return the row of an order that is never written."""
    return row.replace(
        ticket=TicketState.REFUSED,
        desired_state=OrderState.CANCELLED,
        reason_code=cancelled.code,
        message=cancelled.message,
        unseen={**row.unseen, CANCELLED_UNSEEN: {"at": now_ms, "cause": cancelled.cause}},
    )


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
    """Takes in what the receiver has committed; `on_taken` hears what came of each delivery."""

    def __init__(
        self,
        settings: StoreSettings,
        repository: OrderRepository,
        on_taken: Callable[[TakenIn], Awaitable[None]],
    ) -> None:
        self._on_taken = on_taken
        self._settings = settings
        self._orders = repository
        self._aside = SetAside("intake", repository)  # by the delivery's row id
        self.worker = Worker("intake", self._step, repository.supervisor, repository.clock)
        self.worker.wake()  # what was committed before this start of the process
        # Since when (monotonic, s) something waits and nothing of it was taken in; None: all is in.
        self.behind_since: float | None = time.monotonic()

    def deliveries_arrived(self) -> None:
        """Look into the inbox."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self.worker.wake()

    async def _step(self) -> float | None:
        """Take in what has been delivered, and publish each change after the commit.

        A delivery that cannot be taken in is set aside, and tried again later; the others go on.
        Returns in how many seconds the first of them is due.
        """
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        try:
            more = True
            while more:
                taken, more = await self._take_batch()
                self.behind_since = time.monotonic()
                for each in taken:
                    if each.logged:
                        level, event = _LOGGED[each.outcome]
                        getattr(log, level)(event, store=self._orders.store, **each.logged)
                    if each.change is not None:
                        self._orders.publish(each.change)
                    # A failure of it must not cost the order.
                    await self._orders.supervisor.attempt("effects", partial(self._on_taken, each))
        finally:
            # What raises is tried again; that nothing gets on meanwhile ends no process.
            self.behind_since = None
        return self._aside.due_in()

    async def _take_batch(self) -> tuple[list[TakenIn], bool]:
        """Take in one batch; return it, and whether more may wait besides what is set aside."""
        now_ms, skip = self._orders.clock.now_ms(), self._aside.not_due()
        try:
            taken = await self._orders.write(take_in, self._settings, now_ms, skip=skip)
        except LedgerError:
            raise
        except Exception:  # noqa: BLE001 -- one of them cannot be taken in, whatever the cause
            taken = await self._take_singly(now_ms, skip)
            return taken, bool(taken)
        for key in self._aside.waiting.keys() - skip:
            self._aside.works(key)
        return taken, len(taken) >= BATCH

    async def _take_singly(self, now_ms: int, skip: AbstractSet[int]) -> list[TakenIn]:
        """Take in one delivery after another, each by a write of its own; set the bad one aside."""
        taken: list[TakenIn] = []
        limit, store = BATCH + len(skip), self._orders.store
        waiting = await self._orders.ledger.read(
            lambda connection: orders.open_deliveries(connection, limit, store=store)
        )
        for each in waiting:
            if each.id in skip:
                continue
            try:
                taken.append(await self._orders.write(take_one, self._settings, each, now_ms))
            except LedgerError:
                raise
            except Exception as failure:  # noqa: BLE001 -- (as above)
                self._aside.failed(each.id, failure, order=each.event_id)
            else:
                if each.id in self._aside.waiting:
                    self._aside.works(each.id)
        return taken
