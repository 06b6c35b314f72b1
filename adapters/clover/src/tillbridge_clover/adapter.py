"""The adapter: the menu of a Clover merchant, by the inventory export of the dashboard."""

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
from tillbridge.adapter.export_items import MENU_ID
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge_clover.items import Reading, changes_of
from tillbridge_clover.options import CloverOptions
from tillbridge_clover.parts import parts_of, prices_of

# What the sheet Items calls the fields of an item.
_COLUMNS = {
    "external_id": "Clover ID",
    "name": "Name",
    "price": "Price",
    "description": "Description",
    "categories": "Categories",
    "addon_groups": "Modifier Groups",
    "tax": "Tax Rates",
    "variants.variant_name": "Variant Option",
    "categories.name": "Category Name",
    "add_ons.name": "Modifier",
    "add_ons.price": "Price",
    "addon_groups.name": "Modifier Group Name",
    "addon_groups.min_select": "Required Quantity",
    "addon_groups.max_select": "Max Quantity",
}


class CloverAdapter:
    """Reads the export, in its first and its second layout."""

    def __init__(self, options: CloverOptions, context: AdapterContext) -> None:
        self._export = XlsxExport(context.base_dir / options.export)
        self._options = options
        self._currency = context.currency

    def catalogue_files(self) -> Sequence[Path]:
        """Return the export."""
        return [self._export.path]

    def availability_files(self) -> Sequence[Path]:
        """Return none: what is hidden stands in the export."""
        return []

    def table_files(self) -> Sequence[Path]:
        """Return none: Clover exports no tables."""
        return []

    def update_folders(self) -> Sequence[Path]:
        """Return none: Clover does not report the progress of orders by files."""
        return []

    def read_catalogue(self) -> Catalogue:
        """Return the inventory. Raises ExportUnreadable."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the items whose records are not `known`. Raises ExportUnreadable."""
        sheets = self._export.read()
        prices = prices_of(sheets, self._currency, self._options.decimal)
        parts = parts_of(sheets, self._export.path.name, prices, self._options)
        reading = Reading.of(parts, self._options, prices)
        found, records = changes_of(sheets, self._export.path.name, reading, known)
        groups = [each for name, each in reading.groups.items() if name in found.groups]
        return records.changes(
            Catalogue.of(
                found.items.values(),
                categories=[
                    each for each in parts.categories.values() if each.external_id in found.used
                ],
                add_ons=[add_on for each in groups for add_on in each.add_ons],
                addon_groups=[each.group for each in groups],
                menus=[Menu(MENU_ID, "Menu")],
                bad_rows=(
                    *parts.bad_rows,
                    *parts.groups.bad_rows(found.groups),
                    *found.bad_rows,
                ),
                fingerprints=found.fingerprints,
                source=Source(
                    found.places,
                    _COLUMNS,
                    {
                        part: each.place
                        for each in groups
                        for part in (each.group.external_id, *each.group.add_ons)
                    },
                ),
                facts=reading.rules.facts(self._export.path.name),
            )
        )


ADAPTER = Adapter(
    name="clover",
    summary="Clover, by the inventory export of its dashboard",
    options=CloverOptions,
    open=CloverAdapter,
)
