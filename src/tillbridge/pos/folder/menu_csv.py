"""The menu as a CSV: whole, or as what differs from rows already known.

The fingerprint of an item with variants is made of its own row's and of theirs in their order, so
that a changed variant is a changed item. Which rows belong together is only known at
the end of the file. To keep nothing of what did not change, a first pass keeps numbers only, and
what proved to be new is read in a second. Most exports have few rows of this kind, or none: then
their rows are kept, and one pass does.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, Menu
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.item_builder import ItemBuilder, meaning_of
from tillbridge.pos.folder.menu_rows import OPTIONAL, REQUIRED, MenuRowReader, RowValues
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.side_tables import AddOnsFile
from tillbridge.pos.folder.table_file import Table, TableSource, read_table

MENU_ID = "menu"
# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 2


@dataclass(frozen=True, slots=True)
class MenuCsv:
    """Reads a menu CSV, and the file of its add-ons if there is one."""

    source: TableSource
    add_ons: AddOnsFile | None
    menu: Menu
    currency: str
    options: FolderOptions

    @classmethod
    def of(cls, path: Path, options: FolderOptions, context: AdapterContext) -> "MenuCsv":
        """Return the reader of the menu at `path`."""
        source = TableSource(
            path=path,
            required=REQUIRED,
            optional=OPTIONAL,
            renamed=options.renamed,
            encoding=options.encoding,
            delimiter=options.delimiter,
        )
        add_ons = None
        if options.addons is not None:
            add_ons = AddOnsFile.of(context.base_dir / options.addons, options, context)
        return cls(source, add_ons, Menu(MENU_ID, options.menu_name), context.currency, options)

    def read_catalogue(self) -> Catalogue:
        """Return the whole menu."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        Add-ons and their groups are few, and told whole each time. The ids of known rows are not
        looked at: where a new row has the id of a known one above it, both are told (the known
        one as seen, the new one as fresh), and the first counts.
        """
        add_ons = Catalogue() if self.add_ons is None else self.add_ons.read()
        rules = SaleRules(self.options, add_ons.addon_groups, add_ons.add_ons)
        changes = read_table(self.source, lambda table: self._changes(table, known, rules))
        fresh = changes.fresh
        if self.add_ons is not None:
            fresh = replace(
                fresh,
                add_ons=add_ons.add_ons,
                addon_groups=add_ons.addon_groups,
                bad_rows=(*fresh.bad_rows, *add_ons.bad_rows),
                ends_with_newline=fresh.ends_with_newline and add_ons.ends_with_newline,
            )
        return replace(changes, fresh=fresh)

    def _changes(self, table: Table, known: AbstractSet[int], rules: SaleRules) -> CatalogueChanges:
        prices = PriceReader.of((), self.currency, self.options.decimal)
        changes, in_doubt = self._read_by(prices, table, known, rules)
        if not in_doubt:
            return changes
        # Most files have no price that can be read in two ways; where one has, the others tell.
        at = table.columns["price"]
        written = [row[at] for _number, row in table.rows() if at < len(row)]
        found = PriceReader.of(written, self.currency, self.options.decimal)
        return changes if found == prices else self._read_by(found, table, known, rules)[0]

    def _read_by(
        self, prices: PriceReader, table: Table, known: AbstractSet[int], rules: SaleRules
    ) -> tuple[CatalogueChanges, bool]:
        """Return what differs, and whether a price was refused that can be read in two ways."""
        unseen = set(known)
        rules = replace(rules)  # anew for each reading of the table
        shown = {ours: table.header[at] for ours, at in table.columns.items()}
        values = RowValues(prices, self.menu.external_id, table.delimiter, shown)
        reader = MenuRowReader(table)
        builder = ItemBuilder(values, table.place, rules)
        seed = self._seed(table, rules, prices)
        for number, row, fingerprint in unknown_rows_of_items(table, known, unseen, seed):
            builder.take(reader, number, row, fingerprint)
        fresh = replace(
            builder.catalogue(self.menu),
            ends_with_newline=table.ends_with_newline(),
            facts=table.facts().with_more([rules.facts(table.path.name)]),
        )
        changes = CatalogueChanges(
            fresh=fresh,
            unseen=frozenset(unseen),
            items_read=len(known) - len(unseen) + len(fresh.items),
        )
        return changes, builder.doubtful

    def _seed(self, table: Table, rules: SaleRules, prices: PriceReader) -> int:
        """Return a number of all that decides, beside a row, which item the row means."""
        columns = tuple(sorted(table.columns.items()))
        width = len(table.header)
        meaning: tuple[object, ...] = (_READING_VERSION, self.currency, width, columns)
        meaning += (table.delimiter,)
        meaning += (prices.decimal,) if prices.decimal else ()
        meaning += meaning_of(rules)
        return xxh3_64_intdigest(repr(meaning).encode())


_FEW_ROWS = 2_000
_TO_SIGNED = 1 << 63
_64_BITS = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # so that the order of rows matters

_Row = tuple[int, list[str], int]


def unknown_rows_of_items(
    table: Table, known: AbstractSet[int], unseen: set[int], seed: int
) -> Iterator[_Row]:
    """Yield the rows of items whose fingerprint is not in `known`, in the file's order.

    As `Table.unknown_rows`, but with the item's fingerprint at its own row and 0 at its
    variants'. Variants whose parent is nowhere are yielded too.
    """
    if "parent_id" not in table.columns:
        yield from table.unknown_rows(known, unseen, seed)
        return
    families = _Families(table, seed)
    yield from families.unknown_rows(known, unseen)


class _Families:
    """What a first pass learnt of the rows that are not known by themselves."""

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._seed = seed
        self._id_at = table.columns["external_id"]
        self._parent_at = table.columns["parent_id"]
        self._heads: dict[str, int] = {}  # item id -> fingerprint of its own row
        self._variants: dict[str, int] = {}  # item id -> fingerprint of its variants' rows
        self._loose: set[int] = set()  # rows without an id, or with one that a row above has
        self._kept: list[_Row] | None = []

    def unknown_rows(self, known: AbstractSet[int], unseen: set[int]) -> Iterator[_Row]:
        """Yield as `unknown_rows_of_items` says."""
        for numbered in _distinct(self._table.unknown_rows(known, unseen, self._seed)):
            self._note(numbered)
        new = self._new_heads(known, unseen)
        # Their own row was known by itself, as an item without variants; or it is not there.
        late = self._variants.keys() - self._heads.keys()
        if late or self._kept is None:
            rows = _distinct(self._table.unknown_rows(frozenset(), set(), self._seed))
        else:
            rows = iter(self._kept)
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
        if self._kept is not None:
            self._kept.append(numbered)
            if len(self._kept) > _FEW_ROWS:
                self._kept = None

    def _new_heads(self, known: AbstractSet[int], unseen: set[int]) -> dict[str, int]:
        new: dict[str, int] = {}
        for external_id, own in self._heads.items():
            variants = self._variants.get(external_id)
            whole = own if variants is None else _mixed(own, variants)
            if whole in known:
                unseen.discard(whole)
            else:
                new[external_id] = whole
        return new

    def _ids(self, row: Sequence[str]) -> tuple[str, str]:
        try:
            return cells.plain(row[self._id_at]), cells.plain(row[self._parent_at])
        except IndexError:
            return cells.plain(row[self._id_at]) if self._id_at < len(row) else "", ""


def _distinct(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield each row once: one that stands there again says nothing new."""
    seen: set[int] = set()
    for row in rows:
        if row[2] not in seen:
            seen.add(row[2])
            yield row


def _mixed(first: int, second: int) -> int:
    """Return one fingerprint of two, which are evenly spread already."""
    return ((first * _ODD + second) & _64_BITS) - _TO_SIGNED
