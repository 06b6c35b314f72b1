"""The adapter: the menu of a Loyverse account, by its items export."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Catalogue,
    CatalogueChanges,
    Menu,
    Source,
)
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.export_items import MENU_ID
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.modifier_file import Modifiers, read_modifiers
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge_loyverse.columns import columns_of
from tillbridge_loyverse.items import Reading, amounts_of, items_of, modifiers_of
from tillbridge_loyverse.options import LoyverseOptions

_MENU = Menu(MENU_ID, "Menu")
# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 2


class LoyverseAdapter:
    """Reads the export; what is not for sale in the store stays on the menu, sold out."""

    def __init__(self, options: LoyverseOptions, context: AdapterContext) -> None:
        self._export = CsvExport(context.base_dir / options.export, encoding=options.encoding)
        self._modifiers = (
            None if options.modifiers is None else context.base_dir / options.modifiers
        )
        self._options = options
        self._currency = context.currency
        self._store = context.store

    def catalogue_files(self) -> Sequence[Path]:
        """Return the export, and the file of modifiers if there is one."""
        files = (self._export.path, self._modifiers)
        return [path for path in files if path is not None]

    def availability_files(self) -> Sequence[Path]:
        """Return none: what is sold out stands in the export."""
        return []

    def table_files(self) -> Sequence[Path]:
        """Return none: Loyverse exports no tables."""
        return []

    def update_folders(self) -> Sequence[Path]:
        """Return none: Loyverse does not report the progress of orders by files."""
        return []

    def read_catalogue(self) -> Catalogue:
        """Return all items of the store. Raises ExportUnreadable."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the items whose records are not `known`. Raises ExportUnreadable."""
        table = self._export.read()
        options = self._options
        columns = columns_of(table, options)
        modifiers = (
            Modifiers()
            if self._modifiers is None
            else read_modifiers(self._modifiers, self._currency, decimal=options.decimal)
        )
        reading = Reading(
            columns=columns,
            prices=PriceReader.of(amounts_of(table, columns), self._currency, options.decimal),
            options=options,
        )
        records = KnownRecords(known, _READING_VERSION, reading, modifiers.meaning)
        rules = SaleRules(options, modifiers.groups, modifiers.add_ons)
        found = items_of(table, reading, records, modifiers, rules)
        return records.changes(
            Catalogue(
                items=found.items,
                categories=found.categories,
                add_ons=modifiers.add_ons,
                addon_groups=modifiers.groups,
                menus={_MENU.external_id: _MENU},
                bad_rows=(*modifiers.bad_rows, *found.bad_rows),
                fingerprints=found.fingerprints,
                source=Source(found.places, columns.names),
                ends_with_newline=modifiers.last_lines_end(export=table.ends_with_newline),
                facts=table.facts.with_more(
                    [
                        rules.facts(table.name),
                        modifiers.facts_for(
                            modifiers_of(table, columns), export=table.name, store=self._store
                        ),
                    ]
                ),
            )
        )


ADAPTER = Adapter(
    name="loyverse",
    summary="Loyverse, by the items export of its Back Office",
    options=LoyverseOptions,
    open=LoyverseAdapter,
)
