"""The menu as the service has accepted it: items and parts.

Written only after the service accepted (invariant 3). Instants are ms since the epoch, money is
minor units. Large acknowledgements are handed over in portions, so that a delivery that has to be
committed never waits long behind them. How items and prices were before is in `menu_past`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlalchemy import Connection, delete, func, literal_column, select, true
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_codec import (
    PARTS,
    AcceptedItem,
    Parts,
    decode_accepted,
    encode_accepted,
    part_from,
    part_text,
)
from tillbridge.ledger.menu_past import remember_past, remember_prices
from tillbridge.ledger.models import MenuItem, MenuPart, RefusedItem, Row, among, upsert
from tillbridge.ledger.overrides import mark_sent

# -- what the service refused, by the record: not sent again as it is


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
    connection.execute(
        upsert(RefusedItem, "fingerprint", "reason", "at"),
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


def clear_refusals(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Forget refusals: the item was accepted, is gone, or shall be tried again."""
    chosen = among(col(RefusedItem.external_id), external_ids)
    connection.execute(delete(RefusedItem).filter_by(store=store).where(chosen))


def refused_items(connection: Connection, store: str) -> dict[str, Refusal]:
    """Return the refusals by external id, oldest first."""
    rows = connection.execute(
        select(col(RefusedItem.external_id), col(RefusedItem.fingerprint), col(RefusedItem.reason))
        .filter_by(store=store)
        .order_by(col(RefusedItem.at), col(RefusedItem.external_id))
    )
    names = get_fact(connection, store, _NAMES) or {}
    return {
        row.external_id: Refusal(row.fingerprint, row.reason, names.get(row.external_id, ""))
        for row in rows
    }


# What the column `kind` holds of each kind of `PARTS`.
_KINDS = {
    "categories": "category",
    "add_ons": "add_on",
    "addon_groups": "addon_group",
    "menus": "menu",
}


# -- what the service accepted


