"""Commits what an event makes of an order: its row, its log and its problems, in one transaction.

The functions are jobs for the ledger's writer; `OrderRepository` runs them for one store. Each
change is published in the order of the commits, so that no older row follows a newer one. Nobody
else changes a row of `orders`. The problems are a function of the rows: the same rows, the same
problems.
"""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.core.formats import clock_time, money
from tillbridge.core.i18n import _, joined
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Ends, Found, OpenProblem, Scope
from tillbridge.ledger import orders
from tillbridge.ledger.ledger import published
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import is_on_paper
from tillbridge.ledger.problems import report
from tillbridge.model.order import OrderState, parse_order
from tillbridge.orders.events import Event, Lapsed, Seen
from tillbridge.orders.reasons import CAUSES, EXPLAINED_BY_TILL, was_offline, why_not_written
from tillbridge.orders.state import (
    CANCELLED_UNSEEN,
    CLOSED_BY_SERVICE,
    NOT_WITHDRAWN,
    TAKEN_BACK,
    Change,
    can_be_written,
    decide,
    is_held,
)

log = get_logger()

# Problems of one order each, and problems that several orders share.
OF_ONE = frozenset(
    {
        "order.not_written",
        "order.held",
        "order.not_in_till",
        NOT_WITHDRAWN,
        TAKEN_BACK,
        CLOSED_BY_SERVICE,
        "order.unknown_item",
        "order.price_differs",
        "order.quantity_unclear",
        "service.refused",
    }
)
OF_SEVERAL = frozenset({CANCELLED_UNSEEN, "order.other_currency"})
UNKNOWN = "pos.update_unknown"  # over once there is such an order
_OF_NEW = OF_ONE | {UNKNOWN}

P = ParamSpec("P")
T = TypeVar("T")

PROBLEM_STAYS_MS = 24 * 3600 * 1000  # one that ends after a day
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0
# A failure that is not the POS being offline, so often in a row, is a person's business.
_FAILURES_ALLOWED = 2
_CALLS = {"preparing": "status"}  # the specification's name of the call
_LISTED = 12
_LONGEST_NUMBER = 32
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_WARNINGS = frozenset(
    {
        "order.to_cancel",
        "order.wait",
        "order.held",
        "order.on_paper",
        "order.handled",
        "order.check_found",
        "order.call_refused",
        "order.too_late",
        "order.closed",
        "ticket.taken_back",
    }
)
_NOT_LOGGED = frozenset({"message", "by"})  # what a customer may read, and who acted


# -- the transactions


def commit(
    connection: Connection,
    store: str,
    /,
    order_id: str,
    event: Event,
    now_ms: int,
    **logged: object,
) -> Change | None:
    """Decide what `event` makes of the order at `now_ms`, and write it; None: no such order."""
    row = orders.get_order(connection, store, order_id)
    if row is None:
        return None
    change = replace(decide(row, event, now_ms), logged=logged)
    save(connection, change, now_ms)
    return change


def save(connection: Connection, change: Change, now_ms: int) -> bool:
    """Write the row of a change, its log and its problems.

    False if a new order has the id of one that is there: that one stays as it is. Most changes
    of a row change no problem.
    """
    before, after = change.before, change.after
    store, order_id = after.store, after.order_id
    if before is None:
        if not orders.insert_order(connection, after):
            return False
    elif differs := {name: value for name, value in after if value != getattr(before, name)}:
        orders.update_order(connection, store, order_id, now_ms, **differs)
    for name, detail in change.entries:
        orders.log_event(connection, store, order_id, name, now_ms, **detail)
    found = problems_of(after)
    if before is None or found != problems_of(before):
        report(connection, Scope(store, _OF_NEW, order_id), found, now_ms)
    unseen, unseen_before = (
        {code: row.unseen[code] for code in OF_SEVERAL & row.unseen.keys()} if row else {}
        for row in (after, before)
    )
    if unseen != unseen_before:
        _report_several(connection, store, now_ms)
    published(connection).append(change)
    return True


def publish(connection: Connection, store: str, *order_ids: str) -> list[OrderRow]:
    """Publish these orders as they are, all open ones if none is named; return them."""
    if order_ids:
        found = (orders.get_order(connection, store, each) for each in order_ids)
        rows = [row for row in found if row is not None]
    else:
        rows = orders.open_orders(connection, store)
    published(connection).extend(Change(row, row) for row in rows)
    return rows


def _report_several(connection: Connection, store: str, now_ms: int) -> None:
    found = problems_of_several(orders.unseen_orders(connection, store), now_ms)
    report(connection, Scope(store, OF_SEVERAL), found, now_ms)


