"""Takes deliveries out of the inbox and makes orders of them, in one write for several."""

import time
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.supervision import backoff_s
from tillbridge.core.worker import Worker
from tillbridge.ledger import menu, orders
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu_past import prices_around
from tillbridge.ledger.models import Delivery, OrderRow, TicketState
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
from tillbridge.orders.commit import OrderRepository, commit, insert, report_unknown
from tillbridge.orders.events import (
    OrderCreated,
    OrderDelivered,
    Unreadable,
    for_ticket,
    read_event,
)
from tillbridge.orders.reasons import Cancellation, cancellation
from tillbridge.orders.state import CANCELLED_UNSEEN
from tillbridge.orders.state import Delivered as ServiceDelivered

log = get_logger()

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
    order: Order
    lines: int
    found: Findings
    cancelled: Cancellation | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The service completed this order; `row` is None where its order.created is still to come."""

    order_id: str
    row: OrderRow | None


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
    waiting = orders.open_deliveries(connection, BATCH + len(skip), store=policy.store)
    return [take_one(connection, policy, each, now_ms) for each in waiting if each.id not in skip]


def take_one(
    connection: Connection, policy: IntakePolicy, waiting: Delivery, now_ms: int
) -> TakenIn:
    """Take in this delivery, and mark it handled."""
    outcome, result = _take_one(connection, policy, waiting, now_ms)
    orders.handled(connection, waiting.id, outcome, now_ms)
    return result


def _take_one(
    connection: Connection, policy: IntakePolicy, delivery: Delivery, now_ms: int
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
    delivery: Delivery,
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
        row = row.replace(unseen=_unseen(found, policy.currency, cancelled, now_ms))
        if cancelled is None and _may_be_in_pos(connection, order, received_at):
            row = row.replace(ticket=TicketState.WRITING)
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
    return "order", NewOrder(row, for_ticket(order), len(order.lines), found, cancelled)


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
        desired_state=OrderState.CREATED if cancelled is None else OrderState.CANCELLED,
        service_state=OrderState.ACCEPTED if policy.auto_accept_orders else OrderState.CREATED,
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
    return row.replace(
        ticket=TicketState.REFUSED, desired_state=done, service_state=done, closed_at=now_ms
    )


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
    return Delivered(order_id, None if change is None else change.after)


@dataclass(frozen=True, slots=True)
class _SetAside:
    """What could not be taken in, by event or order, and when (monotonic, s) it is tried again."""

    name: str
    failures: int
    again_at: float


class Intake:
    """Takes in what the receiver has committed, and tells what came of it."""

    def __init__(
        self,
        policy: IntakePolicy,
        repository: OrderRepository,
        on_taken: Callable[[TakenIn], Awaitable[None]],
    ) -> None:
        self._on_taken = on_taken
        self._policy = policy
        self._orders = repository
        self.worker = Worker("intake", self._step, repository.supervisor, repository.clock)
        self._set_aside: dict[int, _SetAside] = {}  # by the delivery's row id
        self._unhanded: dict[str, tuple[TakenIn, _SetAside]] = {}  # by the order's id
        self.worker.wake()  # what was committed before this life of the process
        # Since when (monotonic, s) something waits and nothing of it was taken in; None: all is in.
        self.behind_since: float | None = time.monotonic()

    def deliveries_arrived(self) -> None:
        """Look into the inbox."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self.worker.wake()

    async def _step(self) -> float | None:
        """Take in what has been delivered, and hand each on after the commit.

        A delivery that cannot be taken in is set aside, and tried again later; the others go on.
        Returns in how many seconds the first of them is due.
        """
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        try:
            await self._hand_on_again()
            more = True
            while more:
                taken, more = await self._take_batch()
                self.behind_since = time.monotonic()
                for each in taken:
                    self._report(each)
                    await self._hand_on(each)
        finally:
            # What raises is tried again; that nothing gets on meanwhile ends no process.
            self.behind_since = None
        aside = (*self._set_aside.values(), *(each for _taken, each in self._unhanded.values()))
        due = min((each.again_at for each in aside), default=None)
        return None if due is None else max(0.0, due - self._orders.clock.monotonic())

    async def _hand_on(self, taken: TakenIn) -> None:
        """Hand on what is committed; where that fails unexpectedly, again later."""
        order_id = _order_of(taken)
        if await self._orders.supervisor.attempt(
            "intake", partial(self._on_taken, taken), order=order_id
        ):
            self._unhanded.pop(order_id, None)
            return
        before = self._unhanded.get(order_id)
        aside = self._later(None if before is None else before[1], order_id)
        self._unhanded[order_id] = (taken, aside)

    async def _hand_on_again(self) -> None:
        now = self._orders.clock.monotonic()
        for taken, aside in tuple(self._unhanded.values()):
            if aside.again_at <= now:
                await self._hand_on(taken)

    def _later(self, before: _SetAside | None, name: str) -> _SetAside:
        failures = 1 if before is None else before.failures + 1
        return _SetAside(name, failures, self._orders.clock.monotonic() + backoff_s(failures))

    async def _take_batch(self) -> tuple[list[TakenIn], bool]:
        """Take in one batch; return it, and whether more may wait besides what is set aside."""
        now_ms = self._orders.clock.now_ms()
        skip = self._skipped()
        try:
            taken = await self._orders.write(
                lambda connection: take_in(connection, self._policy, now_ms, skip=skip)
            )
        except LedgerError:
            raise
        except Exception:  # noqa: BLE001 -- one of them cannot be taken in, whatever the cause
            taken = await self._take_singly(now_ms)
            return taken, bool(taken)
        for delivery in self._set_aside.keys() - skip:
            self._taken_after_all(delivery)
        return taken, len(taken) >= BATCH

    async def _take_singly(self, now_ms: int) -> list[TakenIn]:
        """Take in one delivery after another, each by a write of its own; set the bad one aside."""
        taken: list[TakenIn] = []
        skip = self._skipped()
        limit = BATCH + len(skip)
        waiting = await self._orders.ledger.read(
            lambda connection: orders.open_deliveries(connection, limit, store=self._policy.store)
        )
        for each in waiting:
            if each.id in skip:
                continue
            job = partial(take_one, policy=self._policy, waiting=each, now_ms=now_ms)
            try:
                taken.append(await self._orders.write(job))
            except LedgerError:
                raise
            except Exception as failure:  # noqa: BLE001 -- (as above)
                self._put_aside(each, failure)
            else:
                self._taken_after_all(each.id)
        return taken

    def _skipped(self) -> frozenset[int]:
        now = self._orders.clock.monotonic()
        return frozenset(key for key, each in self._set_aside.items() if each.again_at > now)

    def _put_aside(self, delivery: Delivery, failure: Exception) -> None:
        name = delivery.event_id
        self._set_aside[delivery.id] = self._later(self._set_aside.get(delivery.id), name)
        self._orders.supervisor.failed("intake", failure, order=name)

    def _taken_after_all(self, delivery: int) -> None:
        aside = self._set_aside.pop(delivery, None)
        if aside is not None:
            self._orders.supervisor.works("intake", order=aside.name)

    def _report(self, taken: TakenIn) -> None:
        store = self._policy.store
        match taken:
            case NewOrder(row, _order, lines, found, cancelled):
                log.info("order.received", store=store, order=row.order_id, lines=lines)
                self._log_findings(row.order_id, found)
                if cancelled is not None:
                    log.warning(
                        "order.to_cancel", store=store, order=row.order_id, code=cancelled.code
                    )
            case Duplicate(order_id):
                log.info("order.duplicate", store=store, order=order_id)
            case DeliveredBefore(order_id):
                log.warning("order.delivered_before", store=store, order=order_id)
            case Delivered(order_id, row):
                log.info("order.completed", store=store, order=order_id, known=row is not None)
            case Kept(event_type):
                log.info("event.kept", store=store, event_type=event_type)
            case NotRead(event_id, text):
                log.error("order.unreadable", store=store, event_id=event_id, why=text)

    def _log_findings(self, order_id: str, found: Findings) -> None:
        if found:
            log.warning(
                "order.check_found",
                store=self._policy.store,
                order=order_id,
                unknown_items=len(found.unknown_items),
                prices=len(found.prices),
                currency=found.currency,
                quantities=len(found.quantities),
            )


def _order_of(taken: TakenIn) -> str:
    match taken:
        case NewOrder(row=row):
            return row.order_id
        case Delivered(order_id=order_id) | Duplicate(order_id=order_id):
            return order_id
        case _:
            return ""
