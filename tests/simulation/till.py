"""A till for the simulation, and the adapter of it. What it does wrong, the seed decides.

The till is part of the world and outlives the bridge; the adapter's methods run in the bridge's
threads, in virtual time, and may be cut off anywhere.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from tests.simulation import loop as virtual
from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AdapterOptions,
    AtCapacity,
    Catalogue,
    Category,
    Change,
    ExportUnreadable,
    Health,
    Item,
    ItemUnavailable,
    ListedTicket,
    Order,
    PosOffline,
    PriceMismatch,
    RejectReason,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
    TicketStatus,
    TicketUpdate,
)

F = TypeVar("F", bound=Callable[..., Any])

REFUSALS = (ItemUnavailable, StoreClosed, AtCapacity, PriceMismatch)


@dataclass
class Written:
    """A ticket in the till."""

    key: str
    record: str
    at: float
    live: bool = True
    status: str = ""
    lines: int = 0


class Till:
    """What is in the till, and how it behaves now."""

    def __init__(self, now: Callable[[], float], rng: random.Random) -> None:
        self._now, self._rng = now, rng
        self.tickets: list[Written] = []
        self.updates: dict[str, TicketUpdate] = {}
        self.handled: set[str] = set()
        self.items: dict[str, Item] = {}
        self.categories = ("c1", "c2", "c3")
        self.torn = ""
        self.approved: list[dict[str, Item]] = []
        self.read_at = 0.0
        self.reads = 0
        # how it behaves now
        self.offline = False
        self.slow_s = 0.0
        self.hang_s = 0.0  # of the next write
        self.refuses: type[Exception] | None = None
        self.breaks_after = False  # the next write is done, and the answer lost
        self.raises = 0  # so many calls raise what no adapter may
        self.garbles = 0  # so many answers are none
        self.repeats = 0  # so many news are reported again after they were handled
        self.lies = False  # of whether it is there
        self.failing: set[str] = set()  # methods whose last call went so wrong
        self._busy: dict[tuple[str, str], str] = {}  # by process and lane: the call that runs
        self.number = 0
        self.listener: Callable[[Change], None] = lambda _change: None
        self.on_change: Callable[[str, dict[str, Any]], None] = lambda _what, _detail: None
        self.epoch = 0

    @contextmanager
    def calling(self, lane: str, name: str) -> Iterator[None]:
        """Note that a call runs; two of one lane never do (invariant 6)."""
        key = virtual._running[-1].owner.name, lane
        if key in self._busy:
            self.on_change("broken", {"what": f"{name} was called during {self._busy[key]}"})
        self._busy[key] = name
        try:
            yield
        finally:
            self._busy.pop(key, None)

    def is_odd(self, what: str) -> bool:
        """Return whether this call, too, goes wrong in this way."""
        left = getattr(self, what)
        setattr(self, what, max(0, left - 1))
        return bool(left)

    def live(self, key: str) -> list[Written]:
        return [each for each in self.tickets if each.key == key and each.live]

    def of(self, key: str) -> list[Written]:
        return [each for each in self.tickets if each.key == key]

    def notify(self, change: Change) -> None:
        self.listener(change)

    def move(self, ticket: Written, status: str, reason: str = "", message: str = "") -> None:
        """Let the kitchen move a ticket on."""
        if not ticket.live or status == ticket.status:
            return
        ticket.status = status
        if status == "rejected":
            ticket.live = False
        self.number += 1
        key = f"u{self.number}"
        self.updates[key] = TicketUpdate(
            key,
            ticket.key,
            TicketStatus(status),
            RejectReason(reason) if reason else None,
            (),
            message,
        )
        self.on_change("kitchen", {"order": ticket.key, "status": status})
        self.notify(Change.UPDATES)

    def catalogue(self) -> Catalogue:
        return Catalogue.of(
            self.items.values(),
            categories=[Category(each, each.upper()) for each in self.categories],
            ends_with_newline=True,
        )

    def take(self, order: Order, key: str) -> Written:
        """Take an order in, whatever is there already: the till does not look."""
        self.number += 1
        ticket = Written(key, f"r{self.number}", self._now(), lines=len(order.lines))
        self.tickets.append(ticket)
        self.on_change("ticket", {"order": key, "record": ticket.record})
        return ticket


def _in(lane: str) -> Callable[[F], F]:
    """Let a method be one of this lane, and go wrong where the till does."""

    def decorated(method: F) -> F:
        @wraps(method)
        def call(self: "TillAdapter", *args: Any) -> Any:
            till = self._till
            with till.calling(lane, method.__name__):
                raises, garbles = till.is_odd("raises"), till.is_odd("garbles")
                if not raises and not garbles:
                    till.failing.discard(method.__name__)
                    return method(self, *args)
                till.failing.add(method.__name__)
                answer = None if till._rng.random() < 0.5 else method(self, *args)
                if raises:
                    raise KeyError("a defect of the adapter")
                return object() if answer is None else [answer]

        return call  # type: ignore[return-value]  # it has the method's signature

    return decorated


class TillAdapter:
    """The adapter: states facts, and blocks."""

    def __init__(self, till: Till) -> None:
        self._till = till

    def _wait(self, least: float, most: float) -> None:
        till = self._till
        virtual.sleep(till._rng.uniform(least, most) + till.slow_s)

    def _there(self) -> None:
        if self._till.offline:
            raise PosOffline("the till is off")

    # tickets

    @_in("tickets")
    def write_ticket(self, order: Order, key: str) -> Ticket:
        till = self._till
        self._wait(0.002, 0.05)
        self._there()
        if till.refuses is not None:
            refusal, till.refuses = till.refuses, None
            first = order.lines[0].external_id or ""
            item = first if refusal is ItemUnavailable else ""
            till.on_change("refused", {"order": key, "why": refusal.__name__, "item": item})
            if refusal is ItemUnavailable:
                raise ItemUnavailable("sold out", external_ids=[first])
            raise refusal("the till says no")
        hang_s, till.hang_s = till.hang_s, 0.0
        before = till._rng.random() < 0.5
        if hang_s and before:
            virtual.sleep(hang_s)
        ticket = till.take(order, key)
        if hang_s and not before:
            virtual.sleep(hang_s)
        self._wait(0.001, 0.02)
        if till.breaks_after:
            till.breaks_after = False
            raise TicketOutcomeUnknown("the line to the till broke")
        return Ticket(ticket.record)

    @_in("tickets")
    def find_ticket(self, key: str) -> Ticket | None:
        self._wait(0.001, 0.01)
        self._there()
        found = self._till.of(key)
        return Ticket(found[0].record) if found else None

    @_in("tickets")
    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        self._wait(0.001, 0.02)
        self._there()
        for ticket in self._till.live(key):
            ticket.live = False
            self._till.on_change("withdrawn", {"order": key, "record": ticket.record})
        self._wait(0.001, 0.01)

    # news

    @_in("tickets")
    def read_updates(self) -> Sequence[TicketUpdate]:
        self._wait(0.0, 0.003)
        self._there()
        return list(self._till.updates.values())

    @_in("tickets")
    def update_handled(self, update: TicketUpdate) -> None:
        if not self._till.is_odd("repeats"):
            self._till.updates.pop(update.key, None)
        self._till.handled.add(update.key)

    @_in("tickets")
    def health(self) -> Health:
        self._wait(0.0, 0.003)
        is_off = self._till.offline != self._till.lies
        return Health(not is_off, "the till is off" if is_off else "")

    def on_change(self, hear: Callable[[Change], None]) -> None:
        self._till.listener = hear

    # the menu

    @_in("reading")
    def read_catalogue(self) -> Catalogue:
        till = self._till
        self._wait(0.005, 0.05)
        self._there()
        till.reads += 1
        if till.torn == "unreadable":
            raise ExportUnreadable("half-written", passing=True)
        whole = till.catalogue()
        if till.torn == "half":
            half = list(whole.items.values())[: len(whole.items) // 2]
            return replace(whole, items={each.external_id: each for each in half})
        if till.torn == "six":  # known ones: one more than the guard lets pass
            most = list(whole.items.values())[6:]
            return replace(whole, items={each.external_id: each for each in most})
        if till.torn == "names":
            garbled = [replace(each, name=f"D?{each.name[2:]}") for each in whole.items.values()]
            return replace(whole, items={each.external_id: each for each in garbled})
        if till.torn == "empty":
            return replace(whole, items={}, categories={})
        if till.torn == "zero":
            zero = [replace(each, price=0) for each in whole.items.values()]
            return replace(whole, items={each.external_id: each for each in zero})
        return whole


class ListingTillAdapter(TillAdapter):
    """One that can list its tickets, too."""

    @_in("tickets")
    def list_tickets(self) -> Sequence[ListedTicket]:
        self._wait(0.001, 0.02)
        self._there()
        return [
            ListedTicket(each.key, each.record, each.record, each.live)
            for each in self._till.tickets
        ]

    @_in("tickets")
    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        self._wait(0.001, 0.02)
        self._there()
        for each in self._till.tickets:
            if each.record == ticket.record and each.live:
                each.live = False
                self._till.on_change("withdrawn", {"order": each.key, "record": each.record})


class LateTillAdapter(ListingTillAdapter):
    """One whose writes may take effect long after they were given up."""

    def late_write_s(self) -> float:
        return 60.0


KINDS = {"plain": TillAdapter, "listing": ListingTillAdapter, "late": LateTillAdapter}


class TillOptions(AdapterOptions):
    kind: str = "plain"


current: list[Till] = []  # the till of the simulation that runs


def _open(options: TillOptions, context: AdapterContext) -> object:
    return KINDS[options.kind](current[-1])


ADAPTER = Adapter("simulated", "A till of the simulation", TillOptions, _open)
