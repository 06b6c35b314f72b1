"""What `status` and the page read of the ledger: the same SQL with and without a daemon.

It needs nothing but sqlite3, so that `tillbridge status` answers at once while the daemon is down.
Besides the snapshot these are the figures of orders, acknowledgements, and the last failed start.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.problems import PROBLEMS, OpenProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection  # costs a third of a second, for a type

# -- acknowledgements, as the fact holds them


ACKNOWLEDGED = "problems_acknowledged"

ProblemKey = tuple[str, str, str, int]  # code, store, subject, since (ms)


def acknowledgement(fact: object, problem: OpenProblem) -> Mapping[str, Any] | None:
    """Return `at` (ms) and `by` of a problem's acknowledgement, by the fact; None without one."""
    return by_problem(fact).get(row_of(problem))


def by_problem(fact: object) -> dict[ProblemKey, dict[str, Any]]:
    """Return the acknowledgements of the fact by code, store, subject and since."""
    rows = fact if isinstance(fact, list) else []
    return {
        (row["code"], row["store"], row["subject"], row["since"]): {
            "at": row["at"],
            "by": row["by"],
        }
        for row in rows
    }


def row_of(problem: OpenProblem) -> ProblemKey:
    """Return the identity of this very problem, not of a later one of its kind."""
    return (problem.code, problem.store, problem.subject, problem.since)


_ORDERS_BY_STATE = "SELECT store, told, count(*) FROM orders GROUP BY store, told"
_ORDERS_WAITING = (
    "SELECT store, count(*), min(received_at) FROM orders WHERE closed_at IS NULL"
    " AND ticket IN ('waiting', 'writing') AND wanted <> 'cancelled' GROUP BY store"
)
_HOLDS = (
    "SELECT store, since, reasons, digest FROM holds"
    " WHERE approved_digest IS NULL OR approved_digest <> digest"
)
# Counts of each store, by the field of `StoreSnapshot`.
_COUNTS = {
    "untold": "orders WHERE closed_at IS NULL AND wanted <> told"
    # The service itself says when an order that is ready is completed.
    " AND NOT (wanted = 'completed' AND told = 'ready')",
    "unhandled": "inbox WHERE handled_at IS NULL",
    "acknowledged_items": "menu_items",
    "refused_items": "menu_refused",
    "tables": "tables",
    "pushes_running": "pushes WHERE state = 'running'",
}
_PROBLEMS = "SELECT code, store, subject, since, detail FROM problems ORDER BY since, code"
_LAST_DELIVERY = "SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1"
_FACTS = "SELECT store, name, value FROM facts"

_Query = Callable[..., Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Held:
    """A menu plan that waits for a person: since when (ms), and why, in sentences.

    `digest` names its content.
    """

    since: int
    reasons: tuple[str, ...]
    digest: str = ""


@dataclass(slots=True)
class StoreSnapshot:
    """One store. `waiting`: orders the POS does not have yet, the oldest received at that ms.

    `by_state` counts all orders in the ledger by their state at the service, `untold` those of
    which the service does not have the latest; `unhandled` deliveries nobody has looked at yet.
    `tables` are those that the service has accepted.
    """

    waiting: int = 0
    oldest_waiting_at: int | None = None
    by_state: dict[str, int] = field(default_factory=dict)
    untold: int = 0
    unhandled: int = 0
    acknowledged_items: int = 0
    refused_items: int = 0
    pushes_running: int = 0
    held: Held | None = None
    tables: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the ledger knows at one moment. `facts` are those of the bridge itself."""

    stores: Mapping[str, StoreSnapshot]
    problems: tuple[OpenProblem, ...]
    facts: Mapping[str, Any]
    last_delivery_at: int | None = None  # ms; of any store

    def store(self, name: str) -> StoreSnapshot:
        """Return the store's part; an empty one where the ledger knows nothing of it."""
        return self.stores.get(name) or StoreSnapshot()


def read_snapshot(path: Path) -> Snapshot:
    """Read `ledger.db` without a daemon; it is not changed.

    Raises LedgerError where there is none yet, and where it cannot be read.
    """
    if not path.exists():
        raise LedgerError(
            _("There is no ledger at {path}.").format(path=path),
            fix=_("Check data_dir in [bridge]; the bridge makes it when it first runs."),
        )
    failure: sqlite3.Error | None = None
    # Without the right to make a -shm file SQLite reads no WAL: then what is in the file must do.
    for how in ("mode=ro", "immutable=1"):
        try:
            uri = f"{path.absolute().as_uri()}?{how}"
            with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=1)) as connection:
                connection.execute("BEGIN")
                return _snapshot(connection.execute)
        except sqlite3.Error as refused:
            failure = refused
    raise LedgerError(
        _("The ledger {path} cannot be read: {detail}.").format(path=path, detail=failure),
        fix=_("Start the bridge: it mends a damaged ledger at start."),
    ) from failure