def report_all(connection: Connection, store: str, now_ms: int) -> None:
    """Report the problems of all of a store's orders: at start, and after rows were forgotten."""
    queries = (orders.open_orders, orders.orders_on_paper, orders.unseen_orders)
    rows = {row.order_id: row for query in queries for row in query(connection, store)}
    found = [each for row in rows.values() for each in problems_of(row)]
    report(connection, Scope(store, OF_ONE), found, now_ms)
    _report_several(connection, store, now_ms)


def see(connection: Connection, problems: Iterable[OpenProblem], now_ms: int, *, by: str) -> None:
    """Record that a person has seen these problems, as far as they are about orders."""
    for problem in problems:
        ids = [problem.subject] if problem.code in OF_ONE else problem.detail.get("ids", ())
        seen = Seen(frozenset({problem.code}), by)
        for order_id in ids if problem.code in OF_ONE | OF_SEVERAL else ():
            commit(connection, problem.store, order_id, seen, now_ms)


def end_what_is_over(connection: Connection, store: str, currency: str, now_ms: int) -> None:
    """Close what is over and was never closed, end what nobody has seen and no longer counts.

    Then the problems of all orders are reported again.
    """

    def is_over(code: str, what: Mapping[str, Any]) -> bool:
        if code == "order.other_currency" and what.get("theirs") == currency:
            return True
        at = what.get("at")
        old = not isinstance(at, int) or now_ms - at > PROBLEM_STAYS_MS
        return old and PROBLEMS[code].ends is Ends.DAY

    for row in orders.open_orders(connection, store):
        if decide(row, Lapsed(), now_ms).entries:
            commit(connection, store, row.order_id, Lapsed(), now_ms)
    for row in orders.unseen_orders(connection, store):
        over = frozenset(code for code, what in row.unseen.items() if is_over(code, what))
        if over:
            commit(connection, store, row.order_id, Seen(over), now_ms)
    report_all(connection, store, now_ms)


# -- the problems that follow from rows


def display_name(row: OrderRow) -> str:
    """Return what people call the order: its number, or its id where it has none."""
    number = row.order_number.strip()
    printable = number.isprintable() and len(number) <= _LONGEST_NUMBER
    return number if number and printable else row.order_id


def problems_of(row: OrderRow) -> list[Found]:
    """Return what a person has to know of this one order now."""
    found: dict[str, dict[str, object]] = {}
    if can_be_written(row):
        if is_held(row):
            found["order.held"] = {"detail": why_not_written(row)}
        elif row.attempts > _FAILURES_ALLOWED and not was_offline(row.last_failure):
            found["order.not_written"] = {"detail": why_not_written(row)}
    if is_on_paper(row) and row.desired_state is not OrderState.CANCELLED:
        found["order.not_in_till"] = {"why": why_not_written(row)}
    if row.refused:
        calls = sorted(row.refused)
        found["service.refused"] = {
            "operation": ", ".join(_CALLS.get(each, each) for each in calls),
            "detail": joined("; ", dict.fromkeys(row.refused[each] for each in calls)),
        }
    for code, what in row.unseen.items():
        if code in OF_ONE:
            found[code] = {name: each for name, each in what.items() if name != "at"}
    if not found:
        return []
    name = display_name(row)
    # In a command the order is named by nothing that a shell would read otherwise.
    known = {"order": name, "id": name if _PLAIN.fullmatch(name) else row.order_id}
    return [Found(code, row.order_id, {**known, **detail}) for code, detail in found.items()]


def problems_of_several(rows: Iterable[OrderRow], now_ms: int) -> list[Found]:
    """Return what a person has to know of these orders of one store together, grouped by cause."""
    groups: dict[tuple[str, str], list[OrderRow]] = defaultdict(list)
    for row in rows:
        for code in OF_SEVERAL & row.unseen.keys():
            unseen = row.unseen[code]
            groups[code, str(unseen.get("cause") or unseen.get("theirs") or "")].append(row)
    return [
        Found(code, subject, _detail_of_several(code, subject, of_it, now_ms))
        for (code, subject), of_it in groups.items()
    ]


def _detail_of_several(
    code: str, subject: str, rows: Sequence[OrderRow], now_ms: int
) -> dict[str, object]:
    times = [(row.unseen[code].get("at"), row.received_at) for row in rows]
    since = min(at if isinstance(at, int) else received_at for at, received_at in times)
    names = [display_name(row) for row in rows[:_LISTED]]
    more = len(rows) - len(names)
    if more:
        names.append(_("and {count} more").format(count=more))
    detail: dict[str, object] = {
        "count": len(rows),
        "orders": ", ".join(names),
        "since": clock_time(since, now_ms),
        "ids": [row.order_id for row in rows],
    }
    if code == CANCELLED_UNSEEN:
        amount = _amount(rows)
        why = CAUSES.get(subject, CAUSES["other"])
        if len(rows) == 1 and subject in EXPLAINED_BY_TILL and rows[0].message:
            why = f"{why}: {rows[0].message}"
        return {
            **detail,
            "why": why,
            "amount": f"; {amount}" if amount else "",
            "worth": f" ({amount})" if amount else "",
        }
    what = rows[0].unseen[code]
    return {**detail, "theirs": what.get("theirs", "?"), "ours": what.get("ours", "?")}


