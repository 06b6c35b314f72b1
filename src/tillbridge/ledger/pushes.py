"""What is to reach a storefront: pushes and holds of the menu, overrides, tables; and which one.

A push is recorded before it is sent, so that after a crash the bridge knows what may have reached
the service. What the service has belongs to one integration of one store at one address. The ledger
stores that identity with the records; if it differs from the current one, the records no longer
describe the storefront. The menu and the floor plan are settled separately, each by its own lane,
so each has its own fact. Instants are ms since the epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlmodel import col

from tillbridge.ledger.database import all_rows, first_row, upsert
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import (
    AcceptedTable,
    CommunityOverride,
    Hold,
    MenuPart,
    Push,
    RefusedItem,
    StoreOverride,
)
from tillbridge.model.catalogue import AddOnGroup, Item
from tillbridge.model.instant import end_or_never

T = TypeVar("T", StoreOverride, CommunityOverride)


def begin_push(
    connection: Connection,
    store: str,
    kind: str,
    summary: Mapping[str, Any],
    pending: str,
    *,
    at: int,
) -> int:
    """Record that a push is about to be sent; return its id."""
    row = {"store": store, "kind": kind, "started_at": at, "state": "running"}
    begun = insert(Push).values(**row, summary=summary, pending=pending)
    return connection.execute(begun.returning(col(Push.id))).scalar_one()


def push_became_job(
    connection: Connection, push_id: int, *, job_id: str, poll_url: str, pending: str
) -> None:
    """Record that the push became a job; acknowledge `pending` when the job succeeds."""
    connection.execute(
        update(Push).filter_by(id=push_id).values(job_id=job_id, poll_url=poll_url, pending=pending)
    )


def end_push(connection: Connection, push_id: int, state: str, message: str, *, at: int) -> None:
    """Record how the push ended, with the service's message."""
    ended = {"state": state, "message": message, "finished_at": at, "pending": None}
    connection.execute(update(Push).filter_by(id=push_id).values(**ended))


def pending_of(connection: Connection, push_id: int) -> str | None:
    """Return the content of a push that has not ended."""
    return connection.scalar(select(col(Push.pending)).filter_by(id=push_id))


def push_page(
    connection: Connection, store: str, limit: int, *, before: int | None = None
) -> list[Push]:
    """Return the latest pushes before the one with this id, newest first."""
    query = select(Push).filter_by(store=store)
    if before is not None:
        query = query.where(col(Push.id) < before)
    return all_rows(connection, query.order_by(col(Push.id).desc()).limit(limit))


def push_counts(connection: Connection) -> list[tuple[str, str, int]]:
    """Return how many pushes each store has in each state."""
    key = col(Push.store), col(Push.state)
    rows = connection.execute(select(*key, func.count()).group_by(*key))
    return [(store, state, count) for store, state, count in rows]


# -- holds: a plan that waits for a person, at most one for each store


DISMISSED = "menu_dismissed"  # the fact: the plan that a person rejected {digest, by, at}


def get_hold(connection: Connection, store: str) -> Hold | None:
    """Return the plan that waits, or is approved and not yet pushed."""
    return first_row(connection, select(Hold).filter_by(store=store))


def put_hold(
    connection: Connection,
    store: str,
    digest: str,
    reasons: Sequence[str],
    summary: Mapping[str, Any],
    *,
    at: int,
) -> None:
    """Put the plan on hold, replacing an older one; if the content differs, approval is lost."""
    hold = Hold(store=store, digest=digest, since=at, reasons=list(reasons), summary=summary)
    connection.execute(upsert(Hold, "digest", "reasons", "summary"), dict(hold))


def approve_hold(connection: Connection, store: str) -> Hold | None:
    """Approve the plan on hold; return None if there is none."""
    connection.execute(update(Hold).filter_by(store=store).values(approved_digest=col(Hold.digest)))
    drop_fact(connection, store, DISMISSED)
    return get_hold(connection, store)


