"""The ledger in numbers, for `status` and the page: the same SQL with and without a daemon.

It needs nothing but sqlite3, so that `tillbridge status` answers at once while the daemon is down.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.problems import PROBLEMS
from tillbridge.ledger.open_problem import OpenProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection  # costs a third of a second, for a type

_ORDERS_BY_STATE = "SELECT store, told, count(*) FROM orders GROUP BY store, told"
_ORDERS_WAITING = (
    "SELECT store, count(*), min(received_at) FROM orders WHERE closed_at IS NULL"
    " AND ticket IN ('waiting', 'writing') AND wanted <> 'cancelled' GROUP BY store"
)
_ORDERS_UNTOLD = (
    "SELECT store, count(*) FROM orders WHERE closed_at IS NULL AND wanted <> told"
    # The service itself says when an order that is ready is completed.
    " AND NOT (wanted = 'completed' AND told = 'ready') GROUP BY store"
)
_DELIVERIES_OPEN = "SELECT store, count(*) FROM inbox WHERE handled_at IS NULL GROUP BY store"
_ITEMS = "SELECT store, count(*) FROM menu_items GROUP BY store"
_ITEMS_REFUSED = "SELECT store, count(*) FROM menu_refused GROUP BY store"
_HOLDS = (
    "SELECT store, since, reasons, digest FROM holds"
    " WHERE approved_digest IS NULL OR approved_digest <> digest"
)
_TABLES = "SELECT store, count(*) FROM tables GROUP BY store"
_PUSHES_RUNNING = "SELECT store, count(*) FROM pushes WHERE state = 'running' GROUP BY store"
_PROBLEMS = "SELECT code, store, subject, since, detail FROM problems ORDER BY since, code"
_LAST_DELIVERY = "SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1"
_FACTS = "SELECT store, name, value FROM facts"

_Query = Callable[[str], Iterable[Any]]


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

    `by_state` counts all orders that are remembered by what the service was told; `untold` those
    of which it is still to be told something; `unhandled` deliveries nobody has looked at yet.
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
    for store, count in query(_ORDERS_UNTOLD):
        of(store).untold = count
    for store, count in query(_DELIVERIES_OPEN):
        of(store).unhandled = count
    for store, count in query(_ITEMS):
        of(store).acknowledged_items = count
    for store, count in query(_ITEMS_REFUSED):
        of(store).refused_items = count
    for store, since, reasons, digest in query(_HOLDS):
        of(store).held = Held(since, tuple(json.loads(reasons)), digest)
    for store, count in query(_TABLES):
        of(store).tables = count
    for store, count in query(_PUSHES_RUNNING):
        of(store).pushes_running = count
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
