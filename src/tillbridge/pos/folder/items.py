"""Menus of rows: items in the making, and the CSV of our own form, whose rows they are.

A row is what the file has under our names of columns, as text; one that the file lacks is empty.
Rows come one by one, and at the end each item has its variants.

The CSV is read whole, or as what differs from rows already known. The fingerprint of an item with
variants is made of its own row's and of theirs in their order, so that a changed variant is a
changed item. Which rows belong together is only known at the end of the file. To keep nothing of
what did not change, a first pass keeps numbers only, and what proved to be new is read in a second.
Most exports have few rows of this kind, or none: then their rows are kept, and one pass does.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from pathlib import Path

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import (
    AdapterContext,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Category,
    Item,
    Menu,
    Source,
    Variant,
)
from tillbridge.adapter.decoding import facts_of
from tillbridge.adapter.prices import BadPrice, PriceReader, amount_fault
from tillbridge.adapter.sale_options import NotForSale, SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning
from tillbridge.model.money import MAX_PRICE, DoubtfulAmount, to_minor
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell, BrokenRow, DoubtfulCell, DuplicateId
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, read_table

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


# -- the CSV of our own form

# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 4
_FEW_ROWS = 2_000
_TO_SIGNED = 1 << 63
_64_BITS = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # so that the order of rows matters

_Row = tuple[int, list[str], int]  # number, cells, fingerprint


class PlainTable:
    """Reads a menu CSV. `read_add_ons` reads the file of its add-ons, if there is one."""

    def __init__(
        self,
        path: Path,
        options: FolderOptions,
        context: AdapterContext,
        read_add_ons: Callable[[], Catalogue],
    ) -> None:
        self._source = options.table(path, REQUIRED, OPTIONAL)
        self._read_add_ons = read_add_ons
        self._prices = PriceReader.of((), context.currency, options.decimal)
        self._options = options
        self._sells_less = SaleRules(options).sells_less

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        Add-ons and their groups are few, and whole each time. The ids of known rows are not
        looked at: where a new row has the id of a known one above it, both are there (the known
        one as seen, the new one as fresh), and the first counts.
        """
        add_ons = self._read_add_ons()
        read = partial(self._read, known=known, add_ons=add_ons, prices=self._prices)
        return read_table(self._source, read)

    def _read(
        self, table: Table, known: AbstractSet[int], add_ons: Catalogue, prices: PriceReader
    ) -> CatalogueChanges:
        """Return what differs."""
        unseen, sells_less, currency = set(known), self._sells_less, prices.currency
        rules = SaleRules(self._options, add_ons.addon_groups, add_ons.add_ons)
        values = RowValues(prices, table.delimiter, table.shown)
        builder = ItemBuilder(values, table.place, rules if sells_less else None)
        # All that decides, beside a row, which item the row means.
        meaning: tuple[object, ...] = (_READING_VERSION, currency, len(table.header))
        meaning += (tuple(sorted(table.columns.items())), table.delimiter)
        meaning += (prices.decimal,) if prices.decimal else ()
        meaning += rules.meaning() if sells_less else ()
        seed = xxh3_64_intdigest(repr(meaning).encode())
        unknown = Families(table, seed).unknown_rows if "parent_id" in table.columns else None
        rows = unknown(known, unseen) if unknown else table.unknown_rows(known, unseen, seed)
        for number, row, fingerprint in rows:
            fields = table.fields(row)
            try:
                table.check(row)
            except BrokenRow as bad:
                builder.add_bad(number, fields, bad, table.swallowed(row))
            else:
                builder.add(number, fields, fingerprint)
        if builder.doubtful and prices is self._prices:
            # Most files have no price that can be read in two ways; if one has, the others decide.
            prices = PriceReader.of(table.written("price"), currency, self._options.decimal)
            return self._read(table, known, add_ons, prices)
        read = builder.catalogue(self._options.menu_name)
        name, passed = table.path.name, table.passed
        facts = facts_of(name, passed.encoding())
        if "variant_name" in table.columns and "parent_id" not in table.columns:
            facts = facts.with_more([ExportFacts(warnings=(_sizes_of_nothing(table),))])
        fresh = replace(
            read,
            add_ons=add_ons.add_ons,
            addon_groups=add_ons.addon_groups,
            bad_rows=(*read.bad_rows, *add_ons.bad_rows),
            ends_with_newline=passed.ends_with_newline() and add_ons.ends_with_newline,
            facts=facts.with_more([rules.facts(name)]) if sells_less else facts,
        )
        items_read = len(known) - len(unseen) + len(fresh.items)
        return CatalogueChanges(fresh, frozenset(unseen), items_read)


