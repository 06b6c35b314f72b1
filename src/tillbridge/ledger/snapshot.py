"""What `status` and the page read from the ledger: the same SQL with and without a daemon.

Light to import, so that `tillbridge status` answers immediately while the daemon is down. Also
contains acknowledgements and the last failed start.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.core.i18n import from_plain, to_plain
from tillbridge.core.problems import PROBLEMS, OpenProblem
from tillbridge.ledger.reading import Query, reading

if TYPE_CHECKING:
    from sqlalchemy import Connection  # takes a third of a second, only for a type

# -- acknowledgements, as stored in the fact


ACKNOWLEDGED = "problems_acknowledged"

ProblemKey = tuple[str, str, str, int]  # code, store, subject, since (ms)


def acknowledgement(fact: object, problem: OpenProblem) -> Mapping[str, Any] | None:
    """Return `at` (ms) and `by` of a problem's acknowledgement in the fact, or None."""
    return by_problem(fact).get(row_of(problem))


def by_problem(fact: object) -> dict[ProblemKey, dict[str, Any]]:
    """Return the fact's acknowledgements by code, store, subject and since."""
    rows = fact if isinstance(fact, list) else []
    return {
        (row["code"], row["store"], row["subject"], row["since"]): {
            "at": row["at"],
            "by": row["by"],
        }
        for row in rows
    }


def row_of(problem: OpenProblem) -> ProblemKey:
    """Return the identity of this particular problem, as opposed to a later one of its kind."""
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
# Counts for each store, by field of `StoreSnapshot`.
_COUNTS = {
    "untold": "orders WHERE closed_at IS NULL AND wanted <> told"
    # The service itself completes an order that is ready.
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


@dataclass(frozen=True, slots=True)
class Held:
    """A menu plan on hold: since when (ms), and why, in sentences.

    `digest` identifies its content.
    """

    since: int
    reasons: tuple[str, ...]
    digest: str = ""


@dataclass(slots=True)
class StoreSnapshot:
    """One store. `waiting`: orders that the POS does not have yet, with the oldest's receipt (ms).

    `by_state` counts all orders by their state at the service, `untold` those with a state that was
    not reported yet; `unhandled` counts deliveries not processed yet. `tables` are those that the
    service has accepted.
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
    """The content of the ledger at one moment. `facts` are those of the bridge itself."""

    stores: Mapping[str, StoreSnapshot]
    problems: tuple[OpenProblem, ...]
    facts: Mapping[str, Any]
    last_delivery_at: int | None = None  # ms; of any store

    def store(self, name: str) -> StoreSnapshot:
        """Return the store's part; an empty one if the ledger knows nothing about it."""
        return self.stores.get(name) or StoreSnapshot()


def read_snapshot(path: Path, url: str | None = None, own: str = "") -> Snapshot:
    """Read a ledger without a daemon, without changing it; the parameters are those of `Place`.

    Raises LedgerError if there is none yet, or if it cannot be read; ConfigError for a wrong URL.
    """
    with reading(path, url) as query:
        return _snapshot(query, own)


def take_snapshot(connection: "Connection") -> Snapshot:
    """Return the same in a running daemon: `await ledger.read(take_snapshot)`."""
    from tillbridge.ledger.database import plain_query  # noqa: PLC0415 -- needs SQLAlchemy
    from tillbridge.ledger.facts import own_key  # noqa: PLC0415 -- (as above)

    return _snapshot(plain_query(connection), own_key(connection))


def _snapshot(query: Query, own: str = "") -> Snapshot:
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
        of(store).held = Held(since, tuple(json.loads(reasons, object_hook=from_plain)), digest)
    bridge: dict[str, Any] = {}
    for store, name, value in query(_FACTS):
        facts = bridge if store in {"", own} else of(store).facts
        facts[name] = json.loads(value, object_hook=from_plain)
    problems = tuple(
        OpenProblem(
            code,
            "" if store == own else store,
            subject,
            since,
            json.loads(detail, object_hook=from_plain),
        )
        for code, store, subject, since, detail in query(_PROBLEMS)
        if code in PROBLEMS
    )
    last = next((at for (at,) in query(_LAST_DELIVERY)), None)
    return Snapshot(stores, problems, bridge, last)


# -- the last failed start: a file, because a start can fail before the ledger is open


_NAME = "failed_start.json"


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A failed start of the bridge: when (ms), why, and what to do about it."""

    at_ms: int
    text: str
    fix: str = ""


def note_failed_start(data_dir: Path, failed: FailedStart) -> None:
    """Write it to its file, if possible."""
    with contextlib.suppress(OSError):
        (data_dir / _NAME).write_text(json.dumps(to_plain(asdict(failed))), encoding="utf-8")


def forget_failed_start(data_dir: Path) -> None:
    """Delete it: the bridge has started."""
    with contextlib.suppress(OSError):
        (data_dir / _NAME).unlink(missing_ok=True)


def failed_start(data_dir: Path) -> FailedStart | None:
    """Return the last start if it failed, or None."""
    try:
        text = (data_dir / _NAME).read_text(encoding="utf-8")
        fields = json.loads(text, object_hook=from_plain)
        return FailedStart(int(fields["at_ms"]), fields["text"], fields["fix"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
