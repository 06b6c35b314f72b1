"""What is off sale in a store and by whom; items of its menu by a few letters, with their ids."""

from collections.abc import Mapping

from sqlalchemy import Connection

from tillbridge.core.actor import by_whom
from tillbridge.core.operation import Answer
from tillbridge.ledger.menu import (
    accepted_ids,
    items_by_id,
    items_off_by_pos,
    overlaid_items,
    variant_owners,
)
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.menu_past import off_since
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.overrides import get_overrides
from tillbridge.ledger.search import FoundItem, find_items
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major


def items_off_sale(connection: Connection, store: str, now: int) -> list[Answer]:
    """Return what is off sale, the latest first."""
    overrides = {
        key: each
        for key, each in get_overrides(connection, store).items()
        if each.until is None or each.until > now
    }
    owners = variant_owners(connection, store, overrides)
    named = items_by_id(connection, store, {*overrides, *owners.values()})
    by_people = [
        _stopped(key, each, named.get(owners.get(key, key))) for key, each in overrides.items()
    ]
    by_pos = [
        each
        for key, each in {
            **items_off_by_pos(connection, store),
            **overlaid_items(connection, store),
        }.items()
        if key not in overrides and not each.item.available
    ]
    since = off_since(connection, store, [each.item.external_id for each in by_pos])
    told = [*by_people, *(_off_by_pos(each, since) for each in by_pos)]
    return sorted(told, key=lambda each: (each["since"] or "", each["name"]), reverse=True)


def items_found(
    connection: Connection, store: str, text: str, currency: str, *, limit: int
) -> Answer:
    """Return items and variants that fit the letters, best first."""
    found = find_items(connection, store, text, limit=limit, offset=0)
    stopped = get_overrides(connection, store)
    return {
        "items": [_found(each, currency, stopped) for each in found.items],
        "count": found.count,
    }


def name_of_item(connection: Connection, store: str, external_id: str) -> str:
    """Return what people call an item or a variant; its id where the menu has none."""
    owner = variant_owners(connection, store, [external_id]).get(external_id, external_id)
    found = items_by_id(connection, store, {owner}).get(owner)
    if found is None:
        return external_id
    return f"{found.item.name} {_variant_of(found, external_id)}".rstrip()


def is_item(connection: Connection, store: str, external_id: str) -> bool:
    """Return whether the menu has an item or a variant of this id."""
    return bool(
        accepted_ids(connection, store, [external_id])
        or variant_owners(connection, store, [external_id])
    )


def _found(item: FoundItem, currency: str, stopped: Mapping[str, StoreOverride]) -> Answer:
    return {
        "external_id": item.external_id,
        "item_id": item.item_id,
        "name": item.name,
        "variant": item.variant,
        "price": to_major(item.price, currency),
        "currency": currency,
        "on_sale": item.on_sale,
        "pos_on_sale": item.pos_on_sale,
        "stopped": item.external_id in stopped,
    }


def _stopped(external_id: str, override: StoreOverride, owner: AcceptedItem | None) -> Answer:
    item = None if owner is None else owner.item
    variant = "" if owner is None else _variant_of(owner, external_id)
    took = None if override.sent_at is None else max(0, override.sent_at - override.at)
    by_till = override.by == "order"
    return {
        "external_id": external_id,
        "name": external_id if item is None else item.name,
        "variant": variant,
        "how": "order" if by_till else "staff",
        "by": "" if by_till else by_whom(override.by),
        "since": to_iso(override.at),
        "until": None if override.until is None else to_iso(override.until),
        "reached_at": None if override.sent_at is None else to_iso(override.sent_at),
        "reached_ms": took,
    }


def _variant_of(owner: AcceptedItem, external_id: str) -> str:
    """Return the name of an item's variant; "" for the item itself."""
    variants = owner.item.variants
    return next((each.variant_name for each in variants if each.external_id == external_id), "")


def _off_by_pos(accepted: AcceptedItem, since: Mapping[str, int]) -> Answer:
    item = accepted.item
    at, until = since.get(item.external_id), item.snooze_until
    return {
        "external_id": item.external_id,
        "name": item.name,
        "variant": "",
        "how": "till",
        "by": "",
        "since": None if at is None else to_iso(at),
        "until": None if until is None else to_iso(until),
        "reached_at": None if at is None else to_iso(at),
        "reached_ms": None,
    }
