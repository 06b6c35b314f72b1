"""The menu as a CSV: whole, or as what differs from rows already known."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, Menu
from tillbridge.adapters.folder.addons_csv import AddOnsFile
from tillbridge.adapters.folder.drafts import Drafts
from tillbridge.adapters.folder.families import unknown_rows_of_items
from tillbridge.adapters.folder.menu_rows import OPTIONAL, REQUIRED, MenuRowReader
from tillbridge.adapters.folder.options import FolderOptions
from tillbridge.adapters.folder.table_file import Table, TableSource, read_table

MENU_ID = "menu"
# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 1


@dataclass(frozen=True, slots=True)
class MenuCsv:
    """Reads a menu CSV, and the file of its add-ons if there is one."""

    source: TableSource
    add_ons: AddOnsFile | None
    menu: Menu
    currency: str

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
        return cls(source, add_ons, Menu(MENU_ID, options.menu_name), context.currency)

    def read_catalogue(self) -> Catalogue:
        """Return the whole menu."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        Add-ons and their groups are few, and told whole each time. The ids of known rows are not
        looked at: where a new row has the id of a known one above it, both are told (the known
        one as seen, the new one as fresh), and the first counts.
        """
        changes = read_table(self.source, lambda table: self._changes(table, known))
        if self.add_ons is None:
            return changes
        add_ons = self.add_ons.read()
        fresh = replace(
            changes.fresh,
            add_ons=add_ons.add_ons,
            addon_groups=add_ons.addon_groups,
            bad_rows=(*changes.fresh.bad_rows, *add_ons.bad_rows),
            ends_with_newline=changes.fresh.ends_with_newline and add_ons.ends_with_newline,
        )
        return replace(changes, fresh=fresh)

    def _changes(self, table: Table, known: AbstractSet[int]) -> CatalogueChanges:
        unseen = set(known)
        drafts = Drafts(MenuRowReader(table, self.currency, self.menu.external_id))
        for number, row, fingerprint in unknown_rows_of_items(table, unseen, self._seed(table)):
            drafts.take(number, row, fingerprint)
        fresh = replace(drafts.catalogue(self.menu), ends_with_newline=table.ends_with_newline())
        return CatalogueChanges(
            fresh=fresh,
            unseen=frozenset(unseen),
            items_read=len(known) - len(unseen) + len(fresh.items),
        )

    def _seed(self, table: Table) -> int:
        """Return a number of all that decides, beside a row, which item the row means."""
        columns = tuple(sorted(table.columns.items()))
        meaning = (_READING_VERSION, self.currency, len(table.header), columns, table.delimiter)
        return xxh3_64_intdigest(repr(meaning).encode())
