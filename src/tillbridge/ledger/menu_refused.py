"""Items the service refused, by the record that was refused: not sent again as they are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_rows import portions
from tillbridge.ledger.schema import menu_refused

# The first of them by name, for people: the service may refuse ten thousand, and nobody reads that.
_NAMES = "menu_refused_names"
_MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the service refused an item, and the record that was refused.

    `name` is what people call it; "" where nobody remembers.
    """

    fingerprint: int
    reason: str
    name: str = ""


def refuse_items(
    connection: Connection, store: str, refused: Mapping[str, Refusal], *, at: int
) -> None:
    """Remember that the service refused these records; they are not sent again as they are."""
    if not refused:
        return
    statement = insert(menu_refused)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[menu_refused.c.store, menu_refused.c.external_id],
            set_={
                "fingerprint": statement.excluded.fingerprint,
                "reason": statement.excluded.reason,
                "at": statement.excluded.at,
            },
        ),
        [
            {
                "store": store,
                "external_id": external_id,
                "fingerprint": refusal.fingerprint,
                "reason": refusal.reason,
                "at": at,
            }
            for external_id, refusal in refused.items()
        ],
    )
    known = refused_items(connection, store)
    named = {key: refused[key].name if key in refused else each.name for key, each in known.items()}
    put_fact(connection, store, _NAMES, dict(list(named.items())[:_MOST_NAMES]), at=at)


def forgive_items(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Forget refusals: the item was accepted, is gone, or shall be tried again."""
    for portion in portions(external_ids):
        connection.execute(
            delete(menu_refused).where(
                menu_refused.c.store == store, menu_refused.c.external_id.in_(portion)
            )
        )


def refused_items(connection: Connection, store: str) -> dict[str, Refusal]:
    """Return the refusals by external id, oldest first."""
    rows = connection.execute(
        select(menu_refused.c.external_id, menu_refused.c.fingerprint, menu_refused.c.reason)
        .where(menu_refused.c.store == store)
        .order_by(menu_refused.c.at, menu_refused.c.external_id)
    )
    names = get_fact(connection, store, _NAMES) or {}
    return {
        row.external_id: Refusal(row.fingerprint, row.reason, names.get(row.external_id, ""))
        for row in rows
    }
