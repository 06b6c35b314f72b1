"""Menus as the bodies of the service's calls. Specification: Menu push body; Batch bodies.

Only fields that the specification lists, optional ones only where they say something. A text or a
list that an item had and has no more is sent empty. Money stays an integer all the way; a tax rate,
decimal text inside, becomes a JSON number of the same digits (up to 15 of them).
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any

import xxhash

from tillbridge.ledger.menu_codec import Parts, item_text
from tillbridge.model.catalogue import Item, ItemTax, Menu
from tillbridge.model.instant import to_iso

Body = dict[str, Any]

STAND_ALONE = "stand_alone"
# What an item had and has no more is cleared with this. Of a tax and a product type no way to do so
# is shown: they are left out of a whole item object, which then stands for the item as it is.
_CLEARED: Mapping[str, Any] = {
    "description": "",
    "image_url": "",
    "categories": [],
    "addon_groups": [],
    "variants": [],
    "variant_type": STAND_ALONE,
}
CANNOT_BE_CLEARED = frozenset({"tax", "product_type"})

_SIGN = 1 << 63


def fingerprint(item: Item) -> int:
    """Return a stable signed 64-bit number of the item's content, as the export has it."""
    number = xxhash.xxh3_64_intdigest(item_text(item).encode("utf-8", "surrogatepass"))
    return number - (1 << 64) if number >= _SIGN else number


def item_body(item: Item, before: Item | None = None) -> Body:
    """Return the whole item; `before` is what the service has, so that what is gone is cleared."""
    body: Body = {"external_id": item.external_id, "name": item.name, "price": item.price}
    body["available"] = item.available
    optional: Body = {
        "description": item.description,
        "image_url": item.image_url,
        "categories": list(item.categories),
        "addon_groups": list(item.addon_groups),
        "variant_type": item.variant_type,
        "variants": [
            {
                "external_id": each.external_id,
                "variant_name": each.variant_name,
                "price": each.price,
                "available": each.available,
            }
            for each in item.variants
        ],
        "tax": item.tax and _tax(item.tax),
        "product_type": item.product_type,
    }
    for name, value in optional.items():
        if value:
            body[name] = value
        elif before is not None and getattr(before, name) and name in _CLEARED:
            body[name] = _CLEARED[name]
    return body


def patch_body(item: Item, before: Item, fields: AbstractSet[str]) -> Body:
    """Return the external id and these fields of the item."""
    whole = item_body(item, before)
    body: Body = {"external_id": item.external_id}
    body.update((name, value) for name, value in whole.items() if name in fields)
    return body


def can_be_patched(item: Item, before: Item, fields: AbstractSet[str]) -> bool:
    """Whether a PATCH can say these changes: the menus an item is on, and a lost tax, it cannot."""
    if "menus" in fields and item.menus != before.menus:
        return False
    return not any(getattr(before, name) and not getattr(item, name) for name in CANNOT_BE_CLEARED)


def availability_bodies(items: Iterable[Item]) -> list[Body]:
    """Return the items of a batch availability call (specification: Batch and availability)."""
    bodies: list[Body] = []
    for item in items:
        body: Body = {"external_id": item.external_id, "available": item.available}
        if not item.available and item.snooze_until is not None:
            body["snooze_until"] = to_iso(item.snooze_until)
        bodies.append(body)
    return bodies


def batch_body(
    items: Iterable[Item], before: Mapping[str, Item], delete: Iterable[str], parts: Parts
) -> Body:
    """Return the body of a batch; `before` is what the service has of the items that it knows."""
    body: Body = {"add": [], "update": [], "delete": list(delete)}
    for item in items:
        was = before.get(item.external_id)
        body["add" if was is None else "update"].append(item_body(item, was))
    return body | {name: encoded for name, encoded in _part_lists(parts).items() if encoded}


def menus_body(menus: Iterable[tuple[Menu, Iterable[Item], Parts]]) -> Body:
    """Return the body of a full push in the preferred shape: each menu with its items and parts."""
    listed = []
    for menu, items, parts in menus:
        body: Body = {"external_id": menu.external_id, "name": menu.name}
        if menu.description:
            body["description"] = menu.description
        lists = _part_lists(parts)
        body["categories"] = lists.pop("categories")
        body["items"] = [item_body(item) for item in items]
        listed.append(body | lists)
    return {"menus": listed}


def _tax(tax: ItemTax) -> Body:
    components = [
        {"agency": each.agency, "rate": json_number(each.rate)} for each in tax.components
    ]
    return {"name": tax.name, "components": components}


def json_number(text: str) -> int | float:
    """Return decimal text as a JSON number that is written with the same digits.

    A float of up to 15 significant digits is written back as those digits; tax rates have fewer.
    """
    value = Decimal(text)
    whole = value.to_integral_value()
    return int(whole) if value == whole else float(value)


def _part_lists(parts: Parts) -> dict[str, list[Body]]:
    return {
        "categories": [
            {"external_id": each.external_id, "name": each.name}
            for each in parts.categories.values()
        ],
        "add_ons": [
            {"external_id": each.external_id, "name": each.name, "price": each.price}
            for each in parts.add_ons.values()
        ],
        "addon_groups": [
            {
                "external_id": each.external_id,
                "name": each.name,
                "min_select": each.min_select,
                "max_select": each.max_select or max(len(each.add_ons), each.min_select),
                "required": each.required,
                "add_ons": list(each.add_ons),
            }
            for each in parts.addon_groups.values()
        ],
    }
