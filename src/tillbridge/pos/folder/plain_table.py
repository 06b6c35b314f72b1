"""The menu as a CSV of our own form: whole, or as what differs from rows already known.

The fingerprint of an item with variants is made of its own row's and of theirs in their order, so
that a changed variant is a changed item. Which rows belong together is only known at
the end of the file. To keep nothing of what did not change, a first pass keeps numbers only, and
what proved to be new is read in a second. Most exports have few rows of this kind, or none: then
their rows are kept, and one pass does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges
from tillbridge.adapter.decoding import facts_of
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BrokenRow
from tillbridge.pos.folder.items import OPTIONAL, REQUIRED, ItemBuilder, RowValues
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, read_table

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
