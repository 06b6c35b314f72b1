"""The prices the storefront showed, over time: an order is compared with the prices of its time."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import menu_prices

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
        connection.execute(insert(menu_prices), rows)


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
            select(menu_prices.c.external_id, menu_prices.c.from_ms, menu_prices.c.price)
            .where(
                menu_prices.c.store == store,
                menu_prices.c.external_id.in_(ids[start : start + _PORTION]),
            )
            .order_by(menu_prices.c.external_id, menu_prices.c.from_ms)
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
        select(menu_prices.c.external_id, func.max(menu_prices.c.from_ms).label("from_ms"))
        .where(menu_prices.c.store == store, menu_prices.c.external_id.in_(external_ids))
        .group_by(menu_prices.c.external_id)
        .subquery()
    )
    rows = connection.execute(
        select(menu_prices.c.external_id, menu_prices.c.from_ms, menu_prices.c.price)
        .join(
            newest,
            (menu_prices.c.external_id == newest.c.external_id)
            & (menu_prices.c.from_ms == newest.c.from_ms),
        )
        .where(menu_prices.c.store == store)
    )
    return {row.external_id: (row.from_ms, row.price) for row in rows}