def carry_approval(connection: Connection, store: str, digest: str) -> None:
    """Keep an approval valid for the rest of its plan; "": nothing is left of it."""
    if not digest:
        drop_hold(connection, store)
        return
    connection.execute(
        update(Hold)
        .filter_by(store=store)
        .where(col(Hold.approved_digest) == col(Hold.digest))
        .values(digest=digest, approved_digest=digest)
    )


def dismiss_hold(connection: Connection, store: str, *, by: str, at: int) -> Hold | None:
    """Record that the person `by` rejects the plan on hold; return None if there is none.

    It is not offered again, but a plan with different content is.
    """
    hold = get_hold(connection, store)
    if hold is None or hold.approved:
        return None
    dismissed = {"digest": hold.digest, "by": by, "at": at}
    put_fact(connection, store, DISMISSED, dismissed, at=at)
    return hold


def is_dismissed(connection: Connection, store: str, digest: str) -> bool:
    """Return whether a person has rejected the plan with this content."""
    return (get_fact(connection, store, DISMISSED, dict) or {}).get("digest") == digest


def drop_hold(connection: Connection, store: str) -> None:
    """Remove the hold."""
    connection.execute(delete(Hold).filter_by(store=store))


# -- overrides in stores and communities: items off sale, whatever the POS or the merchant says


def put_override(connection: Connection, override: StoreOverride | CommunityOverride) -> None:
    """Set the override, replacing an older one for that item."""
    kind = type(override)
    values = {name: value for name, value in override if name not in {"store", "external_id"}}
    connection.execute(upsert(kind, *values), dict(override))


def get_overrides(connection: Connection, store: str, kind: type[T]) -> dict[str, T]:
    """Return the overrides of a store or a community, by item id.

    Includes those that have expired.
    """
    rows = all_rows(connection, select(kind).filter_by(store=store).order_by(col(kind.external_id)))
    for row in rows:
        row.until = end_or_never(row.until)
    return {row.external_id: row for row in rows}


def drop_overrides(
    connection: Connection,
    store: str,
    external_ids: Collection[str],
    kind: type[StoreOverride] | type[CommunityOverride] = StoreOverride,
) -> int:
    """Lift overrides; return how many there were."""
    chosen = col(kind.external_id).in_(list(external_ids))
    return connection.execute(delete(kind).filter_by(store=store).where(chosen)).rowcount


def ids_off(items: Collection[Item]) -> set[str]:
    """Return the ids of the items and variants that are off sale."""
    off = {each.external_id for each in items if not each.available}
    return off | {
        variant.external_id
        for each in items
        for variant in each.variants
        if not (each.available and variant.available)
    }


def options_off(groups: Mapping[str, AddOnGroup]) -> set[str]:
    """Return the ids of the add-ons that are off sale in these groups."""
    return {each for group in groups.values() for each in group.sold_out}


def mark_sent(connection: Connection, store: str, off: AbstractSet[str], *, at: int) -> None:
    """Record that the storefront has these off sale, and thus which overrides it has.

    They are ids of items, variants and add-ons.
    """
    waiting = select(col(StoreOverride.external_id)).filter_by(store=store, sent_at=None)
    if off and (sent := off & set(connection.scalars(waiting))):
        connection.execute(
            update(StoreOverride)
            .filter_by(store=store)
            .where(col(StoreOverride.external_id).in_(sent))
            .values(sent_at=at)
        )


def settle_override(connection: Connection, sent: CommunityOverride, *, at: int) -> None:
    """Record that the service has accepted this override; one that puts on sale is then deleted."""
    same = {name: getattr(sent, name) for name in ("store", "external_id", "at", "available")}
    if sent.available:
        connection.execute(delete(CommunityOverride).filter_by(**same))
    else:
        connection.execute(update(CommunityOverride).filter_by(**same).values(sent_at=at))


# -- the storefront that the accepted menu and the accepted tables belong to


MENU, TABLES = "storefront", "tables_storefront"  # the facts
WHOLE_DUE = "menu_whole_due"  # the fact: only a full push makes both match, {since}
INTEGRATION_MADE = "integration_made"  # the fact: when the bridge last created an integration {at}


