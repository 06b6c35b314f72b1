"""Writes what an event makes of an order: its row, its log and its problems, in one transaction.

The functions are jobs for the ledger's writer; `OrderRepository` runs them for one store. Nobody
else changes a row of `orders`.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import Found, OpenProblem, Scope
from tillbridge.core.supervision import Supervisor
from tillbridge.ledger import orders
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.problems import ProblemTracker, report
from tillbridge.orders.problems import OF_ONE, OF_SEVERAL, problems_of, problems_of_several
from tillbridge.orders.state import Change, Event, Seen, decide

UNKNOWN = "pos.update_unknown"
T = TypeVar("T")

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0


def commit(
    connection: Connection, store: str, order_id: str, event: Event, now_ms: int
) -> Change | None:
    """Decide what `event` makes of the order at `now_ms`, and write it; None: no such order."""
    row = orders.get_order(connection, store, order_id)
    if row is None:
        return None
    change = decide(row, event, now_ms)
    differs = {name: value for name, value in change.after if value != getattr(row, name)}
    if differs:
        orders.update_order(connection, store, order_id, now_ms, **differs)
    for name, detail in change.entries:
        orders.log_event(connection, store, order_id, name, now_ms, **detail)
    _report_changed(connection, row, change.after, now_ms)
    return change


def insert(connection: Connection, row: OrderRow, now_ms: int) -> bool:
    """Insert a new order with its problems; False where there is one with that id: it stays."""
    if not orders.insert_order(connection, row):
        return False
    _report_changed(connection, None, row, now_ms)
    return True


def report_all(connection: Connection, store: str, now_ms: int) -> None:
    """Report the problems of all of a store's orders: at start, and after rows were forgotten."""
    rows = {
        row.order_id: row
        for row in (
            *orders.open_orders(connection, store),
            *orders.orders_on_paper(connection, store),
            *orders.unseen_orders(connection, store),
        )
    }
    found: list[Found] = [each for row in rows.values() for each in problems_of(row)]
    report(connection, Scope(store, OF_ONE), found, now_ms)
    _report_several(connection, store, now_ms)


def report_unknown(
    connection: Connection, store: str, order_id: str, now_ms: int, *, unknown: bool
) -> None:
    """Report whether the POS tells of an order that is not known here."""
    found = [Found(UNKNOWN, order_id, {"order": order_id})] if unknown else []
    report(connection, Scope(store, frozenset({UNKNOWN}), order_id), found, now_ms)


def see(connection: Connection, problems: Iterable[OpenProblem], now_ms: int, *, by: str) -> None:
    """Take note that a person has seen these problems, as far as they are about orders."""
    for problem in problems:
        if problem.code in OF_SEVERAL:
            ids = list(problem.detail.get("ids", ()))
        elif problem.code in OF_ONE:
            ids = [problem.subject]
        else:
            continue
        for order_id in ids:
            commit(connection, problem.store, order_id, Seen(frozenset({problem.code}), by), now_ms)


def end_unseen(
    connection: Connection,
    store: str,
    now_ms: int,
    is_over: Callable[[str, OrderRow], bool],
) -> None:
    """End what nobody has seen and what no longer counts: `is_over` says it by code and order."""
    for row in orders.unseen_orders(connection, store):
        over = frozenset(code for code in row.unseen if is_over(code, row))
        if over:
            commit(connection, store, row.order_id, Seen(over), now_ms)


def _report_changed(
    connection: Connection, before: OrderRow | None, after: OrderRow, now_ms: int
) -> None:
    """Report what follows from the change; most changes of a row change no problem."""
    found = problems_of(after)
    if found != ([] if before is None else problems_of(before)):
        scope = Scope(after.store, OF_ONE, after.order_id)
        report(connection, scope, found, now_ms)
    together = [
        {code: row.unseen[code] for code in OF_SEVERAL & row.unseen.keys()}
        for row in (before, after)
        if row is not None
    ]
    if together[-1] != (together[0] if before is not None else {}):
        _report_several(connection, after.store, now_ms)


def _report_several(connection: Connection, store: str, now_ms: int) -> None:
    found = problems_of_several(orders.unseen_orders(connection, store), now_ms)
    report(connection, Scope(store, OF_SEVERAL), found, now_ms)


@dataclass(frozen=True, slots=True)
class OrderRepository:
    """The orders of one store (`store` is its local name), and what their workers share."""

    store: str
    ledger: Ledger
    tracker: ProblemTracker
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)
    # Who takes the next work of an order from each change that was committed.
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; this is its own making.
        object.__setattr__(self, "supervisor", Supervisor(self.store, self.tracker))

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Write `job`, again and again until it is committed; a full disk is only a matter of time.

        The ledger itself reports that it cannot be written. `job` may run several times, so it
        looks before it changes anything.
        """
        wait = _FIRST_WAIT_S
        while True:
            try:
                return await self.ledger.write(job)
            except LedgerUnwritable:
                await asyncio.sleep(wait)
                wait = min(_LONGEST_WAIT_S, wait * 2)

    async def commit(self, order_id: str, event: Event) -> Change | None:
        """Commit what `event` makes of the order; None where there is no such order.

        Returns once it is on disk and the listeners have taken the order's next work from it.
        """
        now_ms = self.clock.now_ms()
        change = await self.write(
            lambda connection: commit(connection, self.store, order_id, event, now_ms)
        )
        if change is not None:
            for listener in self.listeners:
                listener(change)
        return change

    async def order(self, order_id: str) -> OrderRow | None:
        """Return the order as it is now."""
        return await self.ledger.read(
            lambda connection: orders.get_order(connection, self.store, order_id)
        )
