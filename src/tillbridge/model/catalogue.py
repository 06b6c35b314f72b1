"""The catalogue: what a POS export says, normalised. Specification: Resources, Menu push body.

All prices are integer minor units; every `external_id` is the POS's own stable id. `MenuSummary` is
a menu in a few numbers, for a person who sees it for the first time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from tillbridge.model.export_facts import ExportFacts, FileEncoding, LeftOut
from tillbridge.model.money import to_major


@dataclass(frozen=True, slots=True)
class Variant:
    """A size or kind of an item. If a re-push lacks it, the service deactivates it."""

    external_id: str
    variant_name: str
    price: int
    available: bool = True


@dataclass(frozen=True, slots=True)
class TaxComponent:
    """One part of an item's tax; `rate` is percent as decimal text (`8.25`), never a float."""

    agency: str
    rate: str


@dataclass(frozen=True, slots=True)
class ItemTax:
    """The tax of an item."""

    name: str
    components: tuple[TaxComponent, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """Something that can be ordered, or (`product_type` "addon") added to an order.

    `categories`, `addon_groups` and `menus` contain external ids. `snooze_until` (milliseconds
    since the epoch) is set only while `available` is False and its end is known.
    """

    external_id: str
    name: str
    price: int
    description: str = ""
    image_url: str = ""
    available: bool = True
    snooze_until: int | None = None
    categories: tuple[str, ...] = ()
    addon_groups: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    variant_type: str = ""
    tax: ItemTax | None = None
    product_type: str = ""
    menus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Category:
    """A heading of the menu."""

    external_id: str
    name: str


@dataclass(frozen=True, slots=True)
class AddOn:
    """An extra; never a separate product on the storefront."""

    external_id: str
    name: str
    price: int


@dataclass(frozen=True, slots=True)
class AddOnGroup:
    """A choice of add-ons (by external id), of which guests choose `min_select` to `max_select`.

    A `max_select` of 0 means no limit. `sold_out` are those of the add-ons that are off sale now:
    the bridge sets it, from the availability that the POS reports and from what staff say.
    """

    external_id: str
    name: str
    min_select: int = 0
    max_select: int = 0
    required: bool = False
    add_ons: tuple[str, ...] = ()
    sold_out: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether enough add-ons are on sale for what a guest has to choose."""
        least = min(max(self.min_select, int(self.required)), len(self.add_ons))
        return len(self.add_ons) - len(self.sold_out) >= least

    @property
    def offered(self) -> tuple[str, ...]:
        """The add-ons on sale; all of them if too few are left, for then the items are off sale."""
        if not self.sold_out or not self.is_open:
            return self.add_ons
        return tuple(each for each in self.add_ons if each not in self.sold_out)


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu of the store. Items name the menus they are on."""

    external_id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record of an export that could not be read, with all that a person needs to correct it.

    `place` is file and row ("menu.csv, row 17"); `external_id` is "" if even that is unknown. Its
    item keeps the last good state: it is neither changed nor removed.
    """

    place: str
    text: str
    fix: str
    external_id: str = ""
    field: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records of a reading are, so that errors found later can name the place.

    `places` says by external id where an item or a size is (`menu.csv, row 17`), and `part_places`
    where a category, add-on, group or menu is.

    `columns` gives the file's name of a field: `price`: `Price [Bar]`. If a size has another column
    than its item, it is `variants.price`; a field of a part is `add_ons.price`. All are optional.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    part_places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The complete content of an export: each kind of record by external id, in its order.

    `fingerprints` has, for each item, a stable 64-bit number of the record it was read from; the
    same number in two readings means the same item. An item without one is compared by content.

    `ends_with_newline` says whether the text of the menu ends with a newline; None if there is no
    such text (a database, a workbook, JSON). A table that used to end with one and no longer does
    may be cut off.

    `facts` describe the export itself, `source` says where its records are.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    categories: Mapping[str, Category] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    addon_groups: Mapping[str, AddOnGroup] = field(default_factory=dict)
    menus: Mapping[str, Menu] = field(default_factory=dict)
    bad_rows: tuple[BadRow, ...] = ()
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    ends_with_newline: bool | None = None
    facts: ExportFacts = field(default_factory=ExportFacts)
    source: Source = field(default_factory=Source, compare=False)

    @classmethod
    def of(  # noqa: PLR0913 -- an argument for each field
        cls,
        items: Iterable[Item] = (),
        *,
        categories: Iterable[Category] = (),
        add_ons: Iterable[AddOn] = (),
        addon_groups: Iterable[AddOnGroup] = (),
        menus: Iterable[Menu] = (),
        bad_rows: Iterable[BadRow] = (),
        fingerprints: Mapping[str, int] | None = None,
        ends_with_newline: bool | None = None,
        facts: ExportFacts | None = None,
        source: Source | None = None,
    ) -> "Catalogue":
        """Build a catalogue; if two records have the same external id, the later one counts."""
        return cls(
            items={item.external_id: item for item in items},
            categories={category.external_id: category for category in categories},
            add_ons={add_on.external_id: add_on for add_on in add_ons},
            addon_groups={group.external_id: group for group in addon_groups},
            menus={menu.external_id: menu for menu in menus},
            bad_rows=tuple(bad_rows),
            fingerprints=dict(fingerprints or {}),
            ends_with_newline=ends_with_newline,
            facts=facts or ExportFacts(),
            source=source or Source(),
        )


@dataclass(frozen=True, slots=True)
class CatalogueChanges:
    """A reading as the difference from records that are already known by fingerprint.

    `fresh` is what was read from records with unknown fingerprints (items with their fingerprints,
    the parts they name, and the bad rows); `unseen` are the known fingerprints that did not occur;
    `items_read` is the number of items in the export.
    """

    fresh: Catalogue
    unseen: frozenset[int]
    items_read: int


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an item can be ordered; a False ends at `until` (ms since the epoch)."""

    available: bool
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Priced:
    """Something with a price: an item, or a size of it ("Latte (Large)"). Minor units."""

    name: str
    price: int


class PricedView(TypedDict):
    """A price in minor units, and its `amount` as decimal text in major units."""

    name: str
    price: int
    amount: str


class LeftOutView(TypedDict):
    """What of the export is not sold online, and why."""

    name: str
    reason: str
    detail: str


class MenuSummaryView(TypedDict):
    """A first menu in a few figures."""

    items: int
    sizes: int
    categories: int
    choices: int
    options: int
    sold_out: int
    free: list[str]
    cheapest: PricedView | None
    dearest: PricedView | None
    encodings: dict[str, str]
    left_out: list[LeftOutView]
    not_offered: list[str]
    bad_rows: int
    read_as: str


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

    def to_json(self, currency: str) -> MenuSummaryView:
        """Return it as JSON values."""
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


def _priced_json(priced: Priced | None, currency: str) -> PricedView | None:
    if priced is None:
        return None
    amount = to_major(priced.price, currency)
    return {"name": priced.name, "price": priced.price, "amount": amount}
