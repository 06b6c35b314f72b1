"""How well it goes: time to ticket, time to accept, and how many orders needed a hand.

The figures are counted from the ledger, over orders received within a day and within seven days.
Like the snapshot it needs nothing but sqlite3, so that `status` answers at once without a daemon.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection  # costs a third of a second, for a type

SPANS: Mapping[str, int] = {"24h": 86_400_000, "7d": 7 * 86_400_000}

_ORDERS = (
    "SELECT store, order_id, received_at, written_at, wanted, reason_code FROM orders"
    " WHERE received_at > ?"
)
_LIVES = (
    "SELECT l.store, l.order_id, l.at, l.event, l.detail FROM orders AS o JOIN order_log AS l"
    " ON l.store = o.store AND l.order_id = o.order_id WHERE o.received_at > ? AND l.event IN"
    " ('order.accepted', 'order.retried', 'order.handled', 'order.to_cancel', 'order.withdrawn',"
    " 'ticket.rejected') ORDER BY l.id"
)
# Reasons of an order that nobody wanted to cancel: it was lost.
_LOST = {"POS_OFFLINE", "OTHER"}

_Query = Callable[[str, tuple[int]], Iterable[Any]]


@dataclass(slots=True)
class OrderCourse:
    """What of one order the figures are made of. Instants in ms."""

    received_at: int
    written_at: int | None = None
    accepted_at: int | None = None
    by_person: bool = False  # retried, cancelled, handled, or left to a person
    rejected: bool = False  # by the kitchen
    cancelled: bool = False
    reason_code: str | None = None

    @property
    def lost(self) -> bool:
        """Whether it was given up though nobody wanted that."""
        unwanted = self.cancelled and not self.by_person and not self.rejected
        return unwanted and self.written_at is None and self.reason_code in _LOST


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: the middle, what 95 of 100 stay under, the longest; and of how many."""

    median: float
    p95: float
    longest: float
    count: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one store over one span; None where there is nothing to count."""

    orders: int = 0
    to_ticket: Times | None = None
    to_accept: Times | None = None
    needed_a_hand: int = 0
    lost: int = 0

    @property
    def share(self) -> float | None:
        """The share of orders that needed a hand, 0 to 1."""
        return None if not self.orders else round(self.needed_a_hand / self.orders, 4)

    def to_json(self) -> dict[str, Any]:
        """Return them as the status document has them."""
        return {
            "orders": self.orders,
            "time_to_ticket_s": _times_json(self.to_ticket),
            "time_to_accept_s": _times_json(self.to_accept),
            "needed_a_hand": self.needed_a_hand,
            "needed_a_hand_share": self.share,
            "lost": self.lost,
        }


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """The figures of one store by span, as `SPANS` names them."""

    by_span: Mapping[str, Figures] = field(
        default_factory=lambda: {name: Figures() for name in SPANS}
    )

    def to_json(self) -> dict[str, Any]:
        """Return them by span."""
        return {name: figures.to_json() for name, figures in self.by_span.items()}


def figures_of(courses: Sequence[OrderCourse]) -> Figures:
    """Return the figures of these orders."""
    tickets = [each.written_at - each.received_at for each in courses if each.written_at]
    accepts = [each.accepted_at - each.received_at for each in courses if each.accepted_at]
    lost = sum(each.lost for each in courses)
    by_person = sum(each.by_person for each in courses)
    return Figures(len(courses), _times(tickets), _times(accepts), by_person + lost, lost)


def read_figures(path: Path, now_ms: int) -> dict[str, StoreFigures]:
    """Read them from `ledger.db` without a daemon. Raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=1)) as connection:
        return _read(connection.execute, now_ms)


def take_figures(connection: "Connection", now_ms: int) -> dict[str, StoreFigures]:
    """Return the same for a running daemon, by store."""
    return _read(connection.exec_driver_sql, now_ms)


def _read(query: _Query, now_ms: int) -> dict[str, StoreFigures]:
    after = (now_ms - max(SPANS.values()),)
    courses: dict[tuple[str, str], OrderCourse] = {}
    for store, order_id, received_at, written_at, wanted, reason in query(_ORDERS, after):
        courses[store, order_id] = OrderCourse(
            received_at, written_at, cancelled=wanted == "cancelled", reason_code=reason
        )
    for store, order_id, at, event, detail in query(_LIVES, after):
        if (course := courses.get((store, order_id))) is not None:
            _take_note(course, at, event, json.loads(detail))
    by_store: dict[str, list[OrderCourse]] = {}
    for (store, _order), course in courses.items():
        by_store.setdefault(store, []).append(course)
    return {
        store: StoreFigures(
            {
                name: figures_of([each for each in all_ if each.received_at > now_ms - span])
                for name, span in SPANS.items()
            }
        )
        for store, all_ in by_store.items()
    }


def _take_note(course: OrderCourse, at: int, event: str, detail: Mapping[str, Any]) -> None:
    match event:
        case "order.accepted":
            course.accepted_at = course.accepted_at or at
        case "ticket.rejected":
            course.rejected = True
        case "order.to_cancel":
            course.by_person |= bool(detail.get("by"))  # who asked for it; "" for the bridge
        case "order.withdrawn":
            course.by_person |= detail.get("how") == "left_to_person"
        case _:
            course.by_person = True


def _times(took_ms: Sequence[int]) -> Times | None:
    """Return the times; a clock that was set back in between counts as no time."""
    if not took_ms:
        return None
    seconds = sorted(max(0, each) / 1000 for each in took_ms)
    return Times(_rank(seconds, 50), _rank(seconds, 95), seconds[-1], len(seconds))


def _rank(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that so many percent do not exceed (nearest rank)."""
    return values[max(0, -(-len(values) * percent // 100) - 1)]


def _times_json(times: Times | None) -> dict[str, Any] | None:
    if times is None:
        return None
    return {
        "median": times.median,
        "p95": times.p95,
        "longest": times.longest,
        "count": times.count,
    }
