"""What happened recently and what is waiting now, for the overview. Times are ms (epoch)."""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from tillbridge.ledger.database import plain_query
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.problems import past_problems

HOUR_MS = 3_600_000
DAYS = 7
_MEASURED = 50  # deliveries
_LOOK_BACK = 500  # deliveries searched for each store's last one


@dataclass(frozen=True, slots=True)
class WaitingOrder:
    """An order that the till does not have yet. `failure` says why, if it was tried."""

    store: str
    order_id: str
    order_number: str
    received_at: int
    attempts: int
    failure: str


@dataclass(frozen=True, slots=True)
class Day:
    """Recent events: problems since `from_ms`, and each store's last successes.

    `handled_ms` is the median time that the bridge took for its latest deliveries.
    """

    from_ms: int
    past: list[PastProblem] = field(default_factory=list)
    waiting: list[WaitingOrder] = field(default_factory=list)
    last_delivery: dict[str, int] = field(default_factory=dict)
    last_ticket: dict[str, int] = field(default_factory=dict)
    handled_ms: int | None = None


_WAITING = (
    "SELECT store, order_id, order_number, received_at, attempts, last_failure FROM orders"
    " WHERE closed_at IS NULL AND ticket IN ('waiting', 'writing') AND wanted <> 'cancelled'"
    " ORDER BY received_at LIMIT ?"
)
_LAST_DELIVERY = (
    "SELECT store, max(received_at) FROM"
    " (SELECT store, received_at FROM inbox ORDER BY id DESC LIMIT ?) AS latest GROUP BY store"
)
_LAST_TICKET = (
    "SELECT store, max(written_at) FROM orders"
    " WHERE received_at > ? AND written_at IS NOT NULL GROUP BY store"
)
_HANDLED = (
    "SELECT handled_at - received_at FROM (SELECT handled_at, received_at FROM inbox"
    " ORDER BY id DESC LIMIT ?) AS latest WHERE handled_at IS NOT NULL ORDER BY 1"
)


def read_day(connection: Connection, now_ms: int, *, limit: int = 50) -> Day:
    """Return the state at `now_ms`, with at most `limit` waiting orders, oldest first."""
    query = plain_query(connection)
    took = [max(0, ms) for (ms,) in query(_HANDLED, (_MEASURED,))]
    day = Day(now_ms - DAYS * 24 * HOUR_MS, handled_ms=took[(len(took) - 1) // 2] if took else None)
    day.past.extend(past_problems(connection, ended_after=day.from_ms))
    day.waiting.extend(WaitingOrder(*each) for each in map(tuple, query(_WAITING, (limit,))))
    day.last_delivery.update(tuple(row) for row in query(_LAST_DELIVERY, (_LOOK_BACK,)))
    day.last_ticket.update(tuple(row) for row in query(_LAST_TICKET, (day.from_ms,)))
    return day
