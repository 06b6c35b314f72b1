"""A store's orders with a real ledger, a till in memory and a service in memory that is strict."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.support.store_context import store_context
from tillbridge.adapter import (
    Advice,
    BadRow,
    Health,
    ListedTicket,
    PosFailure,
    Ticket,
    TicketMark,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import Conflict, Refused
from tillbridge.ledger import orders
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import NewDelivery, OrderRow
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.model.instant import to_iso
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.flow import OrdersFlow
from tillbridge.pos.store_pos import StorePos

if TYPE_CHECKING:
    import tillbridge.daemon.store_services
    from tillbridge.pos.runner import PosRunner

STORE = "main"
_NEEDS = {"accept": "created", "preparing": "accepted", "ready": "preparing"}
_GIVES = {"accept": "accepted", "preparing": "preparing", "ready": "ready"}


class Till:
    """A POS in memory. It outlives the flow, as a till outlives the bridge."""

    def __init__(self) -> None:
        self.tickets: dict[str, str] = {}
        self.written: list[str] = []  # every write that took effect, twice where it did so twice
        self.asked: list[str] = []
        self.withdrawn: list[str] = []
        self.news: dict[str, TicketUpdate] = {}
        self.handled: list[str] = []
        self.unreadable: list[BadRow] = []
        self.online = True
        self.closed = ""
        self.advice: tuple[Advice, ...] = ()
        self.cancels_tickets = True
        self.marks_tickets = False
        self.hold_older_than_s = 0.0
        self.late_write_s = 0.0
        self.lists_tickets = False
        self.listed: list[ListedTicket] = []
        self.cancel_listed_fails: PosFailure | None = None
        self.marked: list[tuple[str, frozenset[TicketMark]]] = []
        self.reports_updates = True
        self.on_write: Callable[[Order], Awaitable[None]] | None = None
        self.on_written: Callable[[Order], Awaitable[None]] | None = None
        self.find_fails: PosFailure | None = None
        self._numbers = itertools.count(1)

    async def write_ticket(self, order: Order, key: str) -> Ticket:
        await asyncio.sleep(0)
        if self.on_write:
            await self.on_write(order)
        self.tickets[key] = f"#{next(self._numbers)}"
        self.written.append(key)
        if self.on_written:
            await self.on_written(order)
        return Ticket(self.tickets[key])

    async def write_marked_ticket(
        self, order: Order, key: str, marks: AbstractSet[TicketMark]
    ) -> Ticket:
        self.marked.append((key, frozenset(marks)))
        return await self.write_ticket(order, key)

    async def find_ticket(self, key: str) -> Ticket | None:
        self.asked.append(key)
        if self.find_fails:
            raise self.find_fails
        return Ticket(self.tickets[key]) if key in self.tickets else None

    async def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        self.tickets.pop(key, None)
        self.withdrawn.append(key)

    async def list_tickets(self) -> Sequence[ListedTicket]:
        return list(self.listed)

    async def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        if self.cancel_listed_fails:
            raise self.cancel_listed_fails
        self.listed = [
            replace(each, live=False) if each.record == ticket.record else each
            for each in self.listed
        ]

    async def read_updates(self) -> Sequence[TicketUpdate]:
        return list(self.news.values())

    async def update_handled(self, update: TicketUpdate) -> None:
        self.handled.append(update.key)
        self.news.pop(update.key, None)

    async def unreadable_updates(self) -> Sequence[BadRow]:
        return self.unreadable

    async def health(self) -> Health:
        detail = "" if self.online else "no heartbeat"
        return Health(self.online, detail, self.closed, self.advice)

    def tells(self, order_id: str, status: str, **more: Any) -> None:  # noqa: ANN401 -- fields of an update
        key = f"{order_id}-{status}-{len(self.handled) + len(self.news)}"
        self.news[key] = TicketUpdate(key, order_id, TicketStatus(status), **more)


class Service:
    """The order calls, as strict as the specification; `fails` is raised by the next calls."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        self.cancels: list[tuple[str, ReasonCode, str]] = []
        self.refused: list[tuple[str, str]] = []
        self.fails: Exception | None = None
        self.loses_answers: list[Exception] = []

    async def accept(self, order_id: str) -> None:
        self._move(order_id, "accept")

    async def set_preparing(self, order_id: str) -> None:
        self._move(order_id, "preparing")

    async def ready(self, order_id: str) -> None:
        self._move(order_id, "ready")

    async def cancel(
        self, order_id: str, reason: str, reason_code: ReasonCode, message: str
    ) -> None:
        assert reason
        self._fail(order_id)
        self.calls.append((order_id, "cancel"))
        if self.states[order_id] in {"completed", "cancelled"}:
            raise Conflict("no", code="order.invalid_transition", status=409)
        self.states[order_id] = "cancelled"
        self.cancels.append((order_id, reason_code, message))

    def _move(self, order_id: str, call: str) -> None:
        self._fail(order_id)
        self.calls.append((order_id, call))
        if self.states[order_id] != _NEEDS[call]:
            self.refused.append((order_id, call))
            raise Conflict("no", code="order.invalid_transition", status=409)
        self.states[order_id] = _GIVES[call]
        if self.loses_answers:
            raise self.loses_answers.pop()

    def _fail(self, order_id: str) -> None:
        if self.fails:
            raise self.fails
        if order_id not in self.states:
            raise Refused("no such order", code="order.not_found", status=404)


