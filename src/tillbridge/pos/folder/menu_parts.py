"""The things of a JSON menu, each read from its object. Specification: Menu push body."""

from collections.abc import Callable, Mapping
from typing import Any

from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    Category,
    Item,
    ItemTax,
    TaxComponent,
    Variant,
)
from tillbridge.pos.folder import json_values as values

FIELDS: Mapping[str, frozenset[str]] = {
    "item": frozenset(
        "external_id name description price image_url available categories addon_groups"
        " variant_type variants tax product_type".split()
    ),
    "variant": frozenset("external_id variant_name price available".split()),
    "category": frozenset("external_id name".split()),
    "add-on": frozenset("external_id name price".split()),
    "add-on group": frozenset("external_id name min_select max_select required add_ons".split()),
}
"""The fields each kind of thing has."""


def item(thing: Mapping[str, Any], menu_id: str) -> Item:
    """Return the item, on that menu. Raises BadCell."""
    return Item(
        external_id=values.external_id(thing),
        name=values.needed(thing, "name"),
        price=values.price(thing),
        menus=(menu_id,),
        **{field: read(thing, field) for field, read in _MAY_LACK if field in thing},
    )


def category(thing: Mapping[str, Any]) -> Category:
    """Return the category. Raises BadCell."""
    return Category(values.external_id(thing), values.needed(thing, "name"))


def add_on(thing: Mapping[str, Any]) -> AddOn:
    """Return the add-on. Raises BadCell."""
    return AddOn(values.external_id(thing), values.needed(thing, "name"), values.price(thing))


def addon_group(thing: Mapping[str, Any]) -> AddOnGroup:
    """Return the group. Raises BadCell."""
    return AddOnGroup(
        external_id=values.external_id(thing),
        name=values.needed(thing, "name"),
        min_select=values.count(thing, "min_select"),
        max_select=values.count(thing, "max_select"),
        required=values.flag(thing, "required", missing=False),
        add_ons=values.ids(thing, "add_ons"),
    )


def _variants(thing: Mapping[str, Any], field: str) -> tuple[Variant, ...]:
    variants: dict[str, Variant] = {}
    for each in values.things(thing, field):
        named = values.as_object("variants", each)
        variant = Variant(
            external_id=values.external_id(named),
            variant_name=values.needed(named, "variant_name"),
            price=values.price(named),
            available=values.flag(named, "available", missing=True),
        )
        variants.setdefault(variant.external_id, variant)
    return tuple(variants.values())


def _tax(thing: Mapping[str, Any], field: str) -> ItemTax | None:
    if thing[field] is None:
        return None
    tax = values.as_object(field, thing[field])
    components = (values.as_object("components", each) for each in values.things(tax, "components"))
    return ItemTax(
        name=values.needed(tax, "name"),
        components=tuple(
            TaxComponent(values.needed(part, "agency"), values.percent(part, "rate"))
            for part in components
        ),
    )


def _available(thing: Mapping[str, Any], field: str) -> bool:
    return values.flag(thing, field, missing=True)


# In the order in which people are told what is wrong; most items have few of them.
_MAY_LACK: tuple[tuple[str, Callable[[Mapping[str, Any], str], Any]], ...] = (
    ("description", values.paragraph),
    ("image_url", values.text),
    ("available", _available),
    ("categories", values.ids),
    ("addon_groups", values.ids),
    ("variants", _variants),
    ("variant_type", values.text),
    ("tax", _tax),
    ("product_type", values.text),
)
