"""What happened in the last 24 hours, and what waits now: the overview's figures.

Instants are ms since the epoch; an hour is counted from `from_ms`, not by the clock on the wall.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.problems import past_problems

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


_ARRIVED = (
    "SELECT received_at, wanted = 'cancelled' OR ticket = 'refused' FROM orders"
    " WHERE received_at > ?"
)
_WAITING = (
    "SELECT store, order_id, order_number, received_at, attempts, last_failure FROM orders"
    " WHERE closed_at IS NULL AND ticket IN ('waiting', 'writing') AND wanted <> 'cancelled'"
    " ORDER BY received_at LIMIT ?"
)
_LAST_DELIVERY = (
    "SELECT store, max(received_at) FROM"
    " (SELECT store, received_at FROM inbox ORDER BY id DESC LIMIT ?) GROUP BY store"
)
_LAST_TICKET = (
    "SELECT store, max(written_at) FROM orders"
    " WHERE received_at > ? AND written_at IS NOT NULL GROUP BY store"
)
_FAILED_PUSHES = (
    "SELECT store, count(*) FROM pushes WHERE state = 'failed' AND started_at > ? GROUP BY store"
)


def read_day(connection: Connection, now_ms: int, *, limit: int = 50) -> Day:
    """Return the day up to now; at most `limit` waiting orders, the oldest first."""
    query = connection.exec_driver_sql
    day = Day(now_ms - HOURS * HOUR_MS)
    after = (day.from_ms,)
    for received_at, is_failed in query(_ARRIVED, after):
        hour = day.hours[min(HOURS - 1, (received_at - day.from_ms) // HOUR_MS)]
        if is_failed:
            hour.failed += 1
        else:
            hour.orders += 1
    day.past.extend(past_problems(connection, ended_after=day.from_ms))
    day.waiting.extend(WaitingOrder(*row) for row in query(_WAITING, (limit,)))
    day.last_delivery.update(tuple(row) for row in query(_LAST_DELIVERY, (_LOOK_BACK,)))
    day.last_ticket.update(tuple(row) for row in query(_LAST_TICKET, after))
    day.failed_pushes.update(tuple(row) for row in query(_FAILED_PUSHES, after))
    return day
