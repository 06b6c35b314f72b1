"""Items and parts of the menu as the ledger stores them: text, and rows with what the POS says."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

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

# -- text: equal values give equal text, since defaults are left out and keys have a fixed order


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


# -- rows: an item with the record it came from


T = TypeVar("T")

PORTION = 500  # ids in one statement


@dataclass(frozen=True, slots=True)
class AcceptedItem:
    """An item as the service accepted it, and the record of the export it came from.

    `pos_available`, `pos_until` (ms) and `pos_variants` (of the variants that differ, by id) are
    what the export has, under any overlay. `doubtful` marks an item of which it is not known what
    the service has: it is sent again.
    """

    item: Item
    fingerprint: int | None
    pos_available: bool
    pos_until: int | None = None
    pos_variants: Mapping[str, bool] = field(default_factory=dict)
    doubtful: bool = False

    @classmethod
    def of(cls, item: Item, from_export: Item, fingerprint: int | None) -> "AcceptedItem":
        """Return `item` as accepted, with the availability that the export has."""
        exported = {each.external_id: each.available for each in from_export.variants}
        return cls(
            item,
            fingerprint,
            from_export.available,
            from_export.snooze_until,
            {
                each.external_id: exported[each.external_id]
                for each in item.variants
                if exported.get(each.external_id, each.available) != each.available
            },
        )

    @property
    def pos_item(self) -> Item:
        """The item as the export had it."""
        variants = self.item.variants
        if self.pos_variants:
            variants = tuple(
                replace(each, available=self.pos_variants.get(each.external_id, each.available))
                for each in variants
            )
        return replace(
            self.item,
            available=self.pos_available,
            snooze_until=self.pos_until,
            variants=variants,
        )

    @property
    def overlaid(self) -> bool:
        """Whether its availability has to be looked at although the export is unchanged."""
        return (
            self.doubtful
            or self.item.available != self.pos_available
            or self.item.snooze_until is not None
            or self.pos_until is not None
            or bool(self.pos_variants)
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """What a menu is made of beside its items, each kind by external id."""

    categories: Mapping[str, Category] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    addon_groups: Mapping[str, AddOnGroup] = field(default_factory=dict)
    menus: Mapping[str, Menu] = field(default_factory=dict)


def encode_accepted(accepted: AcceptedItem) -> dict[str, Any]:
    """Return the columns of an accepted item."""
    fields = item_fields(accepted.item)
    if accepted.pos_until is not None:
        fields["pos_until"] = accepted.pos_until
    if accepted.pos_variants:
        fields["pos_variants"] = dict(accepted.pos_variants)
    if accepted.doubtful:
        fields["doubtful"] = True
    return {
        "external_id": accepted.item.external_id,
        "body": text_of(fields),
        "fingerprint": accepted.fingerprint,
        "pos_available": accepted.pos_available,
        "overlaid": accepted.overlaid,
    }


def decode_accepted(body: str, fingerprint: int | None, *, pos_available: bool) -> AcceptedItem:
    """Return the accepted item of its columns."""
    fields = json.loads(body)
    return AcceptedItem(
        item_from(fields),
        fingerprint,
        pos_available,
        fields.get("pos_until"),
        fields.get("pos_variants", {}),
        fields.get("doubtful", False),
    )


def portions(values: Collection[T]) -> Iterator[list[T]]:
    """Yield the values in lists that fit into one statement."""
    listed = list(values)
    for start in range(0, len(listed), PORTION):
        yield listed[start : start + PORTION]