class Kinship(Enum):
    """How the current storefront relates to the one that accepted the records."""

    SAME = "same"
    RENEWED = "renewed"  # the same store with a new integration: it may have lost what it had
    OTHER = "other"  # another address or store: it never had any of it


@dataclass(frozen=True, slots=True)
class Storefront:
    """The identity of a storefront; `integration` is "" while it is unknown."""

    base_url: str
    store_id: str
    integration: str = ""


def kinship(known: Storefront | None, now: Storefront) -> Kinship:
    """Return how `now` relates to the stored storefront. Pure.

    A ledger without one, or without an integration, is assumed to mean the current one: earlier
    versions stored neither.
    """
    if known is None:
        return Kinship.SAME
    if (known.base_url, known.store_id) != (now.base_url, now.store_id):
        return Kinship.OTHER
    if known.integration and now.integration and known.integration != now.integration:
        return Kinship.RENEWED
    return Kinship.SAME


def current_storefront(connection: Connection, store: str, base_url: str) -> Storefront | None:
    """Return the storefront that the store is connected to now, or None.

    If the service has no integration ids, the time when this bridge created the integration is
    used.
    """
    store_id = get_fact(connection, store, "service_store_id", str)
    if store_id is None:
        return None
    integration = get_fact(connection, store, "integration", dict)
    identity = integration.get("integration_id") if integration else ""
    if integration and not identity:
        made = get_fact(connection, store, INTEGRATION_MADE, dict)
        identity = f"made at {made['at']}" if made else ""
    return Storefront(base_url.rstrip("/"), store_id, identity or "")


@dataclass(frozen=True, slots=True)
class Connected:
    """The storefront that the store is connected to, and its id there, or None.

    `known` is the storefront that the accepted menu belongs to. `whole_due`: only a full push makes
    ledger and storefront match. `open_pushes` are those with an unknown end, oldest first.
    """

    now: Storefront | None
    store_id: str | None
    known: Storefront | None = None
    whole_due: bool = False
    open_pushes: Sequence[Push] = ()


def connected(connection: Connection, store: str, base_url: str) -> Connected:
    """Return which storefront the store is connected to, and what is not settled of its menu."""
    now = current_storefront(connection, store, base_url)
    running = select(Push).filter_by(store=store, state="running").order_by(col(Push.id))
    return Connected(
        now,
        None if now is None else now.store_id,
        get_fact(connection, store, MENU, Storefront),
        get_fact(connection, store, WHOLE_DUE) is not None,
        all_rows(connection, running),
    )


def remember_storefront(
    connection: Connection, store: str, fact: str, now: Storefront, *, at: int
) -> None:
    """Record that the records belong to this storefront (`fact`: MENU or TABLES).

    A known integration is kept if the current one is unknown.
    """
    known = get_fact(connection, store, fact, Storefront)
    if known is not None and not now.integration and kinship(known, now) is Kinship.SAME:
        return
    if known != now:
        put_fact(connection, store, fact, now, at=at)


def start_over(connection: Connection, store: str, *, parts: bool, pending: int, at: int) -> None:
    """Delete everything about pushes to the previous storefront: holds, refusals, open pushes.

    `parts`: also delete categories, add-ons, groups and menus. A full push is due afterwards, and
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
    """Record that the next push must be a full one, and at least how many changes wait for it."""
    put_fact(connection, store, WHOLE_DUE, {"since": at}, at=at)
    if pending > (get_fact(connection, store, "menu_pending") or 0):
        put_fact(connection, store, "menu_pending", pending, at=at)


# -- the accepted floor plan, with the QR ordering address of each table


def get_tables(connection: Connection, store: str) -> tuple[AcceptedTable, ...]:
    """Return the accepted tables, by external id."""
    query = select(AcceptedTable).filter_by(store=store).order_by(col(AcceptedTable.external_id))
    return tuple(all_rows(connection, query))


def put_tables(connection: Connection, store: str, accepted: Sequence[AcceptedTable]) -> None:
    """Store exactly these tables as accepted."""
    connection.execute(delete(AcceptedTable).filter_by(store=store))
    if accepted:
        connection.execute(
            insert(AcceptedTable), [{**dict(each), "store": store} for each in accepted]
        )