class Families:
    """The rows of items with variants: what a first pass learnt of those that are not known."""

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._seed = seed
        self._id_at = table.columns["external_id"]
        self._parent_at = table.columns["parent_id"]
        self._heads: dict[str, int] = {}  # item id -> fingerprint of its own row
        self._variants: dict[str, int] = {}  # item id -> fingerprint of its variants' rows
        self._loose: set[int] = set()  # rows without an id, or with one that a row above has
        self._few_rows: list[_Row] | None = []

    def unknown_rows(self, known: AbstractSet[int], unseen: set[int]) -> Iterator[_Row]:
        """Yield the rows of items whose fingerprint is not in `known`, in the file's order.

        As `Table.unknown_rows`, but with the item's fingerprint at its own row and 0 at its
        variants'. Variants whose parent is nowhere are yielded too.
        """
        for numbered in _distinct(self._table.unknown_rows(known, unseen, self._seed)):
            self._note(numbered)
        new: dict[str, int] = {}
        for external_id, own in self._heads.items():
            variants = self._variants.get(external_id)
            whole = own if variants is None else _mixed(own, variants)
            if whole in known:
                unseen.discard(whole)
            else:
                new[external_id] = whole
        # Their own row was known by itself, as an item without variants; or it is not there.
        late = self._variants.keys() - self._heads.keys()
        rows: Iterable[_Row] = self._few_rows or ()
        if late or self._few_rows is None:
            rows = _distinct(self._table.unknown_rows(frozenset(), set(), self._seed))
        for number, row, fingerprint in rows:
            external_id, parent_id = self._ids(row)
            if parent_id:
                if parent_id in new or parent_id in late:
                    yield number, row, 0
            elif number in self._loose:
                yield number, row, fingerprint
            elif external_id in new and self._heads[external_id] == fingerprint:
                yield number, row, new[external_id]
            elif external_id in late:
                unseen.add(fingerprint)  # the item without variants is not there any more
                yield number, row, _mixed(fingerprint, self._variants[external_id])

    def _note(self, numbered: _Row) -> None:
        number, row, fingerprint = numbered
        external_id, parent_id = self._ids(row)
        if parent_id:
            above = self._variants.get(parent_id, 0)
            self._variants[parent_id] = _mixed(above, fingerprint)
        elif external_id and external_id not in self._heads:
            self._heads[external_id] = fingerprint
        else:
            self._loose.add(number)
        if self._few_rows is not None:
            self._few_rows.append(numbered)
            if len(self._few_rows) > _FEW_ROWS:
                self._few_rows = None

    def _ids(self, row: Sequence[str]) -> tuple[str, str]:
        width = len(row)
        external_id = cells.plain(row[self._id_at]) if self._id_at < width else ""
        is_whole = max(self._id_at, self._parent_at) < width
        return external_id, cells.plain(row[self._parent_at]) if is_whole else ""


def _distinct(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield each row once: one that is there again says nothing new."""
    seen: set[int] = set()
    for row in rows:
        if row[2] not in seen:
            seen.add(row[2])
            yield row


def _mixed(first: int, second: int) -> int:
    """Return one fingerprint of two, which are evenly spread already."""
    return ((first * _ODD + second) & _64_BITS) - _TO_SIGNED


def _sizes_of_nothing(table: Table) -> ExportWarning:
    return ExportWarning(
        place=table.path.name,
        text=_(
            "The column {column} names sizes, but no column says of which item: each size is sold "
            "as an item of its own, without the name of the size."
        ).format(column=table.shown["variant_name"]),
        fix=_(
            "Name the column that is the same in all sizes of an item, with the option group_by, "
            "or the column with the item's id, with the option columns.parent_id."
        ),
    )
