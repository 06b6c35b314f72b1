"""Overrides: items taken off sale over what the POS says. Instants are ms since the epoch."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import overrides
from tillbridge.model.catalogue import Item
from tillbridge.model.instant import end_or_never


@dataclass(frozen=True, slots=True)
class Override:
    """Off sale until `until` (None: until lifted), set at `at` by `by` ("order": the till itself).

    `told_at` is when the storefront had it, None while it does not; no later than `at` where the
    item was off sale already.
    """

    until: int | None
    by: str
    at: int = 0
    told_at: int | None = None


def put_override(
    connection: Connection,
    store: str,
    external_id: str,
    *,
    until: int | None,
    by: str,
    at: int,
) -> None:
    """Take the item off sale, in place of an older override of it."""
    statement = insert(overrides).values(
        store=store, external_id=external_id, until=until, by=by, at=at
    )
    new = statement.excluded
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[overrides.c.store, overrides.c.external_id],
            set_={"until": new.until, "by": new.by, "at": new.at, "told_at": None},
        )
    )


def drop_overrides(connection: Connection, store: str, external_ids: Collection[str]) -> int:
    """Lift overrides; return how many there were."""
    return connection.execute(
        delete(overrides).where(
            overrides.c.store == store, overrides.c.external_id.in_(list(external_ids))
        )
    ).rowcount


def get_overrides(connection: Connection, store: str) -> dict[str, Override]:
    """Return the overrides by external id; those whose time is over are among them."""
    rows = connection.execute(select(overrides).where(overrides.c.store == store))
    return {
        row.external_id: Override(end_or_never(row.until), row.by, row.at, row.told_at)
        for row in rows
    }


def mark_told(connection: Connection, store: str, items: Collection[Item], *, at: int) -> None:
    """Note that the storefront has these items as they are now: which overrides it has from `at`.

    An override may name an item or a variant.
    """
    open_ = set(
        connection.execute(
            select(overrides.c.external_id).where(
                overrides.c.store == store, overrides.c.told_at.is_(None)
            )
        ).scalars()
    )
    if not open_:
        return
    off = {each.external_id for each in items if not each.available}
    off |= {
        variant.external_id
        for each in items
        for variant in each.variants
        if not (each.available and variant.available)
    }
    if told := open_ & off:
        connection.execute(
            update(overrides)
            .where(overrides.c.store == store, overrides.c.external_id.in_(told))
            .values(told_at=at)
        )
