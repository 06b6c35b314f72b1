"""What happened in the last 24 hours, and what waits now: the overview's figures.

Instants are ms since the epoch; an hour is counted from `from_ms`, not by the clock on the wall.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from tillbridge.ledger.orders import UNWRITTEN, TicketState
from tillbridge.ledger.problems import PastProblem, past_problems
from tillbridge.ledger.schema import inbox, orders, pushes
from tillbridge.model.order import OrderState

HOURS = 24
HOUR_MS = 3_600_000
_LOOK_BACK = 500  # deliveries looked through for each store's last one


@dataclass(frozen=True, slots=True)
class WaitingOrder:
    """An order that the till does not have yet. `failure` says why, if it was tried."""

    store: str
    order_id: str
    order_number: str
    received_at: int
    attempts: int
    failure: str


@dataclass(slots=True)
class Hour:
    """Orders that arrived in an hour and went well, and those that did not."""

    orders: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """The last 24 hours from `from_ms`, and the last successes by store."""

    from_ms: int
    hours: list[Hour] = field(default_factory=lambda: [Hour() for _ in range(HOURS)])
    past: list[PastProblem] = field(default_factory=list)
    waiting: list[WaitingOrder] = field(default_factory=list)
    last_delivery: dict[str, int] = field(default_factory=dict)
    last_ticket: dict[str, int] = field(default_factory=dict)
    failed_pushes: dict[str, int] = field(default_factory=dict)


def read_day(connection: Connection, now_ms: int, *, limit: int = 50) -> Day:
    """Return the day up to now; at most `limit` waiting orders, the oldest first."""
    day = Day(now_ms - HOURS * HOUR_MS)
    failed = (orders.c.wanted == OrderState.CANCELLED) | (orders.c.ticket == TicketState.REFUSED)
    for received_at, is_failed in connection.execute(
        select(orders.c.received_at, failed).where(orders.c.received_at > day.from_ms)
    ):
        place = min(HOURS - 1, (received_at - day.from_ms) // HOUR_MS)
        if is_failed:
            day.hours[place].failed += 1
        else:
            day.hours[place].orders += 1
    day.past.extend(past_problems(connection, ended_after=day.from_ms))
    day.waiting.extend(_waiting(connection, limit))
    for store, at in connection.execute(
        select(inbox.c.store, inbox.c.received_at).order_by(inbox.c.id.desc()).limit(_LOOK_BACK)
    ):
        day.last_delivery[store] = max(at, day.last_delivery.get(store, 0))
    for store, at in connection.execute(
        select(orders.c.store, func.max(orders.c.written_at))
        .where(orders.c.received_at > day.from_ms)
        .group_by(orders.c.store)
    ):
        if at is not None:
            day.last_ticket[store] = at
    for store, count in connection.execute(
        select(pushes.c.store, func.count())
        .where(pushes.c.started_at > day.from_ms, pushes.c.state == "failed")
        .group_by(pushes.c.store)
    ):
        day.failed_pushes[store] = count
    return day


def _waiting(connection: Connection, limit: int) -> Collection[WaitingOrder]:
    rows = connection.execute(
        select(orders)
        .where(
            orders.c.closed_at.is_(None),
            orders.c.ticket.in_([each.value for each in UNWRITTEN]),
            orders.c.wanted != OrderState.CANCELLED.value,
        )
        .order_by(orders.c.received_at)
        .limit(limit)
    )
    return [
        WaitingOrder(
            row.store,
            row.order_id,
            row.order_number,
            row.received_at,
            row.attempts,
            row.last_failure,
        )
        for row in rows
    ]
