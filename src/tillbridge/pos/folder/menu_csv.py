"""The menu as a CSV: whole, or as what differs from rows already known."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, Menu
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.pos.folder.addons_csv import AddOnsFile
from tillbridge.pos.folder.drafts import Drafts, meaning_of
from tillbridge.pos.folder.families import unknown_rows_of_items
from tillbridge.pos.folder.menu_rows import OPTIONAL, REQUIRED, MenuRowReader, RowValues
from tillbridge.pos.folder.options import FolderOptions
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
        drafts = Drafts(values, table.place, rules)
        seed = self._seed(table, rules, prices)
        for number, row, fingerprint in unknown_rows_of_items(table, known, unseen, seed):
            drafts.take(reader, number, row, fingerprint)
        fresh = replace(
            drafts.catalogue(self.menu),
            ends_with_newline=table.ends_with_newline(),
            facts=table.facts().with_more([rules.facts(table.path.name)]),
        )
        changes = CatalogueChanges(
            fresh=fresh,
            unseen=frozenset(unseen),
            items_read=len(known) - len(unseen) + len(fresh.items),
        )
        return changes, drafts.doubtful

    def _seed(self, table: Table, rules: SaleRules, prices: PriceReader) -> int:
        """Return a number of all that decides, beside a row, which item the row means."""
        columns = tuple(sorted(table.columns.items()))
        width = len(table.header)
        meaning: tuple[object, ...] = (_READING_VERSION, self.currency, width, columns)
        meaning += (table.delimiter,)
        meaning += (prices.decimal,) if prices.decimal else ()
        meaning += meaning_of(rules)
        return xxh3_64_intdigest(repr(meaning).encode())
