"""Overrides in stores and communities: items off sale, whatever the POS or merchant says."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from sqlalchemy import Connection, delete, select, update
from sqlmodel import col

from tillbridge.ledger.database import all_rows, upsert
from tillbridge.ledger.models import CommunityOverride, StoreOverride
from tillbridge.model.catalogue import AddOnGroup, Item
from tillbridge.model.instant import end_or_never

T = TypeVar("T", StoreOverride, CommunityOverride)


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
