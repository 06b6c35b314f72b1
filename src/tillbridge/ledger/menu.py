"""The menu as the service has accepted it: items and parts.

Written only after the service accepted (invariant 3). Instants are ms since the epoch, money is
minor units. Large acknowledgements are handed over in portions, so that a delivery that has to be
committed never waits long behind them. Prices over time are in `menu_prices`, what the service
refused is in `menu_refused`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, func, literal_column, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger import menu_codec
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_codec import (
    AcceptedItem,
    Parts,
    decode_accepted,
    encode_accepted,
    portions,
)
from tillbridge.ledger.menu_past import keep_past, remember_prices
from tillbridge.ledger.overrides import mark_told
from tillbridge.ledger.schema import menu_items, menu_parts, menu_refused

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


_KINDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "category": ("categories", menu_codec.category_from),
    "add_on": ("add_ons", menu_codec.add_on_from),
    "addon_group": ("addon_groups", menu_codec.addon_group_from),
    "menu": ("menus", menu_codec.menu_from),
}


# -- what the service accepted


def acknowledge_items(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Remember items as accepted at `at`, their prices from then on; lifts their refusals."""
    if not accepted:
        return
    _keep_past(connection, store, accepted, at=at)
    _put_items(connection, store, accepted)
    prices: dict[str, int] = {}
    for each in accepted:
        prices[each.item.external_id] = each.item.price
        prices.update((variant.external_id, variant.price) for variant in each.item.variants)
    remember_prices(connection, store, prices, at=at)
    forgive_items(connection, store, [each.item.external_id for each in accepted])


def refresh_items(connection: Connection, store: str, accepted: Sequence[AcceptedItem]) -> None:
    """Remember other records for items whose content the service has already."""
    if accepted:
        _put_items(connection, store, accepted)


