"""The things of a JSON menu, each read from its object. Specification: Menu push body."""

from collections.abc import Mapping
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
from tillbridge.adapters.folder import json_values as values

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


def item(thing: Mapping[str, Any]) -> Item:
    """Return the item, on no menu yet. Raises BadCell."""
    return Item(
        external_id=values.external_id(thing),
        name=values.needed(thing, "name"),
        price=values.price(thing),
        description=values.paragraph(thing, "description"),
        image_url=values.text(thing, "image_url"),
        available=values.flag(thing, "available", missing=True),
        categories=values.ids(thing, "categories"),
        addon_groups=values.ids(thing, "addon_groups"),
        variants=_variants(thing),
        variant_type=values.text(thing, "variant_type"),
        tax=_tax(thing.get("tax")),
        product_type=values.text(thing, "product_type"),
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


def _variants(thing: Mapping[str, Any]) -> tuple[Variant, ...]:
    variants: dict[str, Variant] = {}
    for each in values.things(thing, "variants"):
        named = values.as_object("variants", each)
        variant = Variant(
            external_id=values.external_id(named),
            variant_name=values.needed(named, "variant_name"),
            price=values.price(named),
            available=values.flag(named, "available", missing=True),
        )
        variants.setdefault(variant.external_id, variant)
    return tuple(variants.values())


def _tax(value: object) -> ItemTax | None:
    if value is None:
        return None
    tax = values.as_object("tax", value)
    components = (values.as_object("components", each) for each in values.things(tax, "components"))
    return ItemTax(
        name=values.needed(tax, "name"),
        components=tuple(
            TaxComponent(values.needed(part, "agency"), values.percent(part, "rate"))
            for part in components
        ),
    )
