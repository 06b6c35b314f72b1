"""A menu in a few numbers, for a person who sees it for the first time. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tillbridge.model.catalogue import AddOn, AddOnGroup, Catalogue, Item
from tillbridge.model.export_facts import FileEncoding, LeftOut
from tillbridge.model.money import to_major


@dataclass(frozen=True, slots=True)
class Priced:
    """Something with a price: an item, or a size of it ("Latte (Large)"). Minor units."""

    name: str
    price: int


@dataclass(frozen=True, slots=True)
class MenuSummary:
    """What a menu comes to: counts, the free items, the cheapest and dearest price.

    `free` names what a guest would get for nothing: items and sizes at zero whose price is not in
    a choice that must be made either; `cheapest` and `dearest` look at prices above zero.
    `choices` counts the add-on groups that items offer, `options` what can be chosen in them.
    """

    items: int = 0
    sizes: int = 0
    categories: int = 0
    choices: int = 0
    options: int = 0
    sold_out: int = 0
    free: tuple[str, ...] = ()
    cheapest: Priced | None = None
    dearest: Priced | None = None
    encodings: Mapping[str, FileEncoding] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    not_offered: tuple[str, ...] = ()
    bad_rows: int = 0
    read_as: str = ""

    @classmethod
    def of(cls, catalogue: Catalogue) -> "MenuSummary":
        """Return the summary of a whole reading."""
        items = catalogue.items.values()
        offered = {name for item in items for name in item.addon_groups}
        groups = [each for key, each in catalogue.addon_groups.items() if key in offered]
        prices = sorted(
            (each for item in items for each in prices_of(item) if each.price > 0),
            key=lambda each: each.price,
        )
        return cls(
            items=len(items),
            sizes=sum(len(item.variants) for item in items),
            categories=len(catalogue.categories),
            choices=len(groups),
            options=len({add_on for group in groups for add_on in group.add_ons}),
            sold_out=sum(not item.available for item in items),
            free=tuple(
                each.name
                for item in items
                if not has_priced_choice(item, catalogue.addon_groups, catalogue.add_ons)
                for each in prices_of(item)
                if each.price == 0
            ),
            cheapest=prices[0] if prices else None,
            dearest=prices[-1] if prices else None,
            encodings=catalogue.facts.encodings,
            left_out=catalogue.facts.left_out,
            not_offered=catalogue.facts.not_offered,
            bad_rows=len(catalogue.bad_rows),
            read_as=catalogue.facts.read_as,
        )

    def to_json(self, currency: str) -> dict[str, Any]:
        """Return it for machines; prices are minor units, and decimal text beside them."""
        return {
            "items": self.items,
            "sizes": self.sizes,
            "categories": self.categories,
            "choices": self.choices,
            "options": self.options,
            "sold_out": self.sold_out,
            "free": list(self.free),
            "cheapest": _priced_json(self.cheapest, currency),
            "dearest": _priced_json(self.dearest, currency),
            "encodings": {name: how.encoding for name, how in self.encodings.items()},
            "left_out": [
                {"name": each.name, "reason": each.reason, "detail": each.detail}
                for each in self.left_out
            ],
            "not_offered": list(self.not_offered),
            "bad_rows": self.bad_rows,
            "read_as": self.read_as,
        }


def prices_of(item: Item) -> Iterator[Priced]:
    """Yield the prices a guest can pay: of each size, or of the item that has none."""
    for variant in item.variants:
        yield Priced(f"{item.name} ({variant.variant_name})", variant.price)
    if not item.variants:
        yield Priced(item.name, item.price)


def has_priced_choice(
    item: Item, groups: Mapping[str, AddOnGroup], add_ons: Mapping[str, AddOn]
) -> bool:
    """Return whether a guest must choose something that costs money, whatever is chosen."""
    return any(
        costs_something(groups[name], add_ons) for name in item.addon_groups if name in groups
    )


def costs_something(group: AddOnGroup, add_ons: Mapping[str, AddOn]) -> bool:
    """Return whether a choice must be made, and no choice is free."""
    return (
        (group.required or group.min_select > 0)
        and bool(group.add_ons)
        and all(name in add_ons and add_ons[name].price > 0 for name in group.add_ons)
    )


def _priced_json(priced: Priced | None, currency: str) -> dict[str, Any] | None:
    if priced is None:
        return None
    return {
        "name": priced.name,
        "price": priced.price,
        "amount": to_major(priced.price, currency),
    }
