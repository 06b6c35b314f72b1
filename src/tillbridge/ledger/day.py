"""What happened in the last 24 hours, and what waits now: the overview's figures.

Instants are ms since the epoch; an hour is counted from `from_ms`, not by the clock on the wall.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select
from sqlmodel import col

from tillbridge.ledger.models import Delivery, OrderRow, PastProblem, Push, TicketState
from tillbridge.ledger.orders import UNWRITTEN
from tillbridge.ledger.problems import past_problems
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
    failed = (col(OrderRow.desired_state) == OrderState.CANCELLED) | (
        col(OrderRow.ticket) == TicketState.REFUSED
    )
    for received_at, is_failed in connection.execute(
        select(col(OrderRow.received_at), failed).where(col(OrderRow.received_at) > day.from_ms)
    ):
        place = min(HOURS - 1, (received_at - day.from_ms) // HOUR_MS)
        if is_failed:
            day.hours[place].failed += 1
        else:
            day.hours[place].orders += 1
    day.past.extend(past_problems(connection, ended_after=day.from_ms))
    day.waiting.extend(_waiting(connection, limit))
    for store, at in connection.execute(
        select(col(Delivery.store), col(Delivery.received_at))
        .order_by(col(Delivery.id).desc())
        .limit(_LOOK_BACK)
    ):
        day.last_delivery[store] = max(at, day.last_delivery.get(store, 0))
    for store, written_at in connection.execute(
        select(col(OrderRow.store), func.max(col(OrderRow.written_at)))
        .where(col(OrderRow.received_at) > day.from_ms)
        .group_by(col(OrderRow.store))
    ):
        if written_at is not None:
            day.last_ticket[store] = written_at
    for store, count in connection.execute(
        select(col(Push.store), func.count())
        .filter_by(state="failed")
        .where(col(Push.started_at) > day.from_ms)
        .group_by(col(Push.store))
    ):
        day.failed_pushes[store] = count
    return day


def _waiting(connection: Connection, limit: int) -> list[WaitingOrder]:
    columns = ("store", "order_id", "order_number", "received_at", "attempts", "last_failure")
    rows = connection.execute(
        select(*(col(getattr(OrderRow, name)) for name in columns))
        .where(
            col(OrderRow.closed_at).is_(None),
            col(OrderRow.ticket).in_(UNWRITTEN),
            col(OrderRow.desired_state) != OrderState.CANCELLED,
        )
        .order_by(col(OrderRow.received_at))
        .limit(limit)
    )
    return [WaitingOrder(*row) for row in rows]
