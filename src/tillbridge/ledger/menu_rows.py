"""What the rows of the accepted menu mean: items with their record, and parts."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tillbridge.ledger import menu_text
from tillbridge.model.catalogue import AddOn, AddOnGroup, Category, Item, Menu

T = TypeVar("T")

PORTION = 500  # ids in one statement


@dataclass(frozen=True, slots=True)
class AcceptedItem:
    """An item as told to the service, and the record of the export it came from.

    `pos_available`, `pos_until` (ms) and `pos_variants` (of the variants told otherwise, by id) are
    what the export said, under any overlay. `doubtful` marks an item of which it is not known what
    the service has: it is told again.
    """

    item: Item
    fingerprint: int | None
    pos_available: bool
    pos_until: int | None = None
    pos_variants: Mapping[str, bool] = field(default_factory=dict)
    doubtful: bool = False

    @classmethod
    def of(cls, told: Item, from_export: Item, fingerprint: int | None) -> "AcceptedItem":
        """Return `told` as accepted, with what the export said of its availability."""
        said = {each.external_id: each.available for each in from_export.variants}
        return cls(
            told,
            fingerprint,
            from_export.available,
            from_export.snooze_until,
            {
                each.external_id: said[each.external_id]
                for each in told.variants
                if said.get(each.external_id, each.available) != each.available
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
    fields = menu_text.item_fields(accepted.item)
    if accepted.pos_until is not None:
        fields["pos_until"] = accepted.pos_until
    if accepted.pos_variants:
        fields["pos_variants"] = dict(accepted.pos_variants)
    if accepted.doubtful:
        fields["doubtful"] = True
    return {
        "external_id": accepted.item.external_id,
        "body": menu_text.text_of(fields),
        "fingerprint": accepted.fingerprint,
        "pos_available": accepted.pos_available,
        "overlaid": accepted.overlaid,
    }


def decode_accepted(body: str, fingerprint: int | None, *, pos_available: bool) -> AcceptedItem:
    """Return the accepted item of its columns."""
    fields = json.loads(body)
    return AcceptedItem(
        menu_text.item_from(fields),
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