def acknowledge_items(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Remember items as accepted at `at`, their prices from then on; lifts their refusals."""
    if not accepted:
        return
    _before_change(connection, store, accepted, at=at)
    _put_items(connection, store, accepted)
    prices: dict[str, int] = {}
    for each in accepted:
        prices[each.item.external_id] = each.item.price
        prices.update((variant.external_id, variant.price) for variant in each.item.variants)
    remember_prices(connection, store, prices, at=at)
    clear_refusals(connection, store, [each.item.external_id for each in accepted])


def refresh_items(connection: Connection, store: str, accepted: Sequence[AcceptedItem]) -> None:
    """Remember other records for items whose content the service has already."""
    if accepted:
        _put_items(connection, store, accepted)


def change_items(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Remember the availability of items as accepted at `at`."""
    if accepted:
        _before_change(connection, store, accepted, at=at)
        _put_items(connection, store, accepted)


def acknowledge_parts(connection: Connection, store: str, parts: Parts, *, at: int) -> None:
    """Remember categories, add-ons (with their prices), groups and menus as accepted."""
    rows = [
        {
            "store": store,
            "kind": kind,
            "external_id": part.external_id,
            "body": part_text(part),
        }
        for name, kind in _KINDS.items()
        for part in getattr(parts, name).values()
    ]
    if not rows:
        return
    connection.execute(upsert(MenuPart, "body"), rows)
    remember_prices(
        connection, store, {each.external_id: each.price for each in parts.add_ons.values()}, at=at
    )


def forget_items(
    connection: Connection, store: str, external_ids: Collection[str], *, at: int
) -> None:
    """Forget items at `at`: the service has removed them, or says that it never had them."""
    if external_ids:
        remember_past(connection, store, dict.fromkeys(external_ids), at=at)
        chosen = among(col(MenuItem.external_id), external_ids)
        connection.execute(delete(MenuItem).filter_by(store=store).where(chosen))


def forget_parts(connection: Connection, store: str, gone: Mapping[str, Collection[str]]) -> None:
    """Forget parts by kind (`Parts`' field names); the service has no call that removes them."""
    for name, external_ids in gone.items():
        chosen = among(col(MenuPart.external_id), external_ids)
        connection.execute(delete(MenuPart).filter_by(store=store, kind=_KINDS[name]).where(chosen))


def mark_unconfirmed(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Mark items whose state at the service is unknown: the next plan sends them again."""
    known = items_by_id(connection, store, external_ids)
    _put_items(
        connection,
        store,
        [replace(each, fingerprint=None, doubtful=True) for each in known.values()],
    )


# -- reading


def known_fingerprints(connection: Connection, store: str) -> "array[int]":
    """Return the fingerprints of the accepted and the refused records, sorted, each once."""
    fingerprint = cast("ColumnElement[int]", col(MenuItem.fingerprint))
    accepted = connection.scalars(
        select(fingerprint)
        .distinct()
        .filter_by(store=store)
        .where(fingerprint.is_not(None))
        .order_by(fingerprint)
    )
    known = array("q", accepted)
    for refusal in refused_items(connection, store).values():
        place = bisect_left(known, refusal.fingerprint)
        if known[place : place + 1] != array("q", [refusal.fingerprint]):
            known.insert(place, refusal.fingerprint)
    return known


def item_count(connection: Connection, store: str, *where: ColumnElement[bool]) -> int:
    """Return how many items the service has accepted."""
    return _count(connection, MenuItem, col(MenuItem.store) == store, *where)


def count_having(connection: Connection, store: str, name: str) -> int:
    """Return how many accepted items have that field of their own: sizes, a tax, choices, ..."""
    value = func.json_extract(col(MenuItem.body), f"$.{name}")
    return item_count(connection, store, value.is_not(None))


def count_off_by_pos(connection: Connection, store: str) -> int:
    """Return how many accepted items the export itself has off sale."""
    return item_count(connection, store, ~col(MenuItem.pos_available))


def count_parts(connection: Connection, store: str, name: str) -> int:
    """Return how many parts of a kind (`Parts`' field names) the service has accepted."""
    of_kind = col(MenuPart.kind) == _KINDS[name]
    return _count(connection, MenuPart, col(MenuPart.store) == store, of_kind)


def item_names(connection: Connection, store: str) -> Iterator[tuple[str, str]]:
    """Yield external id and name of every accepted item."""
    name = func.json_extract(col(MenuItem.body), "$.name")
    query = select(col(MenuItem.external_id), name).where(col(MenuItem.store) == store)
    for row in connection.execute(query):
        yield row[0], row[1]


def count_in_category(connection: Connection, store: str, category: str, *, at_most: int) -> int:
    """Return how many accepted items are in the category, counting no further than `at_most`."""
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
    """Return everything accepted, by external id."""
    return _items(connection, col(MenuItem.store) == store)


def items_by_id(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, AcceptedItem]:
    """Return those of the items that are accepted, by external id."""
    chosen = among(col(MenuItem.external_id), external_ids)
    return _items(connection, col(MenuItem.store) == store, chosen)


def items_by_fingerprint(
    connection: Connection, store: str, fingerprints: Collection[int]
) -> dict[str, AcceptedItem]:
    """Return the accepted items that came from these records, by external id."""
    chosen = among(cast("ColumnElement[int]", col(MenuItem.fingerprint)), fingerprints)
    return _items(connection, col(MenuItem.store) == store, chosen)


def overlaid_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items under an overlay, or whose snooze may end, or which are doubtful."""
    # SQLite takes the partial index only for its very words, and while no other index would do:
    # the plus keeps it from walking through all items of the store.
    return _items(
        connection, literal_column("+menu_items.store") == store, literal_column("overlaid")
    )


def unrecorded_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items of which no record of the export is known: readings compare them anew."""
    return _items(connection, col(MenuItem.store) == store, col(MenuItem.fingerprint).is_(None))


def all_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the external ids of all accepted items."""
    return frozenset(connection.scalars(select(col(MenuItem.external_id)).filter_by(store=store)))


def accepted_ids(
    connection: Connection, store: str, external_ids: Collection[str]
) -> frozenset[str]:
    """Return which of the ids are those of accepted items."""
    chosen = among(col(MenuItem.external_id), external_ids)
    query = select(col(MenuItem.external_id)).filter_by(store=store).where(chosen)
    return frozenset(connection.scalars(query))


def menu_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the ids of the accepted menus."""
    query = select(col(MenuPart.external_id)).filter_by(store=store, kind="menu")
    return frozenset(connection.scalars(query))


def items_off_by_pos(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items that the export itself has off sale."""
    return _items(connection, col(MenuItem.store) == store, ~col(MenuItem.pos_available))


def variant_owners(
    connection: Connection, store: str, variant_ids: Collection[str]
) -> dict[str, str]:
    """Return, by variant id, the external id of the accepted item that has it."""
    listed = func.json_each(col(MenuItem.body), "$.variants").table_valued("value")
    variant_id = func.json_extract(listed.c.value, "$[0]")
    query = (
        select(variant_id.label("variant_id"), col(MenuItem.external_id))
        .select_from(MenuItem)
        .join(listed, among(variant_id, variant_ids))
        .where(col(MenuItem.store) == store)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def all_parts(connection: Connection, store: str) -> Parts:
    """Return all parts the service has accepted."""
    return _parts(connection, store, dict.fromkeys(PARTS, true()))


def parts_like(connection: Connection, store: str, like: Parts) -> Parts:
    """Return those of these parts (by kind and id) that the service has, as accepted."""
    column = col(MenuPart.external_id)
    chosen = {name: among(column, ids) for name in PARTS if (ids := getattr(like, name))}
    return _parts(connection, store, chosen)


def _parts(connection: Connection, store: str, chosen: Mapping[str, ColumnElement[bool]]) -> Parts:
    query = select(col(MenuPart.external_id), col(MenuPart.body))
    return Parts(
        **{
            name: {
                external_id: part_from(name, body)
                for external_id, body in connection.execute(
                    query.filter_by(store=store, kind=_KINDS[name]).where(which)
                )
            }
            for name, which in chosen.items()
        }
    )


def _before_change(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Remember how the items were, and note which overrides the storefront has from now on."""
    now = {each.item.external_id: each.item for each in accepted}
    remember_past(connection, store, now, at=at)
    mark_sent(connection, store, now.values(), at=at)


def _put_items(connection: Connection, store: str, accepted: Sequence[AcceptedItem]) -> None:
    if not accepted:
        return
    connection.execute(
        upsert(MenuItem, "body", "fingerprint", "pos_available", "overlaid"),
        [{"store": store, **encode_accepted(each)} for each in accepted],
    )


def _count(connection: Connection, table: type[Row], *where: ColumnElement[bool]) -> int:
    return connection.scalar(select(func.count()).select_from(table).where(*where)) or 0


def _items(connection: Connection, *where: ColumnElement[bool]) -> dict[str, AcceptedItem]:
    rows = connection.execute(
        select(
            col(MenuItem.external_id),
            col(MenuItem.body),
            col(MenuItem.fingerprint),
            col(MenuItem.pos_available),
        ).where(*where)
    )
    return {
        row.external_id: decode_accepted(row.body, row.fingerprint, pos_available=row.pos_available)
        for row in rows
    }
