"""Items in the making: rows come one by one, and at the end each item has its variants.

A row is what the file has under our names of columns, as text; one that the file lacks is empty.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache

from tillbridge.adapter import BadRow, Catalogue, Category, Item, Menu, Source, Variant
from tillbridge.adapter.prices import BadPrice, PriceReader, amount_fault
from tillbridge.adapter.sale_options import NotForSale, SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.money import MAX_PRICE, DoubtfulAmount, to_minor
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell, DoubtfulCell, DuplicateId

REQUIRED = ("external_id", "name", "price")
OPTIONAL = (
    "description",
    "category",
    "available",
    "image_url",
    "variant_name",
    "parent_id",
    "addon_groups",
)
MENU_ID = "menu"
BLANK = dict.fromkeys((*REQUIRED, *OPTIONAL), "")

_MAX_SWALLOWED = 1_000
_PLAIN_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?")

_to_minor = lru_cache(maxsize=4096)(to_minor)  # a menu of thousands has a few hundred prices

Row = Mapping[str, str]
"""The fields of a row by our names, all of `BLANK`."""


@dataclass(frozen=True)
class RowValues:
    """What the fields of a row mean as an item or a variant, of whatever file. Raises BadCell.

    `prices` reads prices, unless they are whole `minor_units`; `exact` ones are numbers of a
    document, whose point is always a decimal point. `shown` gives the names that the file has for
    our columns, and `delimiter` what it separates fields with, "" where nothing does.
    """

    prices: PriceReader
    delimiter: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    minor_units: bool = False
    exact: bool = False

    @cached_property
    def names(self) -> Mapping[str, str]:
        """How the file calls each column."""
        return {column: self.shown.get(column, column) for column in (*BLANK, "group_by")}

    def item(self, row: Row) -> Item:
        """Return the item. Without a price it gets 0: its variants must have theirs."""
        names, delimiter = self.names, self.delimiter
        price = 0
        external_id = cells.text(
            names["external_id"], row["external_id"], delimiter=delimiter, needed=True
        )
        written = cells.label(row["name"])
        name = cells.text(names["name"], written, delimiter=delimiter, needed=True)
        if cells.plain(row["price"]):
            price = self.price_of(names["price"], row["price"], row["name"])
        return Item(
            external_id=external_id,
            name=name,
            price=price,
            description=cells.description(row["description"]),
            image_url=cells.text(names["image_url"], row["image_url"]),
            available=cells.yes_or_no(names["available"], row["available"], empty=True),
            categories=cells.names(cells.text(names["category"], cells.label(row["category"]))),
            addon_groups=cells.names(cells.text(names["addon_groups"], row["addon_groups"])),
            menus=(MENU_ID,),
        )

    def variant(self, row: Row) -> Variant:
        """Return the variant; its name is `variant_name`, else `name`."""
        names, delimiter = self.names, self.delimiter
        named = "variant_name" if cells.plain(row["variant_name"]) else "name"
        written = cells.label(row[named])
        return Variant(
            external_id=cells.text(
                names["external_id"], row["external_id"], delimiter=delimiter, needed=True
            ),
            variant_name=cells.text(names[named], written, delimiter=delimiter, needed=True),
            price=self.price_of(names["price"], row["price"], row[named]),
            available=cells.yes_or_no(names["available"], row["available"], empty=True),
        )

    def price_of(self, column: str, written: str, name: str) -> int:
        """Return a price in minor units, of the thing `name`, in the file's `column`.

        It is decimal text in major units (`4.50`, `4,50`, `€ 4,50`), unless the values are others.
        """
        line = cells.plain(written)
        if not line:
            raise cells.empty(column, written)
        if self.minor_units:
            return cells.minor_price(column, line)
        if self.exact and _PLAIN_NUMBER.fullmatch(written):
            number = Decimal(written)
            try:
                minor = to_minor(number, self.prices.currency)
            except ValueError as failure:
                fix = _("Correct the price in the till.")
                raise BadCell(
                    column,
                    number,
                    _("{column}: {what}.").format(column=column, what=amount_fault(failure)),
                    fix,
                ) from None
            return cells.checked_price(column, minor, shown=number)
        with contextlib.suppress(ValueError):
            minor = _to_minor(line, self.prices.currency, decimal=self.prices.decimal)
            if 0 <= minor <= MAX_PRICE:
                return minor
        try:  # what is wrong with it
            return self.prices.read(line, column=column, name=cells.plain(name))
        except BadPrice as bad:
            kind = DoubtfulCell if isinstance(bad.__cause__, DoubtfulAmount) else BadCell
            raise kind(bad.column, bad.value, bad.text, bad.fix) from None


@dataclass(frozen=True, slots=True)
class _Places(Mapping[str, str]):
    """Where items stand, by their ids; put into words for the few that are asked for."""

    numbers: Mapping[str, int]
    place: Callable[[int], str]

    def __getitem__(self, external_id: str) -> str:
        return self.place(self.numbers[external_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(slots=True)
class ItemBuilder:
    """Gathers rows; the first with an id counts, a later one that differs is a bad row.

    `rules` is None where the options leave nothing out.
    """

    values: RowValues
    place: Callable[[int], str]
    rules: SaleRules | None
    doubtful: bool = False  # whether a price was refused that can be read in two ways
    _items: dict[str, Item] = field(default_factory=dict)
    _fingerprints: dict[str, int] = field(default_factory=dict)
    _variants: dict[str, list[tuple[int, Variant]]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)  # id -> the row that has it
    _unpriced: dict[str, int] = field(default_factory=dict)
    _bad_items: set[str] = field(default_factory=set)  # whose own row is bad
    _incomplete: set[str] = field(default_factory=set)  # items with a variant that is bad
    _bad_rows: list[BadRow] = field(default_factory=list)

    def add(self, number: int, row: Row, fingerprint: int) -> None:
        """Add an item or a variant that is in row `number`; never raises."""
        parent_id = cells.plain(row["parent_id"])
        try:
            made = self.values.variant(row) if parent_id else self.values.item(row)
            if not parent_id and self._fingerprints.get(made.external_id) == fingerprint:
                return  # the same row once more
            if (first := self._numbers.setdefault(made.external_id, number)) != number:
                name = self.values.names["external_id"]
                raise DuplicateId(
                    name,
                    made.external_id,
                    _("{name} {external_id!r} stands in {place} already.").format(
                        name=name, external_id=made.external_id, place=self.place(first)
                    ),
                    _("Give each item an id of its own; the first row counts."),
                )
        except BadCell as bad:
            self.add_bad(number, row, bad)
            return
        if isinstance(made, Variant):
            self._variants.setdefault(parent_id, []).append((number, made))
            return
        self._items[made.external_id] = made
        self._fingerprints[made.external_id] = fingerprint
        if not cells.plain(row["price"]):
            self._unpriced[made.external_id] = number

    def add_bad(self, number: int, row: Row, bad: BadCell, swallowed: Sequence[str] = ()) -> None:
        """Add a row that cannot be used, and the ids of items that stand inside of it."""
        self.doubtful = self.doubtful or isinstance(bad, DoubtfulCell)
        own, parent = cells.plain(row["external_id"]), cells.plain(row["parent_id"])
        # The item that keeps its last good state because of this row, "" for none: where the first
        # row of that id is the item, it is good.
        is_second = isinstance(bad, DuplicateId) or (not parent and own in self._items)
        item_id = "" if is_second else parent or own
        (self._incomplete if parent else self._bad_items).add(item_id)
        for each in (item_id, *swallowed[:_MAX_SWALLOWED]):
            self._bad_rows.append(bad.at(self.place(number), external_id=each))

    def catalogue(self, menu_name: str) -> Catalogue:
        """Return all that was added, as items of the one menu."""
        price, parent = self.values.names["price"], self.values.names["parent_id"]
        for item_id, variants in self._variants.items():
            if item_id in self._items:
                item = self._items[item_id]
                lowest = min(variant.price for _number, variant in variants)
                self._items[item_id] = replace(
                    item,
                    price=lowest if item_id in self._unpriced else item.price,
                    variants=tuple(variant for _number, variant in variants),
                )
            elif item_id not in self._bad_items:
                text = _("{parent} {item_id!r} is no item of this export.").format(
                    parent=parent, item_id=item_id
                )
                fix = _(
                    "Export the item too, or empty {parent} to sell the row as an item."
                ).format(parent=parent)
                for number, _variant in variants:
                    self._refuse(item_id, number, BadCell(parent, item_id, text, fix))
        for item_id in self._incomplete:
            # Without one of its variants the item would lose that variant: it stays as it was.
            self._drop(item_id)
        for item_id, number in self._unpriced.items():
            if item_id in self._items and item_id not in self._variants:
                self._refuse(item_id, number, cells.empty(price))
        if self.rules is not None:
            for item_id, item in list(self._items.items()):
                self._offer(self.rules, item_id, item, price)
        categories = dict.fromkeys(
            name for item in self._items.values() for name in item.categories
        )
        return Catalogue(
            items=self._items,
            categories={name: Category(name, name) for name in categories},
            menus={MENU_ID: Menu(MENU_ID, menu_name)},
            bad_rows=tuple(self._bad_rows),
            fingerprints=self._fingerprints,
            source=Source(_Places(self._numbers, self.place), self.values.shown),
        )

    def _offer(self, rules: SaleRules, item_id: str, item: Item, price: str) -> None:
        """Leave out or drop what the options say is not sold online."""
        number = self._numbers[item_id]
        try:
            offered = rules.offered(item, self.place(number))
        except NotForSale as refused:
            self._refuse(item_id, number, BadCell(price, "", refused.text, refused.fix))
            return
        if offered is None:
            self._drop(item_id)
        else:
            self._items[item_id] = offered

    def _refuse(self, item_id: str, number: int, bad: BadCell) -> None:
        self._drop(item_id)
        self._bad_rows.append(bad.at(self.place(number), external_id=item_id))

    def _drop(self, item_id: str) -> None:
        self._items.pop(item_id, None)
        self._fingerprints.pop(item_id, None)