def change_items(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Remember the availability of items as accepted at `at`."""
    if accepted:
        _keep_past(connection, store, accepted, at=at)
        _put_items(connection, store, accepted)


def acknowledge_parts(connection: Connection, store: str, parts: Parts, *, at: int) -> None:
    """Remember categories, add-ons (with their prices), groups and menus as accepted."""
    rows = [
        {
            "store": store,
            "kind": kind,
            "external_id": part.external_id,
            "body": menu_codec.part_text(part),
        }
        for kind, (name, _) in _KINDS.items()
        for part in getattr(parts, name).values()
    ]
    if not rows:
        return
    statement = insert(menu_parts)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[menu_parts.c.store, menu_parts.c.kind, menu_parts.c.external_id],
            set_={"body": statement.excluded.body},
        ),
        rows,
    )
    remember_prices(
        connection, store, {each.external_id: each.price for each in parts.add_ons.values()}, at=at
    )


def forget_items(
    connection: Connection, store: str, external_ids: Collection[str], *, at: int
) -> None:
    """Forget items at `at`: the service has removed them, or says that it never had them."""
    if external_ids:
        keep_past(connection, store, dict.fromkeys(external_ids), at=at)
    for portion in portions(external_ids):
        connection.execute(
            delete(menu_items).where(
                menu_items.c.store == store, menu_items.c.external_id.in_(portion)
            )
        )


def forget_parts(connection: Connection, store: str, gone: Mapping[str, Collection[str]]) -> None:
    """Forget parts by kind (`Parts`' field names); the service has no call that removes them."""
    for kind, (name, _) in _KINDS.items():
        for portion in portions(gone.get(name, ())):
            connection.execute(
                delete(menu_parts).where(
                    menu_parts.c.store == store,
                    menu_parts.c.kind == kind,
                    menu_parts.c.external_id.in_(portion),
                )
            )


def doubt_items(connection: Connection, store: str, external_ids: Collection[str]) -> None:
    """Mark items whose state at the service is unknown: the next plan tells them again."""
    known = items_by_id(connection, store, external_ids)
    _put_items(
        connection,
        store,
        [replace(each, fingerprint=None, doubtful=True) for each in known.values()],
    )


# -- reading


def known_fingerprints(connection: Connection, store: str) -> "array[int]":
    """Return the fingerprints of the accepted and the refused records, sorted, each once."""
    accepted = connection.execute(
        select(menu_items.c.fingerprint)
        .distinct()
        .where(menu_items.c.store == store, menu_items.c.fingerprint.is_not(None))
        .order_by(menu_items.c.fingerprint)
    )
    known = array("q", accepted.scalars())
    for refusal in refused_items(connection, store).values():
        place = bisect_left(known, refusal.fingerprint)
        if known[place : place + 1] != array("q", [refusal.fingerprint]):
            known.insert(place, refusal.fingerprint)
    return known


def item_count(connection: Connection, store: str) -> int:
    """Return how many items the service has accepted."""
    return connection.execute(
        select(func.count()).select_from(menu_items).where(menu_items.c.store == store)
    ).scalar_one()


def count_having(connection: Connection, store: str, name: str) -> int:
    """Return how many accepted items have that field of their own: sizes, a tax, choices, ..."""
    value = func.json_extract(menu_items.c.body, f"$.{name}")
    return connection.execute(
        select(func.count())
        .select_from(menu_items)
        .where(menu_items.c.store == store, value.is_not(None))
    ).scalar_one()


def count_parts(connection: Connection, store: str, name: str) -> int:
    """Return how many parts of a kind (`Parts`' field names) the service has accepted."""
    kind = next(kind for kind, (each, _decode) in _KINDS.items() if each == name)
    return connection.execute(
        select(func.count())
        .select_from(menu_parts)
        .where(menu_parts.c.store == store, menu_parts.c.kind == kind)
    ).scalar_one()


def item_names(connection: Connection, store: str) -> Iterator[tuple[str, str]]:
    """Yield external id and name of every accepted item."""
    for row in connection.execute(
        select(
            menu_items.c.external_id, func.json_extract(menu_items.c.body, "$.name").label("name")
        ).where(menu_items.c.store == store)
    ):
        yield row.external_id, row.name


def count_off_by_pos(connection: Connection, store: str) -> int:
    """Return how many accepted items the export itself has off sale."""
    return connection.execute(
        select(func.count())
        .select_from(menu_items)
        .where(menu_items.c.store == store, ~menu_items.c.pos_available)
    ).scalar_one()


def count_in_category(connection: Connection, store: str, category: str, *, at_most: int) -> int:
    """Return how many accepted items are in the category, counting no further than `at_most`."""
    listed = func.json_each(menu_items.c.body, "$.categories").table_valued("value")
    found = (
        select(menu_items.c.external_id)
        .select_from(menu_items)
        .join(listed, listed.c.value == category)
        .where(menu_items.c.store == store)
        .limit(at_most)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(found)).scalar_one()


def all_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return everything accepted, by external id."""
    return _items(connection, menu_items.c.store == store)


def items_by_id(
    connection: Connection, store: str, external_ids: Collection[str]
) -> dict[str, AcceptedItem]:
    """Return those of the items that are accepted, by external id."""
    found: dict[str, AcceptedItem] = {}
    for portion in portions(external_ids):
        found |= _items(
            connection, menu_items.c.store == store, menu_items.c.external_id.in_(portion)
        )
    return found


def items_by_fingerprint(
    connection: Connection, store: str, fingerprints: Collection[int]
) -> dict[str, AcceptedItem]:
    """Return the accepted items that came from these records, by external id."""
    found: dict[str, AcceptedItem] = {}
    for portion in portions(fingerprints):
        found |= _items(
            connection, menu_items.c.store == store, menu_items.c.fingerprint.in_(portion)
        )
    return found


def overlaid_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items under an overlay, or whose snooze may end, or which are doubtful."""
    # SQLite takes the partial index only for its very words, and while no other index would do:
    # the plus keeps it from walking through all items of the store.
    return _items(
        connection, literal_column("+menu_items.store") == store, literal_column("overlaid")
    )


def unrecorded_items(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items of which no record of the export is known: each reading tells them anew."""
    return _items(connection, menu_items.c.store == store, menu_items.c.fingerprint.is_(None))


def all_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the external ids of all accepted items."""
    return frozenset(
        connection.execute(
            select(menu_items.c.external_id).where(menu_items.c.store == store)
        ).scalars()
    )


def accepted_ids(
    connection: Connection, store: str, external_ids: Collection[str]
) -> frozenset[str]:
    """Return which of the ids are those of accepted items."""
    found: set[str] = set()
    for portion in portions(external_ids):
        found.update(
            connection.execute(
                select(menu_items.c.external_id).where(
                    menu_items.c.store == store, menu_items.c.external_id.in_(portion)
                )
            ).scalars()
        )
    return frozenset(found)


def menu_ids(connection: Connection, store: str) -> frozenset[str]:
    """Return the ids of the accepted menus."""
    return frozenset(
        connection.execute(
            select(menu_parts.c.external_id).where(
                menu_parts.c.store == store, menu_parts.c.kind == "menu"
            )
        ).scalars()
    )


def items_off_by_pos(connection: Connection, store: str) -> dict[str, AcceptedItem]:
    """Return the items that the export itself has off sale."""
    return _items(connection, menu_items.c.store == store, ~menu_items.c.pos_available)


def variant_owners(
    connection: Connection, store: str, variant_ids: Collection[str]
) -> dict[str, str]:
    """Return, by variant id, the external id of the accepted item that has it."""
    listed = func.json_each(menu_items.c.body, "$.variants").table_valued("value")
    variant_id = func.json_extract(listed.c.value, "$[0]")
    found: dict[str, str] = {}
    for portion in portions(variant_ids):
        rows = connection.execute(
            select(variant_id.label("variant_id"), menu_items.c.external_id)
            .select_from(menu_items)
            .join(listed, variant_id.in_(portion))
            .where(menu_items.c.store == store)
        )
        found.update((row.variant_id, row.external_id) for row in rows)
    return found


def all_parts(connection: Connection, store: str) -> Parts:
    """Return all parts the service has accepted."""
    return _parts(connection, store)


def parts_like(connection: Connection, store: str, wanted: Parts) -> Parts:
    """Return those of the wanted parts (by kind and id) that the service has, as accepted."""
    found: dict[str, dict[str, Any]] = {name: {} for name, _ in _KINDS.values()}
    for kind, (name, decode) in _KINDS.items():
        for portion in portions(getattr(wanted, name)):
            rows = connection.execute(
                select(menu_parts.c.external_id, menu_parts.c.body).where(
                    menu_parts.c.store == store,
                    menu_parts.c.kind == kind,
                    menu_parts.c.external_id.in_(portion),
                )
            )
            found[name].update((row.external_id, decode(row.body)) for row in rows)
    return Parts(**found)


def _parts(connection: Connection, store: str) -> Parts:
    found: dict[str, dict[str, Any]] = {name: {} for name, _ in _KINDS.values()}
    rows = connection.execute(select(menu_parts).where(menu_parts.c.store == store))
    for row in rows:
        name, decode = _KINDS[row.kind]
        found[name][row.external_id] = decode(row.body)
    return Parts(**found)


def _keep_past(
    connection: Connection, store: str, accepted: Sequence[AcceptedItem], *, at: int
) -> None:
    """Keep how the items were, and note which overrides the storefront has from now on."""
    told = {each.item.external_id: each.item for each in accepted}
    keep_past(connection, store, told, at=at)
    mark_told(connection, store, told.values(), at=at)


def _put_items(connection: Connection, store: str, accepted: Sequence[AcceptedItem]) -> None:
    if not accepted:
        return
    statement = insert(menu_items)
    new = statement.excluded
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[menu_items.c.store, menu_items.c.external_id],
            set_={
                "body": new.body,
                "fingerprint": new.fingerprint,
                "pos_available": new.pos_available,
                "overlaid": new.overlaid,
            },
        ),
        [{"store": store, **encode_accepted(each)} for each in accepted],
    )


def _items(connection: Connection, *where: Any) -> dict[str, AcceptedItem]:  # noqa: ANN401 -- SQL expressions
    rows = connection.execute(
        select(
            menu_items.c.external_id,
            menu_items.c.body,
            menu_items.c.fingerprint,
            menu_items.c.pos_available,
        ).where(*where)
    )
    return {
        row.external_id: decode_accepted(row.body, row.fingerprint, pos_available=row.pos_available)
        for row in rows
    }