def _amount(rows: Iterable[OrderRow]) -> str:
    """Return what the orders came to together, by currency; "" where none of them says."""
    sums: dict[str, int] = defaultdict(int)
    for row in rows:
        try:
            order = parse_order(json.loads(row.payload))
        except ValueError:  # forgotten, or it was never there
            continue
        if order.total_amount is not None:
            sums[order.currency] += order.total_amount
    return joined(", ", (money(minor, currency) for currency, minor in sums.items()))


# -- one store's orders


class OrderRepository:
    """The orders of one store. `on_change` takes the next work from each committed change."""

    def __init__(self, context: StoreContext) -> None:
        bridge = context.bridge
        self.store = context.store
        self.supervisor = context.supervisor
        self.ledger, self.problems = bridge.ledger, bridge.problems
        self.clock, self.metrics = bridge.clock, bridge.metrics
        self.on_change: Callable[[Change], None] = lambda _change: None
        self.close = bridge.ledger.on_event(self._publish)

    async def read(
        self, query: Callable[Concatenate[Connection, str, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Return what a query of the ledger finds for this store."""
        return await self.ledger.read(query, self.store, *args, **more)

    async def order(self, order_id: str) -> OrderRow | None:
        """Return the order as it is now."""
        return await self.read(orders.get_order, order_id)

    async def write(
        self, job: Callable[Concatenate[Connection, str, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Write `job`, again and again until it is committed; a full disk is only a matter of time.

        The ledger itself reports that it cannot be written. `job` may run several times, so it
        looks before it changes anything.
        """
        wait = _FIRST_WAIT_S
        while True:
            try:
                return await self.ledger.write(job, self.store, *args, **more)
            except LedgerUnwritable:
                await asyncio.sleep(wait)
                wait = min(_LONGEST_WAIT_S, wait * 2)

    async def commit(self, order_id: str, event: Event, **logged: object) -> Change | None:
        """Commit what `event` makes of the order; None if there is no such order.

        Returns once it is on disk and published; `logged` is for the log alone.
        """
        return await self.write(commit, order_id, event, self.clock.now_ms(), **logged)

    def _publish(self, change: object) -> None:
        """Log a committed change, and let the workers take the order's next work from it."""
        if not isinstance(change, Change) or change.after.store != self.store:
            return
        for name, detail in change.entries:
            over = name == "order.closed" and detail.get("why") == "over"
            write = log.warning if name in _WARNINGS and not over else log.info
            shown = {
                # What was found of an order's lines is counted: the words are the guest's.
                key: len(value) if isinstance(value, tuple) else value
                for key, value in detail.items()
                if key not in _NOT_LOGGED
            }
            logged = {**shown, **change.logged}
            write(name, store=self.store, order=change.after.order_id, **logged)
        self.on_change(change)

    def report(self, code: str, *found: Found) -> None:
        """Make what is open of a problem in this store exactly what is found."""
        self.problems.report(Scope(self.store, frozenset({code})), found)


class SetAside:
    """What failed unexpectedly, by key: it waits for its next try while the others continue."""

    def __init__(self, step: str, repository: OrderRepository) -> None:
        self._step = step
        self._supervisor = repository.supervisor
        self._clock = repository.clock
        self._waiting: dict[Any, tuple[str, float]] = {}  # its order, and when to try it again

    def failed(self, key: object, failure: BaseException, *, order: str) -> None:
        """Let it wait, each time longer, and report it; `order` names whose work it is."""
        pause_s = self._supervisor.failed(self._step, failure, order=order)
        self._waiting[key] = order, self._clock.monotonic() + pause_s

    def works(self, key: object) -> None:
        """Record that it has worked, where it had failed before."""
        if key in self._waiting:
            self._supervisor.works(self._step, order=self._waiting.pop(key)[0])

    def not_due(self) -> frozenset[Any]:
        """Return the keys whose next try is still to come."""
        now = self._clock.monotonic()
        return frozenset(key for key, (_order, at) in self._waiting.items() if at > now)

    def due_in(self) -> float | None:
        """Return in how many seconds the first of them is due; None if there is none."""
        first = min((at for _order, at in self._waiting.values()), default=None)
        return None if first is None else max(0.0, first - self._clock.monotonic())
