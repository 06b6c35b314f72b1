"""How items were before: what the storefront showed at a moment, for as long as history goes back.

A row is what the service had of an item until `until_ms`; an empty body says that it had none. What
it has now is in `menu_items`, so that an item that never changes costs nothing here.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.menu_codec import item_from, item_text
from tillbridge.ledger.models import MenuItem, MenuPrice, PastItem, among
from tillbridge.model.catalogue import Item

_GONE = ""


def remember_past(
    connection: Connection, store: str, now: Mapping[str, Item | None], *, at: int
) -> None:
    """Remember how these items are until now (`at`, ms); `now` is how they are from then on.

    Call it before they are changed. None: the service has removed it.
    """
    before = _accepted_now(connection, store, now)
    bodies = {key: item_text(item) for key, item in before.items() if item != now[key]}
    back = [key for key, item in now.items() if key not in before and item is not None]
    if back:
        known = select(col(PastItem.external_id)).distinct().where(*_of(PastItem, store, back))
        bodies |= dict.fromkeys(connection.scalars(known), _GONE)
    if bodies:
        connection.execute(
            insert(PastItem).on_conflict_do_nothing(),
            [
                {"store": store, "external_id": external_id, "until_ms": at, "body": body}
                for external_id, body in bodies.items()
            ],
        )


def items_then(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int
) -> dict[str, Item]:
    """Return those of the items that the storefront had at `at_ms`, as they were then."""
    first = func.min(col(MenuPrice.from_ms))
    since = _by_id(connection, MenuPrice, first, store, external_ids)
    there = [each for each in external_ids if since.get(each, 0) <= at_ms]
    query = select(
        col(PastItem.external_id), col(PastItem.body), func.min(col(PastItem.until_ms))
    ).where(*_of(PastItem, store, there), col(PastItem.until_ms) > at_ms)
    past = {row[0]: row[1] for row in connection.execute(query.group_by(col(PastItem.external_id)))}
    now = _accepted_now(connection, store, [each for each in there if each not in past])
    return {key: _item(body) for key, body in past.items() if body != _GONE} | now


def ids_ever(connection: Connection, store: str) -> list[str]:
    """Return the ids of all items that the storefront has or had, as far as history goes back."""
    query = select(col(MenuItem.external_id)).filter_by(store=store)
    past = select(col(PastItem.external_id)).filter_by(store=store)
    return list(connection.scalars(query.union(past)))


def off_since(connection: Connection, store: str, external_ids: Collection[str]) -> dict[str, int]:
    """Return since when (ms) items have been as they are now, where that is known."""
    return _by_id(connection, PastItem, func.max(col(PastItem.until_ms)), store, external_ids)


def _accepted_now(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, Item]:
    query = select(col(MenuItem.external_id), col(MenuItem.body))
    rows = connection.execute(query.where(*_of(MenuItem, store, external_ids)))
    return {external_id: _item(body) for external_id, body in rows}


def _item(body: str) -> Item:
    return item_from(json.loads(body))


# -- prices: an order is compared with the prices of its time


def remember_prices(
    connection: Connection, store: str, prices: Mapping[str, int], *, at: int
) -> None:
    """Remember prices (minor units, by external id of item, variant or add-on) from `at` (ms) on.

    A price that is as it was adds nothing.
    """
    query = select(
        col(MenuPrice.external_id), col(MenuPrice.price), func.max(col(MenuPrice.from_ms))
    ).where(*_of(MenuPrice, store, prices))
    found = connection.execute(query.group_by(col(MenuPrice.external_id)))
    latest = {external_id: (price, since) for external_id, price, since in found}
    rows = []
    for external_id, price in prices.items():
        before, since = latest.get(external_id, (None, -1))
        if price != before:
            # A clock that was set back must not put the new price before the old one.
            from_ms = max(at, since + 1)
            key = {"store": store, "external_id": external_id, "from_ms": from_ms}
            rows.append({**key, "price": price})
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
    query = select(col(MenuPrice.external_id), col(MenuPrice.from_ms), col(MenuPrice.price))
    rows = connection.execute(
        query.where(*_of(MenuPrice, store, history)).order_by(col(MenuPrice.from_ms))
    )
    for external_id, from_ms, price in rows:
        history[external_id].append((from_ms, price))
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


def _of(
    table: type[MenuItem | MenuPrice | PastItem], store: str, external_ids: Collection[str]
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return col(table.store) == store, among(col(table.external_id), external_ids)


def _by_id(
    connection: Connection,
    table: type[MenuPrice | PastItem],
    value: ColumnElement[Any],
    store: str,
    external_ids: Collection[str],
) -> dict[str, int]:
    """Return an aggregate of the table's rows by external id."""
    key = col(table.external_id)
    query = select(key, value).where(*_of(table, store, external_ids)).group_by(key)
    return {row[0]: row[1] for row in connection.execute(query)}
