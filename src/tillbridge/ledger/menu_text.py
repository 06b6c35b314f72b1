"""Items and parts of the menu as the ledger's text: compact JSON, one spelling for one value.

Fields that are as by default are left out, and the keys stand in a fixed order, so equal values
give equal text. Money stays an integer and a tax rate stays decimal text.
"""

import json
from typing import Any

from tillbridge.model.catalogue import (
    AddOn,
    AddOnGroup,
    Category,
    Item,
    ItemTax,
    Menu,
    TaxComponent,
    Variant,
)

Part = Category | AddOn | AddOnGroup | Menu

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PLAIN_TEXTS = ("description", "image_url", "variant_type", "product_type")
_ID_LISTS = ("categories", "addon_groups", "menus")


def item_fields(item: Item) -> dict[str, Any]:
    """Return the item as JSON values, without what is as by default."""
    fields: dict[str, Any] = {
        "external_id": item.external_id,
        "name": item.name,
        "price": item.price,
    }
    for name in _PLAIN_TEXTS:
        if text := getattr(item, name):
            fields[name] = text
    if not item.available:
        fields["available"] = False
    if item.snooze_until is not None:
        fields["snooze_until"] = item.snooze_until
    for name in _ID_LISTS:
        if ids := getattr(item, name):
            fields[name] = list(ids)
    if item.variants:
        fields["variants"] = [
            [each.external_id, each.variant_name, each.price, each.available]
            for each in item.variants
        ]
    if item.tax is not None:
        fields["tax"] = [item.tax.name, [[each.agency, each.rate] for each in item.tax.components]]
    return fields


def item_from(fields: dict[str, Any]) -> Item:
    """Return the item of `item_fields`; other keys are passed over."""
    tax = fields.get("tax")
    return Item(
        external_id=fields["external_id"],
        name=fields["name"],
        price=fields["price"],
        description=fields.get("description", ""),
        image_url=fields.get("image_url", ""),
        available=fields.get("available", True),
        snooze_until=fields.get("snooze_until"),
        categories=tuple(fields.get("categories", ())),
        addon_groups=tuple(fields.get("addon_groups", ())),
        variants=tuple(Variant(*each) for each in fields.get("variants", ())),
        variant_type=fields.get("variant_type", ""),
        tax=None
        if tax is None
        else ItemTax(tax[0], tuple(TaxComponent(*component) for component in tax[1])),
        product_type=fields.get("product_type", ""),
        menus=tuple(fields.get("menus", ())),
    )


def text_of(fields: dict[str, Any]) -> str:
    """Return JSON fields as the ledger keeps them."""
    return _dumps(fields)


def item_text(item: Item) -> str:
    """Return the item's one spelling; equal items give equal text."""
    return _dumps(item_fields(item))


def item_of_text(text: str) -> Item:
    """Return the item of `item_text`."""
    return item_from(json.loads(text))


def part_text(part: Part) -> str:
    """Return a category, add-on, add-on group or menu as text."""
    return _dumps(_part_values(part))


def _part_values(part: Part) -> list[Any]:
    match part:
        case Category():
            return [part.external_id, part.name]
        case AddOn():
            return [part.external_id, part.name, part.price]
        case AddOnGroup():
            sizes = [part.min_select, part.max_select, part.required]
            return [part.external_id, part.name, *sizes, list(part.add_ons)]
        case Menu():
            return [part.external_id, part.name, part.description]


def category_from(text: str) -> Category:
    """Return the category of `part_text`."""
    return Category(*json.loads(text))


def add_on_from(text: str) -> AddOn:
    """Return the add-on of `part_text`."""
    return AddOn(*json.loads(text))


def addon_group_from(text: str) -> AddOnGroup:
    """Return the add-on group of `part_text`."""
    external_id, name, min_select, max_select, required, add_ons = json.loads(text)
    return AddOnGroup(external_id, name, min_select, max_select, required, tuple(add_ons))


def menu_from(text: str) -> Menu:
    """Return the menu of `part_text`."""
    return Menu(*json.loads(text))
