"""How items were before: what the storefront showed at a moment, for as long as history is kept.

A row is what the service had of an item until `until_ms`; an empty body says that it had none. What
it has now is in `menu_items`, so that an item that never changes costs nothing here.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger import menu_text
from tillbridge.ledger.menu_rows import decode_accepted, portions
from tillbridge.ledger.schema import menu_items, menu_past, menu_prices
from tillbridge.model.catalogue import Item

_GONE = ""


def keep_past(
    connection: Connection, store: str, now: Mapping[str, Item | None], *, at: int
) -> None:
    """Keep how these items are until now (`at`, ms); `now` is how they are from then on.

    Call it before they are changed. None: the service has removed it.
    """
    has_past = connection.execute(
        select(menu_past.c.store).where(menu_past.c.store == store).limit(1)
    ).first()
    rows = []
    for portion in portions(list(now)):
        before = _told(connection, store, portion)
        for external_id, item in before.items():
            if item != now[external_id]:
                rows.append((external_id, menu_text.item_text(item)))
        if has_past:
            back = [each for each in portion if each not in before and now[each] is not None]
            rows += [(each, _GONE) for each in _known(connection, store, back)]
    if rows:
        statement = insert(menu_past).on_conflict_do_nothing()
        connection.execute(
            statement,
            [
                {"store": store, "external_id": external_id, "until_ms": at, "body": body}
                for external_id, body in rows
            ],
        )


def items_then(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int
) -> dict[str, Item]:
    """Return those of the items that the storefront had at `at_ms`, as they were then."""
    found: dict[str, Item] = {}
    for portion in portions(external_ids):
        since = _first_seen(connection, store, portion)
        there = [each for each in portion if since.get(each, 0) <= at_ms]
        past = _past(connection, store, there, at_ms)
        found |= {key: item for key, item in past.items() if item is not None}
        found |= _told(connection, store, [each for each in there if each not in past])
    return found


def ids_ever(connection: Connection, store: str) -> list[str]:
    """Return the ids of all items that the storefront has or had, as long as history is kept."""
    query = (
        select(menu_items.c.external_id)
        .where(menu_items.c.store == store)
        .union(select(menu_past.c.external_id).where(menu_past.c.store == store))
    )
    return list(connection.execute(query).scalars())


def off_since(connection: Connection, store: str, external_ids: Collection[str]) -> dict[str, int]:
    """Return since when (ms) items have been as they are now, where that is known."""
    found: dict[str, int] = {}
    for portion in portions(external_ids):
        rows = connection.execute(
            select(menu_past.c.external_id, func.max(menu_past.c.until_ms))
            .where(menu_past.c.store == store, menu_past.c.external_id.in_(portion))
            .group_by(menu_past.c.external_id)
        )
        found.update((row[0], row[1]) for row in rows)
    return found


def _past(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int
) -> dict[str, Item | None]:
    rows = connection.execute(
        select(menu_past.c.external_id, func.min(menu_past.c.until_ms), menu_past.c.body)
        .where(
            menu_past.c.store == store,
            menu_past.c.external_id.in_(external_ids),
            menu_past.c.until_ms > at_ms,
        )
        .group_by(menu_past.c.external_id)
    )
    return {row.external_id: _item(row.body) for row in rows}


def _told(connection: Connection, store: str, external_ids: Collection[str]) -> dict[str, Item]:
    rows = connection.execute(
        select(
            menu_items.c.external_id,
            menu_items.c.body,
            menu_items.c.fingerprint,
            menu_items.c.pos_available,
        ).where(menu_items.c.store == store, menu_items.c.external_id.in_(external_ids))
    )
    return {
        row.external_id: decode_accepted(
            row.body, row.fingerprint, pos_available=row.pos_available
        ).item
        for row in rows
    }


def _known(connection: Connection, store: str, external_ids: Collection[str]) -> list[str]:
    rows = connection.execute(
        select(menu_past.c.external_id)
        .distinct()
        .where(menu_past.c.store == store, menu_past.c.external_id.in_(external_ids))
    )
    return list(rows.scalars())


def _first_seen(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, int]:
    rows = connection.execute(
        select(menu_prices.c.external_id, func.min(menu_prices.c.from_ms))
        .where(menu_prices.c.store == store, menu_prices.c.external_id.in_(external_ids))
        .group_by(menu_prices.c.external_id)
    )
    return {row[0]: row[1] for row in rows}


def _item(body: str) -> Item | None:
    return menu_text.item_of_text(body) if body else None
