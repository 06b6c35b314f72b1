"""The menu as the service has accepted it: items and parts, now and in the past.

Written only after the service has accepted it (invariant 3). Instants are ms since the epoch, money
is minor units. Large acknowledgements are written in portions, so that a delivery never waits long
for its commit.

A row of `menu_past` is an item as the service had it until `until_ms`; an empty body means that the
service did not have it. Items that never change take no space there.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Connection, delete, func, literal_column, select, tuple_
from sqlalchemy.dialects.postgresql import insert  # SQLite has its ON CONFLICT, too
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.database import among, upsert
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_codec import (
    AcceptedItem,
    Parts,
    PushContent,
    decode_accepted,
    encode_accepted,
    item_from,
    item_text,
    part_from,
    part_text,
)
from tillbridge.ledger.models import MenuItem, MenuPart, MenuPrice, PastItem, RefusedItem
from tillbridge.ledger.pushes import ids_off, mark_sent, options_off
from tillbridge.model.catalogue import AddOnGroup, Item

# The values of the column `kind` for each kind of `PARTS`.
_KINDS = {
    "categories": "category",
    "add_ons": "add_on",
    "addon_groups": "addon_group",
    "menus": "menu",
}
_GONE = ""  # the body of an item that the service did not have


# -- what the service refused: a refused record is not sent again unchanged


# Only the first ones are listed by name: the service may refuse ten thousand.
_NAMES = "menu_refused_names"
_MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the service refused an item, and the record that was refused.

    `name` is what people call it; "" if unknown.
    """

    fingerprint: int
    reason: str
    name: str = ""


def refuse_items(
    connection: Connection, store: str, refused: Mapping[str, Refusal], *, at: int
) -> None:
    """Record that the service refused these records; they are not sent again unchanged."""
    if not refused:
        return
    connection.execute(
        upsert(RefusedItem, "fingerprint", "reason", "at"),
        [
            {"store": store, "external_id": key, "at": at}
            | {"fingerprint": each.fingerprint, "reason": each.reason}
            for key, each in refused.items()
        ],
    )
    known = refused_items(connection, store)
    named = {key: refused[key].name if key in refused else each.name for key, each in known.items()}
    put_fact(connection, store, _NAMES, dict(list(named.items())[:_MOST_NAMES]), at=at)