def take_snapshot(connection: "Connection") -> Snapshot:
    """Return the same for a running daemon: `await ledger.read(take_snapshot)`."""
    return _snapshot(connection.exec_driver_sql)


def _snapshot(query: _Query) -> Snapshot:
    stores: dict[str, StoreSnapshot] = {}

    def of(name: str) -> StoreSnapshot:
        return stores.setdefault(name, StoreSnapshot())

    for store, state, count in query(_ORDERS_BY_STATE):
        of(store).by_state[state] = count
    for store, count, oldest in query(_ORDERS_WAITING):
        of(store).waiting = count
        of(store).oldest_waiting_at = oldest
    for name, rows in _COUNTS.items():
        for store, count in query(f"SELECT store, count(*) FROM {rows} GROUP BY store"):  # noqa: S608 -- our own words
            setattr(of(store), name, count)
    for store, since, reasons, digest in query(_HOLDS):
        of(store).held = Held(since, tuple(json.loads(reasons)), digest)
    bridge: dict[str, Any] = {}
    for store, name, value in query(_FACTS):
        (of(store).facts if store else bridge)[name] = json.loads(value)
    problems = tuple(
        OpenProblem(code, store, subject, since, json.loads(detail))
        for code, store, subject, since, detail in query(_PROBLEMS)
        if code in PROBLEMS
    )
    last = next((at for (at,) in query(_LAST_DELIVERY)), None)
    return Snapshot(stores, problems, bridge, last)


# -- figures: time to ticket, time to accept, orders that needed a person; over a day and seven


SPANS: Mapping[str, int] = {"24h": 86_400_000, "7d": 7 * 86_400_000}

_ORDERS = (
    "SELECT store, order_id, received_at, written_at, wanted, reason_code FROM orders"
    " WHERE received_at > ?"
)
_LOG_ENTRIES = (
    "SELECT l.store, l.order_id, l.at, l.event, l.detail FROM orders AS o JOIN order_log AS l"
    " ON l.store = o.store AND l.order_id = o.order_id WHERE o.received_at > ? AND l.event IN"
    " ('order.accepted', 'order.retried', 'order.handled', 'order.to_cancel', 'order.withdrawn',"
    " 'ticket.rejected') ORDER BY l.id"
)
# Reasons of an order that nobody wanted to cancel: it was lost.
_LOST = {"POS_OFFLINE", "OTHER"}


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


class FiguresView(TypedDict):
    """The figures of one store over one span, as the status document has them."""

    orders: int
    time_to_ticket_s: dict[str, float] | None
    time_to_accept_s: dict[str, float] | None
    needed_a_hand: int
    needed_a_hand_share: float | None
    lost: int


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

    def to_json(self) -> FiguresView:
        """Return them as the status document has them."""
        return {
            "orders": self.orders,
            "time_to_ticket_s": None if self.to_ticket is None else asdict(self.to_ticket),
            "time_to_accept_s": None if self.to_accept is None else asdict(self.to_accept),
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

    def to_json(self) -> dict[str, FiguresView]:
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
    for store, order_id, received_at, written_at, desired, reason in query(_ORDERS, after):
        courses[store, order_id] = OrderCourse(
            received_at, written_at, cancelled=desired == "cancelled", reason_code=reason
        )
    for store, order_id, at, event, detail in query(_LOG_ENTRIES, after):
        if (course := courses.get((store, order_id))) is not None:
            _apply(course, at, event, json.loads(detail))
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


def _apply(course: OrderCourse, at: int, event: str, detail: Mapping[str, Any]) -> None:
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


# -- the last start that failed: a file, because a start can fail before the ledger is open


_NAME = "failed_start.json"


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A start of the bridge that failed: when (ms), why, and what to do about it."""

    at_ms: int
    text: str
    fix: str = ""


def note_failed_start(data_dir: Path, failed: FailedStart) -> None:
    """Write it down; nothing where that cannot be done."""
    with contextlib.suppress(OSError):
        (data_dir / _NAME).write_text(json.dumps(asdict(failed)), encoding="utf-8")


def forget_failed_start(data_dir: Path) -> None:
    """Forget it: the bridge has started."""
    with contextlib.suppress(OSError):
        (data_dir / _NAME).unlink(missing_ok=True)


def failed_start(data_dir: Path) -> FailedStart | None:
    """Return the last start, where it failed; None where it did not, or nobody knows."""
    try:
        fields = json.loads((data_dir / _NAME).read_text(encoding="utf-8"))
        return FailedStart(int(fields["at_ms"]), str(fields["text"]), str(fields["fix"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
