"""Which storefront the accepted menu and the accepted tables belong to.

What the service has belongs to one integration of one store at one address. The ledger remembers
that identity beside the records; where the current one differs, the records no longer say what the
storefront has. The menu and the floor plan are settled apart, each by its own lane, so each has its
own fact. Instants are ms since the epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlmodel import col

from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import (
    AcceptedTable,
    MenuPart,
    Push,
    RefusedItem,
    StoreOverride,
    all_rows,
)
from tillbridge.ledger.pushes import DISMISSED, drop_hold

MENU, TABLES = "storefront", "tables_storefront"  # the facts
WHOLE_DUE = "menu_whole_due"  # the fact: only a full push brings both in line, {since}
INTEGRATION_MADE = "integration_made"  # the fact: when the bridge last made an integration {at}


class Kinship(Enum):
    """How the current storefront relates to the one that the records were accepted by."""

    SAME = "same"
    RENEWED = "renewed"  # the same store, integrated anew: it may have lost what it had
    OTHER = "other"  # another address or store: it never had any of it


@dataclass(frozen=True, slots=True)
class Storefront:
    """The identity of a storefront; `integration` is "" while that is not known."""

    base_url: str
    store_id: str
    integration: str = ""


def kinship(known: Storefront | None, now: Storefront) -> Kinship:
    """Return how `now` relates to the storefront that is remembered. Pure.

    A ledger that remembers none, or no integration, is taken to mean the current one: versions
    before this one remembered neither.
    """
    if known is None:
        return Kinship.SAME
    if (known.base_url, known.store_id) != (now.base_url, now.store_id):
        return Kinship.OTHER
    if known.integration and now.integration and known.integration != now.integration:
        return Kinship.RENEWED
    return Kinship.SAME


def current_storefront(connection: Connection, store: str, base_url: str) -> Storefront | None:
    """Return the storefront that the store is connected to now; None while it is to none.

    A service without integration ids is known by when this bridge made the integration.
    """
    store_id = get_fact(connection, store, "service_store_id")
    if not isinstance(store_id, str):
        return None
    integration = _mapping(get_fact(connection, store, "integration"))
    identity = integration.get("integration_id")
    if integration and not identity:
        made = _mapping(get_fact(connection, store, INTEGRATION_MADE))
        identity = f"made at {made['at']}" if made else ""
    return Storefront(base_url.rstrip("/"), store_id, identity or "")


def remembered_storefront(connection: Connection, store: str, fact: str) -> Storefront | None:
    """Return the storefront that the records belong to (`fact`: MENU or TABLES)."""
    known = _mapping(get_fact(connection, store, fact))
    if not known:
        return None
    return Storefront(known["base_url"], known["store_id"], known["integration"])


def remember_storefront(
    connection: Connection, store: str, fact: str, now: Storefront, *, at: int
) -> None:
    """Note that the records belong to this storefront; a known integration is not unlearnt."""
    known = remembered_storefront(connection, store, fact)
    if known is not None and not now.integration and kinship(known, now) is Kinship.SAME:
        return
    if known != now:
        put_fact(connection, store, fact, asdict(now), at=at)


def begin_anew(connection: Connection, store: str, *, parts: bool, pending: int, at: int) -> None:
    """Forget what concerns pushes to the storefront before: holds, refusals, pushes under way.

    `parts`: forget categories, add-ons, groups and menus too. A full push is due afterwards, and
    `pending` changes wait until then.
    """
    if parts:
        connection.execute(delete(MenuPart).filter_by(store=store))
    connection.execute(delete(RefusedItem).filter_by(store=store))
    connection.execute(
        update(Push)
        .filter_by(store=store, state="running")
        .values(state="lost", finished_at=at, pending=None)
    )
    connection.execute(update(StoreOverride).filter_by(store=store).values(sent_at=None))
    drop_hold(connection, store)
    for fact in (DISMISSED, "last_synced_at"):
        drop_fact(connection, store, fact)
    whole_is_due(connection, store, pending=pending, at=at)


def whole_is_due(connection: Connection, store: str, *, pending: int, at: int) -> None:
    """Note that the next push must be a full one, and how many changes wait for it at least."""
    put_fact(connection, store, WHOLE_DUE, {"since": at}, at=at)
    if pending > (get_fact(connection, store, "menu_pending") or 0):
        put_fact(connection, store, "menu_pending", pending, at=at)


def is_whole_due(connection: Connection, store: str) -> bool:
    """Whether only a full push brings ledger and storefront in line."""
    return get_fact(connection, store, WHOLE_DUE) is not None


def whole_is_done(connection: Connection, store: str) -> None:
    """Note that a full push was taken."""
    drop_fact(connection, store, WHOLE_DUE)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# -- the floor plan as accepted, with the QR ordering address of each table


def get_tables(connection: Connection, store: str) -> tuple[AcceptedTable, ...]:
    """Return the accepted tables, by external id."""
    query = select(AcceptedTable).filter_by(store=store).order_by(col(AcceptedTable.external_id))
    return tuple(all_rows(connection, query))


def put_tables(connection: Connection, store: str, accepted: Sequence[AcceptedTable]) -> None:
    """Remember these tables, and only these, as accepted."""
    connection.execute(delete(AcceptedTable).filter_by(store=store))
    if accepted:
        connection.execute(
            insert(AcceptedTable), [{**dict(each), "store": store} for each in accepted]
        )
