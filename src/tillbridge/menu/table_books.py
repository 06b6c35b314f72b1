"""What the ledger keeps of the floor plan beside the tables: the hold, and the printed codes.

Small facts: `tables_hold`, `tables_printed` (code digests by external id), `tables_dead` (names),
`tables_synced_at` (ms).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection

from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import AcceptedTable
from tillbridge.ledger.storefront import get_tables, put_tables

HOLD, PRINTED, DEAD, SYNCED = "tables_hold", "tables_printed", "tables_dead", "tables_synced_at"


@dataclass(frozen=True, slots=True)
class FloorHold:
    """A floor plan that waits for a person since that instant (ms), or is released."""

    digest: str
    since: int
    reasons: tuple[str, ...]
    approved: bool = False


@dataclass(frozen=True, slots=True)
class FloorBooks:
    """All that is remembered of one store's floor plan."""

    accepted: tuple[AcceptedTable, ...] = ()
    hold: FloorHold | None = None
    printed: Mapping[str, str] = field(default_factory=dict)
    dead: tuple[str, ...] = ()


def read_books(connection: Connection, store: str) -> FloorBooks:
    """Return what is remembered."""
    hold = get_fact(connection, store, HOLD)
    return FloorBooks(
        accepted=get_tables(connection, store),
        hold=None if hold is None else FloorHold(**{**hold, "reasons": tuple(hold["reasons"])}),
        printed=get_fact(connection, store, PRINTED) or {},
        dead=tuple(get_fact(connection, store, DEAD) or ()),
    )


def put_hold(connection: Connection, store: str, hold: FloorHold | None, *, at: int) -> None:
    """Remember which plan waits; None for none."""
    if hold is None:
        drop_fact(connection, store, HOLD)
    else:
        put_fact(connection, store, HOLD, asdict(hold), at=at)


def put_accepted(
    connection: Connection, store: str, accepted: Sequence[AcceptedTable], *, at: int
) -> None:
    """Remember the plan that the service has accepted; nothing waits any more."""
    put_tables(connection, store, accepted)
    put_fact(connection, store, SYNCED, at, at=at)
    drop_fact(connection, store, HOLD)


def forget_accepted(connection: Connection, store: str) -> None:
    """Forget the accepted plan: another storefront has never had it. Printed codes stay known."""
    put_tables(connection, store, ())
    for fact in (HOLD, SYNCED):
        drop_fact(connection, store, fact)


def put_printed(
    connection: Connection,
    store: str,
    printed: Mapping[str, str],
    dead: Sequence[str],
    *,
    at: int,
) -> None:
    """Remember which codes are printed, and the names of tables whose printed code is dead."""
    put_fact(connection, store, PRINTED, dict(printed), at=at)
    value: Any = list(dead)
    put_fact(connection, store, DEAD, value, at=at)
