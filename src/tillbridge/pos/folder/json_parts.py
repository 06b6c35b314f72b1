"""The things of a JSON menu, each read from its object. Specification: Menu push body.

Nothing is guessed: a price of 4.5 or "450" is refused, since either may mean two things. What reads
a field takes the object and the field's name, and returns the value or raises `BadCell`.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
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
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell

_MAX_RATE_DIGITS = 20


def _text(thing: Mapping[str, Any], field: str) -> str:
    value = thing.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(field, value, "text")
    return value or ""


def text(thing: Mapping[str, Any], field: str) -> str:
    """Return text of one line, "" where the field is missing or null."""
    return cells.text(field, _text(thing, field))


def needed(thing: Mapping[str, Any], field: str) -> str:
    """Return text that is not empty."""
    return cells.needed(field, _text(thing, field))


def paragraph(thing: Mapping[str, Any], field: str) -> str:
    """Return text that may have several lines, "" where the field is missing or null."""
    return cells.paragraph(_text(thing, field))


def external_id(thing: Mapping[str, Any]) -> str:
    """Return the id; a whole number is taken as its digits."""
    value = thing.get("external_id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return needed(thing, "external_id")


def id_if_any(thing: Mapping[str, Any]) -> str:
    """Return the id as far as it can be read, "" where it cannot."""
    try:
        return external_id(thing)
    except BadCell:
        return ""


def price(thing: Mapping[str, Any], field: str = "price") -> int:
    """Return a price in minor units."""
    value = thing.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(
            field, value, "a whole number of minor units (450 for 4.50 EUR, 1500 for 1500 JPY)"
        )
    return cells.checked_price(field, value, shown=value)


def count(thing: Mapping[str, Any], field: str) -> int:
    """Return a whole number that is not negative, 0 where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise _wrong(field, value, "a whole number that is not negative")
    return value


def flag(thing: Mapping[str, Any], field: str, *, missing: bool) -> bool:
    """Return true or false; `missing` where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return missing
    if not isinstance(value, bool):
        raise _wrong(field, value, "true or false")
    return value


def ids(thing: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return a list of external ids, each once, empty where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(field, value, "a list of external ids")
    return tuple(dict.fromkeys(cells.needed(field, each) for each in value))


def things(thing: Mapping[str, Any], field: str) -> list[Any]:
    """Return a list, empty where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(field, value, "a list")
    return value


def as_object(field: str, value: object) -> Mapping[str, Any]:
    """Return `value`, which must be an object."""
    if not isinstance(value, dict):
        raise _wrong(field, value, "an object")
    return value


def percent(thing: Mapping[str, Any], field: str) -> str:
    """Return a rate as plain decimal text."""
    value = thing.get(field)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        rate = Decimal(value)
        digits = abs(rate.adjusted()) + len(rate.as_tuple().digits)
        if rate.is_finite() and rate >= 0 and digits < _MAX_RATE_DIGITS:
            return format(rate, "f")
    raise _wrong(field, value, "a rate in percent, such as 8.25")


def _wrong(field: str, value: object, wanted: str) -> BadCell:
    if value is None:
        return BadCell(field, "", f"{field} is missing.", f"It must be {wanted}.")
    return BadCell(field, value, f"{field} is {_shown(value)}.", f"It must be {wanted}.")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:80] if isinstance(value, str) else str(value)[:80]


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
        external_id=external_id(thing),
        name=needed(thing, "name"),
        price=price(thing),
        menus=(menu_id,),
        **{field: read(thing, field) for field, read in _MAY_LACK if field in thing},
    )


def category(thing: Mapping[str, Any]) -> Category:
    """Return the category. Raises BadCell."""
    return Category(external_id(thing), needed(thing, "name"))


def add_on(thing: Mapping[str, Any]) -> AddOn:
    """Return the add-on. Raises BadCell."""
    return AddOn(external_id(thing), needed(thing, "name"), price(thing))


def addon_group(thing: Mapping[str, Any]) -> AddOnGroup:
    """Return the group. Raises BadCell."""
    return AddOnGroup(
        external_id=external_id(thing),
        name=needed(thing, "name"),
        min_select=count(thing, "min_select"),
        max_select=count(thing, "max_select"),
        required=flag(thing, "required", missing=False),
        add_ons=ids(thing, "add_ons"),
    )


def _variants(thing: Mapping[str, Any], field: str) -> tuple[Variant, ...]:
    variants: dict[str, Variant] = {}
    for each in things(thing, field):
        named = as_object("variants", each)
        variant = Variant(
            external_id=external_id(named),
            variant_name=needed(named, "variant_name"),
            price=price(named),
            available=flag(named, "available", missing=True),
        )
        variants.setdefault(variant.external_id, variant)
    return tuple(variants.values())


def _tax(thing: Mapping[str, Any], field: str) -> ItemTax | None:
    if thing[field] is None:
        return None
    tax = as_object(field, thing[field])
    components = (as_object("components", each) for each in things(tax, "components"))
    return ItemTax(
        name=needed(tax, "name"),
        components=tuple(
            TaxComponent(needed(part, "agency"), percent(part, "rate")) for part in components
        ),
    )


def _available(thing: Mapping[str, Any], field: str) -> bool:
    return flag(thing, field, missing=True)


# In the order in which faults are reported; most items have few of them.
_MAY_LACK: tuple[tuple[str, Callable[[Mapping[str, Any], str], Any]], ...] = (
    ("description", paragraph),
    ("image_url", text),
    ("available", _available),
    ("categories", ids),
    ("addon_groups", ids),
    ("variants", _variants),
    ("variant_type", text),
    ("tax", _tax),
    ("product_type", text),
)
