"""Overrides: items taken off sale over what the POS says. Instants are ms since the epoch."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import overrides


@dataclass(frozen=True, slots=True)
class Override:
    """Off sale until `until` (None: until lifted); `by` is "staff" or "order"."""

    until: int | None
    by: str


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
            set_={"until": new.until, "by": new.by, "at": new.at},
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
    return {row.external_id: Override(row.until, row.by) for row in rows}
