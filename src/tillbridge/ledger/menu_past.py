"""How items were before: what the storefront showed at a moment, for as long as history is kept.

A row is what the service had of an item until `until_ms`; an empty body says that it had none. What
it has now is in `menu_items`, so that an item that never changes costs nothing here.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import col

from tillbridge.ledger import menu_codec
from tillbridge.ledger.menu_codec import decode_accepted, portions
from tillbridge.ledger.models import MenuItem, MenuPrice, PastItem
from tillbridge.model.catalogue import Item

_GONE = ""


def remember_past(
    connection: Connection, store: str, now: Mapping[str, Item | None], *, at: int
) -> None:
    """Remember how these items are until now (`at`, ms); `now` is how they are from then on.

    Call it before they are changed. None: the service has removed it.
    """
    has_past = connection.execute(
        select(col(PastItem.store)).filter_by(store=store).limit(1)
    ).first()
    rows = []
    for portion in portions(list(now)):
        before = _accepted_now(connection, store, portion)
        for external_id, item in before.items():
            if item != now[external_id]:
                rows.append((external_id, menu_codec.item_text(item)))
        if has_past:
            back = [each for each in portion if each not in before and now[each] is not None]
            rows += [(each, _GONE) for each in _known(connection, store, back)]
    if rows:
        statement = insert(PastItem).on_conflict_do_nothing()
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
        found |= _accepted_now(connection, store, [each for each in there if each not in past])
    return found


def ids_ever(connection: Connection, store: str) -> list[str]:
    """Return the ids of all items that the storefront has or had, as long as history is kept."""
    query = (
        select(col(MenuItem.external_id))
        .filter_by(store=store)
        .union(select(col(PastItem.external_id)).filter_by(store=store))
    )
    return list(connection.execute(query).scalars())


def off_since(connection: Connection, store: str, external_ids: Collection[str]) -> dict[str, int]:
    """Return since when (ms) items have been as they are now, where that is known."""
    found: dict[str, int] = {}
    for portion in portions(external_ids):
        rows = connection.execute(
            select(col(PastItem.external_id), func.max(col(PastItem.until_ms)))
            .where(col(PastItem.store) == store)
            .where(col(PastItem.external_id).in_(portion))
            .group_by(col(PastItem.external_id))
        )
        found.update((row[0], row[1]) for row in rows)
    return found


def _past(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int
) -> dict[str, Item | None]:
    rows = connection.execute(
        select(col(PastItem.external_id), func.min(col(PastItem.until_ms)), col(PastItem.body))
        .where(col(PastItem.store) == store)
        .where(col(PastItem.external_id).in_(external_ids), col(PastItem.until_ms) > at_ms)
        .group_by(col(PastItem.external_id))
    )
    return {row.external_id: _item(row.body) for row in rows}


def _accepted_now(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, Item]:
    rows = connection.execute(
        select(
            col(MenuItem.external_id),
            col(MenuItem.body),
            col(MenuItem.fingerprint),
            col(MenuItem.pos_available),
        )
        .filter_by(store=store)
        .where(col(MenuItem.external_id).in_(external_ids))
    )
    return {
        row.external_id: decode_accepted(
            row.body, row.fingerprint, pos_available=row.pos_available
        ).item
        for row in rows
    }


def _known(connection: Connection, store: str, external_ids: Collection[str]) -> list[str]:
    rows = connection.execute(
        select(col(PastItem.external_id))
        .distinct()
        .filter_by(store=store)
        .where(col(PastItem.external_id).in_(external_ids))
    )
    return list(rows.scalars())


def _first_seen(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, int]:
    rows = connection.execute(
        select(col(MenuPrice.external_id), func.min(col(MenuPrice.from_ms)))
        .where(col(MenuPrice.store) == store)
        .where(col(MenuPrice.external_id).in_(external_ids))
        .group_by(col(MenuPrice.external_id))
    )
    return {row[0]: row[1] for row in rows}


def _item(body: str) -> Item | None:
    return menu_codec.item_of_text(body) if body else None


# -- prices: an order is compared with the prices of its time


_PORTION = 500


def remember_prices(
    connection: Connection, store: str, prices: Mapping[str, int], *, at: int
) -> None:
    """Remember prices (minor units, by external id of item, variant or add-on) from `at` (ms) on.

    A price that is as it was adds nothing.
    """
    rows = []
    ids = list(prices)
    for start in range(0, len(ids), _PORTION):
        portion = ids[start : start + _PORTION]
        latest = _latest(connection, store, portion)
        for external_id in portion:
            since, price = latest.get(external_id, (-1, None))
            if price != prices[external_id]:
                rows.append(
                    {
                        "store": store,
                        "external_id": external_id,
                        # A clock that was set back must not put the new price before the old one.
                        "from_ms": max(at, since + 1),
                        "price": prices[external_id],
                    }
                )
    if rows:
        connection.execute(insert(MenuPrice), rows)


def prices_around(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int, *, grace_ms: int
) -> dict[str, tuple[int, ...]]:
    """Return the prices in force within `grace_ms` around `at_ms`, that of `at_ms` first.

    Two clocks differ, and a push takes a moment: an order of that moment may have either price.
    Empty for an id the service never accepted. Before the first known price, that first one counts:
    the service had it before the bridge knew.
    """
    history: dict[str, list[tuple[int, int]]] = {external_id: [] for external_id in external_ids}
    ids = list(history)
    for start in range(0, len(ids), _PORTION):
        rows = connection.execute(
            select(col(MenuPrice.external_id), col(MenuPrice.from_ms), col(MenuPrice.price))
            .filter_by(store=store)
            .where(col(MenuPrice.external_id).in_(ids[start : start + _PORTION]))
            .order_by(col(MenuPrice.external_id), col(MenuPrice.from_ms))
        )
        for row in rows:
            history[row.external_id].append((row.from_ms, row.price))
    return {
        external_id: _in_force(changes, at_ms, grace_ms) for external_id, changes in history.items()
    }


def _in_force(changes: list[tuple[int, int]], at_ms: int, grace_ms: int) -> tuple[int, ...]:
    if not changes:
        return ()
    now = 0
    for index, (from_ms, _) in enumerate(changes):
        if from_ms <= at_ms:
            now = index
    found = [changes[now][1]]
    for index, (from_ms, price) in enumerate(changes):
        until = changes[index + 1][0] if index + 1 < len(changes) else None
        begun = from_ms <= at_ms + grace_ms
        over = until is not None and until < at_ms - grace_ms
        if begun and not over and price not in found:
            found.append(price)
    return tuple(found)


def _latest(
    connection: Connection, store: str, external_ids: list[str]
) -> dict[str, tuple[int, int]]:
    newest = (
        select(col(MenuPrice.external_id), func.max(col(MenuPrice.from_ms)).label("from_ms"))
        .where(col(MenuPrice.store) == store)
        .where(col(MenuPrice.external_id).in_(external_ids))
        .group_by(col(MenuPrice.external_id))
        .subquery()
    )
    rows = connection.execute(
        select(col(MenuPrice.external_id), col(MenuPrice.from_ms), col(MenuPrice.price))
        .join(
            newest,
            (col(MenuPrice.external_id) == newest.c.external_id)
            & (col(MenuPrice.from_ms) == newest.c.from_ms),
        )
        .where(col(MenuPrice.store) == store)
    )
    return {row.external_id: (row.from_ms, row.price) for row in rows}