@dataclass
class Effects:
    out: list[str] = field(default_factory=list)
    resyncs: int = 0
    presence: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    async def items_out(self, external_ids: Sequence[str]) -> None:
        self.out += external_ids

    def resync(self) -> None:
        self.resyncs += 1

    @property
    def pos_pause(self) -> "Effects":
        return self

    @property
    def menu(self) -> "Effects":
        return self

    def pos_changed(self, *, online: bool) -> None:
        self.presence.append("online" if online else "offline")

    def pos_closed(self, why: str) -> None:
        self.closed.append(why)

    def order_lost(self) -> None:
        self.presence.append("order lost")

    def delivery_processed(self, result: object) -> None:
        """Nothing beside the orders learns from deliveries."""


class SetClock(Clock):
    """The real clock, put forward by as much as a test says: by the wall, or both."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        self.both_s = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + int((self.wall_s + self.both_s) * 1000)

    def monotonic(self) -> float:
        return super().monotonic() + self.both_s


class Harness:
    """One data directory, and what outlives the process: till, service, clock."""

    def __init__(self, data_dir: Path, **order_settings: object) -> None:
        self.data_dir = data_dir
        self.till = Till()
        self.paper: Till | None = None  # the printer that stands in for the till
        self.paper_after_s = 60.0
        self.service = Service()
        self.effects = Effects()
        self.clock = SetClock()
        self.auto_accept = False
        self.currency = "USD"
        self.order_settings: dict[str, object] = {"retry_s": 0.05, "retry_cap_s": 0.2}
        self.order_settings.update(order_settings)
        self._deliveries = itertools.count(1)

    @property
    def settings(self) -> StoreSettings:
        fallback = {"adapter": "printer", "after_s": self.paper_after_s}
        return StoreSettings.model_validate(
            {
                "fallback": None if self.paper is None else fallback,
                "location_id": "loc-1",
                "currency": self.currency,
                "auto_accept_orders": self.auto_accept,
                "pos": {"adapter": "folder", "health_s": 0.05, "poll_s": 0.05},
                "orders": self.order_settings,
            }
        )

    @asynccontextmanager
    async def life(self) -> AsyncIterator["Life"]:
        """One life of the process: it ends like a kill, without a word to anybody."""
        ledger = await Ledger.open(self.data_dir, clock=self.clock)
        task = None
        tracker = await ProblemTracker.start(ledger, clock=self.clock)
        try:
            context = store_context(
                self.settings,
                pos=self.till,
                service=self.service,
                ledger=ledger,
                problems=tracker,
                clock=self.clock,
            )
            till = cast("PosRunner", self.till)
            context = replace(context, pos=StorePos(till, till, cast("PosRunner", self.paper)))
            flow = OrdersFlow(
                context, cast("tillbridge.daemon.store_services.StoreServices", self.effects)
            )
            task = asyncio.create_task(flow.run())
            yield Life(self, ledger, tracker, flow, task)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await tracker.settle()
            await ledger.close()

    def delivery(self, event_type: str, data: object, event_id: str = "") -> NewDelivery:
        number = next(self._deliveries)
        envelope = {"event_type": event_type, "data": data}
        return NewDelivery(
            store=STORE,
            delivery_id=f"dlv_{number}",
            event_id=event_id or f"evt_{number}",
            event_type=event_type,
            received_at=self.clock.now_ms(),
            body=json.dumps(envelope).encode(),
        )


@dataclass
class Life:
    harness: Harness
    ledger: Ledger
    tracker: ProblemTracker
    flow: OrdersFlow
    task: asyncio.Task[None]

    async def deliver(self, event_type: str, data: object, event_id: str = "") -> bool:
        new = await self.ledger.write(self.harness.delivery(event_type, data, event_id))
        self.flow.deliveries_arrived()
        return new

    async def order(self, order_id: str, **more: object) -> None:
        """Let the service place an order and deliver it."""
        state = "accepted" if self.harness.auto_accept else "created"
        self.harness.service.states.setdefault(order_id, state)
        await self.deliver("order.created", self.data(order_id, **more))

    def data(self, order_id: str, **more: object) -> dict[str, object]:
        placed = to_iso(self.harness.clock.now_ms())
        return {"id": order_id, "order_number": "7", "created_at": placed, "items": []} | more

    async def row(self, order_id: str) -> OrderRow | None:
        return await self.ledger.read(lambda each: orders.get_order(each, STORE, order_id))

    async def events(self, order_id: str) -> list[str]:
        life = await self.ledger.read(lambda each: orders.read_log(each, STORE, order_id))
        return [entry.event for entry in life]

    async def until_told(self, order_id: str, state: OrderState | str) -> OrderRow:
        async def reached() -> OrderRow | None:
            row = await self.row(order_id)
            return row if row is not None and row.service_state == state else None

        return await self.until(reached)

    async def until_closed(self, order_id: str) -> OrderRow:
        async def closed() -> OrderRow | None:
            row = await self.row(order_id)
            return row if row is not None and row.closed_at is not None else None

        row: OrderRow = await self.until(closed)
        return row

    async def until(self, condition: Callable[[], Any]) -> Any:  # noqa: ANN401 -- what it found
        """Wait for a condition, plain or async; fails after 20 s, or when the flow died."""
        pause_s = 0.002
        async with asyncio.timeout(20):
            while True:
                if self.task.done():
                    await self.task
                found = condition()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.1, 0.05)  # to look is work, too

    def problems(self) -> set[str]:
        return {each.code for each in self.tracker.current()}
