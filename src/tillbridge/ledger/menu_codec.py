"""Items and parts of the menu, and the content of a push, as stored in the ledger."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
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

# -- text: equal values give equal text, since defaults are left out and keys have a fixed order

Part = Category | AddOn | AddOnGroup | Menu

PARTS: Mapping[str, type[Any]] = {
    "categories": Category,
    "add_ons": AddOn,
    "addon_groups": AddOnGroup,
    "menus": Menu,
}
"""The kinds of parts, as the fields of `Parts` are called."""

_ORDER = (
    "external_id name price description image_url variant_type product_type available snooze_until"
    " categories addon_groups menus variants tax"
).split()
_DEFAULTS = {each.name: each.default for each in fields(Item)}
_ITEM_FIELDS = [(name, _DEFAULTS[name]) for name in _ORDER]
_VALUES = {  # stored as a list
    kind: attrgetter(*(each.name for each in fields(kind)))
    for kind in (*PARTS.values(), Variant, ItemTax, TaxComponent)
}
_dumps = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=lambda value: _VALUES[type(value)](value)
).encode
_item_values = attrgetter(*_ORDER)


def item_from(stored: Mapping[str, Any]) -> Item:
    """Return the item from the parsed JSON of `item_text`; other keys are ignored."""
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, _default in _ITEM_FIELDS
        if (value := stored.get(name)) is not None
    }
    if "variants" in known:
        known["variants"] = tuple(Variant(*each) for each in known["variants"])
    if "tax" in known:
        name, components = known["tax"]
        known["tax"] = ItemTax(name, tuple(TaxComponent(*each) for each in components))
    return Item(**known)


def item_text(item: Item, beside: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return the item's canonical text, including `beside` as extra keys if not empty."""
    own = {
        name: value
        for (name, default), value in zip(_ITEM_FIELDS, _item_values(item), strict=True)
        if value != default
    }
    return _dumps(own | {name: value for name, value in beside.items() if value})


def part_text(part: Part) -> str:
    """Return a category, add-on, add-on group or menu as text."""
    values = _VALUES[type(part)](part)
    if isinstance(part, AddOnGroup) and not part.sold_out:
        values = values[:-1]  # as versions that did not know it wrote the group, and read it
    return _dumps(values)


def part_from(kind: str, text: str) -> Any:  # noqa: ANN401 -- a part of that kind
    """Return the part of `part_text`; `kind` is a key of `PARTS`."""
    values = [tuple(each) if isinstance(each, list) else each for each in json.loads(text)]
    return PARTS[kind](*values[: len(fields(PARTS[kind]))])


# -- rows: an item with the record it came from


@dataclass(frozen=True, slots=True)
class AcceptedItem:
    """An item as the service accepted it, and the export record it came from.

    `pos_available`, `pos_until` (ms) and `pos_variants` (only variants that differ, by id) are the
    export's values, under any overlay. `doubtful` marks an item whose state at the service is
    unknown: it is sent again.
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
        """The item as it was in the export."""
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


@dataclass(frozen=True, slots=True)
class Parts:
    """What a menu consists of besides its items, each kind by external id."""

    categories: Mapping[str, Category] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    addon_groups: Mapping[str, AddOnGroup] = field(default_factory=dict)
    menus: Mapping[str, Menu] = field(default_factory=dict)


def encode_accepted(accepted: AcceptedItem) -> dict[str, Any]:
    """Return the columns of an accepted item.

    `overlaid`: its availability has to be checked although the export is unchanged.
    """
    item, pos_available = accepted.item, accepted.pos_available
    beside = {
        "pos_until": accepted.pos_until,
        "pos_variants": accepted.pos_variants,
        "doubtful": accepted.doubtful,
    }
    return {
        "external_id": item.external_id,
        "body": item_text(item, beside),
        "fingerprint": accepted.fingerprint,
        "pos_available": pos_available,
        "overlaid": (
            accepted.doubtful
            or item.available != pos_available
            or item.snooze_until is not None
            or accepted.pos_until is not None
            or bool(accepted.pos_variants)
        ),
    }


def decode_accepted(body: str, fingerprint: int | None, *, pos_available: bool) -> AcceptedItem:
    """Return the accepted item from its columns."""
    stored = json.loads(body)
    return AcceptedItem(
        item_from(stored),
        fingerprint,
        pos_available,
        stored.get("pos_until"),
        stored.get("pos_variants", {}),
        stored.get("doubtful", False),
    )


# -- the content of a push


@dataclass(frozen=True, slots=True)
class PushContent:
    """The content of a push: only `ids` of items, or items and parts to be acknowledged.

    When content is acknowledged, the items in `ids` are removed and the others exist.
    """

    ids: tuple[str, ...] = ()
    items: tuple[AcceptedItem, ...] = ()
    parts: Parts = field(default_factory=Parts)

    def text(self) -> str:
        """Return it as stored in the ledger: one JSON array a line.

        This way a menu of 20,000 items is never encoded or decoded in one step, which would block
        the interpreter and the event loop.
        """
        lines = [json.dumps(["id", external_id]) for external_id in self.ids]
        for each in self.items:
            row = encode_accepted(each)
            lines.append(
                json.dumps(["item", row["body"], row["fingerprint"], row["pos_available"]])
            )
        for kind in PARTS:
            parts = getattr(self.parts, kind).values()
            lines += [json.dumps([kind, part_text(part)]) for part in parts]
        return "\n".join(lines)

    @classmethod
    def of_text(cls, text: str) -> "PushContent":
        """Return the content from its text."""
        ids: list[str] = []
        items: list[AcceptedItem] = []
        parts: dict[str, dict[str, Any]] = {kind: {} for kind in PARTS}
        for line in text.splitlines():
            kind, *values = json.loads(line)
            if kind == "id":
                ids.append(values[0])
            elif kind == "item":
                body, fingerprint, pos_available = values
                items.append(decode_accepted(body, fingerprint, pos_available=pos_available))
            else:
                part: Any = part_from(kind, values[0])
                parts[kind][part.external_id] = part
        return cls(tuple(ids), tuple(items), Parts(**parts))