def clear_refusals(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Delete refusals: the item was accepted, was removed, or is to be tried again."""
    connection.execute(delete(RefusedItem).where(*_of(RefusedItem, store, external_ids)))


def refused_items(connection: Connection, store: str) -> dict[str, Refusal]:
    """Return the refusals by external id, oldest first."""
    key = col(RefusedItem.external_id)
    query = select(key, col(RefusedItem.fingerprint), col(RefusedItem.reason))
    rows = connection.execute(query.filter_by(store=store).order_by(col(RefusedItem.at), key))
    names = get_fact(connection, store, _NAMES) or {}
    return {key: Refusal(record, reason, names.get(key, "")) for key, record, reason in rows}


# -- what the service accepted


def acknowledge(connection: Connection, store: str, content: PushContent, *, at: int) -> None:
    """Record what the service accepted at `at`: items and parts, and their prices from then on.

    Clears refusals of these items; the items in `content.ids` are removed.
    """
    prices = {each.external_id: each.price for each in content.parts.add_ons.values()}
    for each in content.items:
        prices[each.item.external_id] = each.item.price
        prices.update((variant.external_id, variant.price) for variant in each.item.variants)
    change_items(connection, store, content.items, at=at)
    rows = [
        {"store": store, "kind": kind, "external_id": part.external_id, "body": part_text(part)}
        for name, kind in _KINDS.items()
        for part in getattr(content.parts, name).values()
    ]
    if rows:
        connection.execute(upsert(MenuPart, "body"), rows)
        mark_sent(connection, store, options_off(content.parts.addon_groups), at=at)
    if prices:
        _remember_prices(connection, store, prices, at=at)
    if content.ids:
        forget_items(connection, store, content.ids, at=at)
    if ids := [*(each.item.external_id for each in content.items), *content.ids]:
        clear_refusals(connection, store, ids)


def change_items(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Record the availability of items as accepted at `at`."""
    now = {each.item.external_id: each.item for each in accepted}
    _remember_past(connection, store, now, at=at)
    mark_sent(connection, store, ids_off(now.values()), at=at)
    refresh_items(connection, store, accepted)


def refresh_items(connection: Connection, store: str, accepted: Sequence[AcceptedItem]) -> None:
    """Record new export records for items whose content the service already has."""
    if accepted:
        connection.execute(
            upsert(MenuItem, "body", "fingerprint", "pos_available", "overlaid"),
            [{"store": store, **encode_accepted(each)} for each in accepted],
        )


def forget_items(
    connection: Connection, store: str, external_ids: Collection[str], *, at: int
) -> None:
    """Remove items at `at`: the service has removed them, or reports that it never had them."""
    _remember_past(connection, store, dict.fromkeys(external_ids), at=at)
    connection.execute(delete(MenuItem).where(*_of(MenuItem, store, external_ids)))


def forget_parts(connection: Connection, store: str, gone: Mapping[str, Collection[str]]) -> None:
    """Remove parts by kind (field names of `Parts`); the service has no call to remove them."""
    for name, external_ids in gone.items():
        chosen = delete(MenuPart).where(*_of(MenuPart, store, external_ids))
        connection.execute(chosen.filter_by(kind=_KINDS[name]))


def mark_unconfirmed(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Mark items whose state at the service is unknown: the next plan sends them again."""
    known = items_by_id(connection, store, external_ids).values()
    doubtful = [replace(each, doubtful=True) for each in known]
    refresh_items(connection, store, doubtful)


# -- reading


def known_fingerprints(connection: Connection, store: str) -> frozenset[int]:
    """Return the fingerprints of the accepted and the refused records."""
    fingerprint = cast("ColumnElement[int]", col(MenuItem.fingerprint))
    accepted = connection.scalars(
        select(fingerprint).filter_by(store=store).where(fingerprint.is_not(None))
    )
    refused = connection.scalars(select(col(RefusedItem.fingerprint)).filter_by(store=store))
    return frozenset([*accepted, *refused])


def item_count(connection: Connection, store: str, *where: ColumnElement[bool]) -> int:
    """Return how many items the service has accepted."""
    query = select(func.count()).select_from(MenuItem).where(col(MenuItem.store) == store, *where)
    return connection.scalar(query) or 0


def count_having(connection: Connection, store: str, name: str) -> int:
    """Return how many accepted items have this field: sizes, a tax, choices, ..."""
    value = func.json_extract(col(MenuItem.body), f"$.{name}")
    return item_count(connection, store, value.is_not(None))


def count_off_by_pos(connection: Connection, store: str) -> int:
    """Return how many accepted items are off sale in the export itself."""
    return item_count(connection, store, ~col(MenuItem.pos_available))


def count_parts(connection: Connection, store: str, name: str) -> int:
    """Return how many parts of a kind (a field name of `Parts`) the service has accepted."""
    query = select(func.count()).select_from(MenuPart).filter_by(store=store, kind=_KINDS[name])
    return connection.scalar(query) or 0


def item_names(connection: Connection, store: str) -> Iterator[tuple[str, str]]:
    """Yield the external id and name of every accepted item."""
    name = func.json_extract(col(MenuItem.body), "$.name")
    query = select(col(MenuItem.external_id), name).where(col(MenuItem.store) == store)
    for row in connection.execute(query):
        yield row[0], row[1]


def count_in_category(connection: Connection, store: str, category: str, *, at_most: int) -> int:
    """Return how many accepted items are in the category, counting up to `at_most`."""
    listed = func.json_each(col(MenuItem.body), "$.categories").table_valued("value")
    found = (
        select(col(MenuItem.external_id))
        .select_from(MenuItem)
        .join(listed, listed.c.value == category)
        .where(col(MenuItem.store) == store)
        .limit(at_most)
        .subquery()
    )
    return connection.scalar(select(func.count()).select_from(found)) or 0


def all_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return all accepted items by external id."""
    return _items(connection, col(MenuItem.store) == store)


def items_by_id(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, AcceptedItem]:
    """Return the accepted ones among these items, by external id."""
    return _items(connection, *_of(MenuItem, store, external_ids))


def items_of_records(
    connection: Connection, store: str, fingerprints: Collection[int]
) -> dict[str, AcceptedItem]:
    """Return the accepted items from these records, and those without a known record.

    The latter are compared at every reading.
    """
    own, fingerprint = col(MenuItem.store) == store, col(MenuItem.fingerprint)
    chosen = among(cast("ColumnElement[int]", fingerprint), fingerprints)
    return _items(connection, own, chosen) | _items(connection, own, fingerprint.is_(None))


def overlaid_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return items that have an overlay, whose snooze may end, or whose state is unknown."""
    # SQLite uses the partial index only for exactly this condition, and only if no other index
    # fits: the empty text keeps it from reading all items of the store.
    return _items(
        connection, literal_column("menu_items.store || ''") == store, literal_column("overlaid")
    )


def all_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the external ids of all accepted items."""
    return frozenset(connection.scalars(select(col(MenuItem.external_id)).filter_by(store=store)))


def accepted_ids(
    connection: Connection, store: str, external_ids: Collection[str]
) -> frozenset[str]:
    """Return which of the ids belong to accepted items."""
    query = select(col(MenuItem.external_id)).where(*_of(MenuItem, store, external_ids))
    return frozenset(connection.scalars(query))


def menu_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the ids of the accepted menus."""
    query = select(col(MenuPart.external_id)).filter_by(store=store, kind="menu")
    return frozenset(connection.scalars(query))


def items_off_by_pos(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items that are off sale in the export itself."""
    return _items(connection, col(MenuItem.store) == store, ~col(MenuItem.pos_available))


def variant_owners(
    connection: Connection, store: str, variant_ids: Collection[str]
) -> dict[str, str]:
    """Return, by variant id, the external id of the accepted item that has the variant."""
    listed = func.json_each(col(MenuItem.body), "$.variants").table_valued("value")
    variant_id = func.json_extract(listed.c.value, "$[0]")
    query = (
        select(variant_id.label("variant_id"), col(MenuItem.external_id))
        .select_from(MenuItem)
        .join(listed, among(variant_id, variant_ids))
        .where(col(MenuItem.store) == store)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def groups_of(
    connection: Connection, store: str, add_ons: Collection[str]
) -> dict[str, AddOnGroup]:
    """Return the accepted groups with one of these add-ons, or with anything sold out, by id."""
    body = col(MenuPart.body)
    listed = func.json_each(body, "$[5]").table_valued("value")
    of_store = select(col(MenuPart.external_id), body).filter_by(store=store, kind="addon_group")
    rows = [*connection.execute(of_store.where(func.json_extract(body, "$[6]").is_not(None)))]
    if add_ons:
        rows += connection.execute(of_store.join(listed, among(listed.c.value, add_ons)))
    return {key: part_from("addon_groups", text) for key, text in rows}


def items_with_groups(
    connection: Connection, store: str, groups: Collection[str]
) -> dict[str, AcceptedItem]:
    """Return the accepted items that offer one of these groups, by external id."""
    listed = func.json_each(col(MenuItem.body), "$.addon_groups").table_valued("value")
    query = select(col(MenuItem.external_id)).join(listed, among(listed.c.value, groups))
    ids = set(connection.scalars(query.where(col(MenuItem.store) == store)))
    return items_by_id(connection, store, ids)


def parts(connection: Connection, store: str, **ids: Collection[str]) -> Parts:
    """Return the accepted parts: all of them, or of the kinds named those with these `ids`."""
    found: dict[str, dict[str, Any]] = {}
    for name in [each for each in ids if ids[each]] if ids else _KINDS:
        query = select(col(MenuPart.external_id), col(MenuPart.body))
        query = query.filter_by(store=store, kind=_KINDS[name])
        if ids:
            query = query.where(among(col(MenuPart.external_id), ids[name]))
        rows = connection.execute(query)
        found[name] = {external_id: part_from(name, body) for external_id, body in rows}
    return Parts(**found)


def _items(connection: Connection, *where: ColumnElement[bool]) -> dict[str, AcceptedItem]:
    record = col(MenuItem.fingerprint), col(MenuItem.pos_available)
    query = select(col(MenuItem.external_id), col(MenuItem.body), *record).where(*where)
    return {
        key: decode_accepted(body, fingerprint, pos_available=pos_available)
        for key, body, fingerprint, pos_available in connection.execute(query)
    }


# -- the past: what the storefront showed at a moment, as far back as the history goes


def _remember_past(
    connection: Connection, store: str, now: Mapping[str, Item | None], *, at: int
) -> None:
    """Record how these items were until now (`at`, ms); `now` is how they are from then on.

    Call it before changing them. None: the service has removed the item.
    """
    before = items_by_id(connection, store, now)
    bodies = {key: item_text(old.item) for key, old in before.items() if old.item != now[key]}
    back = [key for key, item in now.items() if key not in before and item is not None]
    if back:
        known = select(col(PastItem.external_id)).distinct().where(*_of(PastItem, store, back))
        bodies |= dict.fromkeys(connection.scalars(known), _GONE)
    if bodies:
        connection.execute(
            insert(PastItem).on_conflict_do_nothing(),
            [
                {"store": store, "external_id": key, "until_ms": at, "body": body}
                for key, body in bodies.items()
            ],
        )


def items_then(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int
) -> dict[str, Item]:
    """Return the items that the storefront had at `at_ms`, as they were then."""
    first = func.min(col(MenuPrice.from_ms))
    since = _by_id(connection, MenuPrice, first, store, external_ids)
    there = [each for each in external_ids if since.get(each, 0) <= at_ms]
    key, until = col(PastItem.external_id), col(PastItem.until_ms)
    next_ = select(key, func.min(until)).where(*_of(PastItem, store, there), until > at_ms)
    query = select(key, col(PastItem.body)).where(
        col(PastItem.store) == store, tuple_(key, until).in_(next_.group_by(key))
    )
    past = {row[0]: row[1] for row in connection.execute(query)}
    then = {key: item_from(json.loads(body)) for key, body in past.items() if body != _GONE}
    now = items_by_id(connection, store, [each for each in there if each not in past])
    return then | {key: each.item for key, each in now.items()}


def ids_ever(connection: Connection, store: str) -> list[str]:
    """Return the ids of all items that the storefront has or ever had, as far as known."""
    query = select(col(MenuItem.external_id)).filter_by(store=store)
    past = select(col(PastItem.external_id)).filter_by(store=store)
    return list(connection.scalars(query.union(past)))


def off_since(connection: Connection, store: str, external_ids: Collection[str]) -> dict[str, int]:
    """Return since when (ms) items have been in their present state, if known."""
    return _by_id(connection, PastItem, func.max(col(PastItem.until_ms)), store, external_ids)


# -- prices: an order is compared with the prices at its time


def _remember_prices(
    connection: Connection, store: str, prices: Mapping[str, int], *, at: int
) -> None:
    """Record prices (minor units, by external id of item, variant or add-on) from `at` (ms) on.

    An unchanged price adds no row.
    """
    item, from_ms = col(MenuPrice.external_id), col(MenuPrice.from_ms)
    newest = select(item, func.max(from_ms)).where(*_of(MenuPrice, store, prices)).group_by(item)
    found = connection.execute(
        select(item, col(MenuPrice.price), from_ms).where(
            col(MenuPrice.store) == store, tuple_(item, from_ms).in_(newest)
        )
    )
    latest = {external_id: (price, since) for external_id, price, since in found}
    rows = []
    for key, price in prices.items():
        before, since = latest.get(key, (None, -1))
        if price != before:
            # If the clock was set back, the new price must still come after the old one.
            row = {"store": store, "external_id": key, "from_ms": max(at, since + 1)}
            rows.append({**row, "price": price})
    if rows:
        connection.execute(insert(MenuPrice), rows)


def prices_around(
    connection: Connection, store: str, external_ids: Collection[str], at_ms: int, *, grace_ms: int
) -> dict[str, tuple[int, ...]]:
    """Return the prices in effect within `grace_ms` around `at_ms`, the one at `at_ms` first.

    Clocks differ, and a push takes a moment: an order at that time may have either price. The
    latest one always counts, since no guest has seen a price of the future: this machine's clock
    was set, or is wrong (decision 236). Empty for an id that the service never accepted. Before the
    first known price, that price counts: the service had it before the bridge knew.
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
    found, last = [changes[now][1]], len(changes) - 1
    for index, (from_ms, price) in enumerate(changes):
        begun = from_ms <= at_ms + grace_ms
        over = index < last and changes[index + 1][0] < at_ms - grace_ms
        if (index == last or (begun and not over)) and price not in found:
            found.append(price)
    return tuple(found)


def _of(
    table: type[MenuItem | MenuPart | RefusedItem | MenuPrice | PastItem],
    store: str,
    external_ids: Collection[str],
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
