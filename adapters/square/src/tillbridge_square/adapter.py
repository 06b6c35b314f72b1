"""The adapter: the menu of a Square seller, by the item library or by a catalog."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Catalogue,
    CatalogueChanges,
    ExportUnreadable,
    Menu,
    Source,
)
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.decoding import decode, facts_of
from tillbridge.adapter.export_files import reading_whole, unfinished
from tillbridge.adapter.export_items import MENU_ID
from tillbridge.adapter.modifier_file import Modifiers, read_modifiers
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge.model.export_facts import FileEncoding
from tillbridge.model.numbers import parse_json_int
from tillbridge_square.catalog import COLUMNS, Catalog
from tillbridge_square.library import read_library
from tillbridge_square.library_items import Reading, changes_of, sets_of
from tillbridge_square.options import SquareOptions

_MENU = Menu(MENU_ID, "Menu")


class SquareAdapter:
    """Reads the export in whichever of its forms it is."""

    def __init__(self, options: SquareOptions, context: AdapterContext) -> None:
        self._options = options
        self._export = context.base_dir / options.export
        self._modifiers = (
            None if options.modifiers is None else context.base_dir / options.modifiers
        )
        self._currency = context.currency
        self._store = context.store
        self._library = (
            XlsxExport(self._export)
            if self._export.suffix.lower() == ".xlsx"
            else CsvExport(self._export, encoding=options.encoding)
        )

    def catalogue_files(self) -> Sequence[Path]:
        """Return the export, and the file of modifier sets if there is one."""
        return [path for path in (self._export, self._modifiers) if path is not None]

    def availability_files(self) -> Sequence[Path]:
        """Return none: what is sold out stands in the export."""
        return []

    def table_files(self) -> Sequence[Path]:
        """Return none: Square exports no tables."""
        return []

    def update_folders(self) -> Sequence[Path]:
        """Return none: Square does not report the progress of orders by files."""
        return []

    def read_catalogue(self) -> Catalogue:
        """Return all items of the location. Raises ExportUnreadable."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the items whose records are not `known`. Raises ExportUnreadable."""
        if self._export.suffix.lower() == ".json":
            return self._of_catalog(known)
        return self._of_library(known)

    def _of_library(self, known: AbstractSet[int]) -> CatalogueChanges:
        options = self._options
        library = read_library(self._library)
        modifiers = (
            Modifiers()
            if self._modifiers is None
            else read_modifiers(self._modifiers, self._currency, decimal=options.decimal)
        )
        reading = Reading.of(library, options, self._currency)
        rules = SaleRules(options, modifiers.groups, modifiers.add_ons)
        found, records = changes_of(library, reading, known, modifiers, rules)
        return records.changes(
            Catalogue(
                items=found.items,
                categories=found.categories,
                add_ons=modifiers.add_ons,
                addon_groups=modifiers.groups,
                menus={_MENU.external_id: _MENU},
                bad_rows=(*modifiers.bad_rows, *found.bad_rows),
                fingerprints=found.fingerprints,
                source=Source(
                    found.places,
                    {
                        "name": library.shown.get("item name", ""),
                        "description": library.shown.get("description", ""),
                        "price": library.shown.get("price", ""),
                    },
                ),
                ends_with_newline=modifiers.last_lines_end(export=library.ends_with_newline),
                facts=library.facts.with_more(
                    [
                        rules.facts(library.name),
                        modifiers.facts_for(
                            sets_of(library), export=library.name, store=self._store
                        ),
                    ]
                ),
            )
        )

    def _of_catalog(self, known: AbstractSet[int]) -> CatalogueChanges:
        name = self._export.name
        document, encoding = self._json()
        try:
            catalog = Catalog.of(
                document,
                name,
                location=self._options.location or "",
                currency=self._currency,
                menu=MENU_ID,
            )
        except ValueError as failure:
            raise ExportUnreadable(
                _("{name} is no catalog of Square: {failure}.").format(
                    name=name, failure=failure.args[0]
                ),
                place=name,
                fix=_(
                    'Save what ListCatalog answers: {"objects": [...]}, a page or a list of pages.'
                ),
            ) from failure
        if not catalog.location:
            catalog = replace(catalog, location=self._only_location(catalog))
        found, records = catalog.read(known, self._options)
        return records.changes(
            Catalogue(
                items=found.items,
                categories=found.categories,
                add_ons=found.add_ons,
                addon_groups=found.groups,
                menus={_MENU.external_id: _MENU},
                bad_rows=tuple(found.bad_rows),
                facts=found.facts.with_more([facts_of(name, encoding)]),
                fingerprints=found.fingerprints,
                source=Source(found.places, COLUMNS, found.part_places),
            )
        )

    def _json(self) -> tuple[Any, FileEncoding]:
        """Return what the catalog's file says, and how it is encoded. Raises ExportUnreadable."""
        name = self._export.name
        with reading_whole(self._export):
            try:
                text, encoding = decode(read_shared(self._export))
                return json.loads(text, parse_int=parse_json_int), encoding
            except UnicodeDecodeError as failure:
                place, what = (
                    _("{file}, byte {byte}").format(file=name, byte=failure.start),
                    _("ends inside a character"),
                )
            except json.JSONDecodeError as failure:
                place = _("{file}, line {line}, column {column}").format(
                    file=name, line=failure.lineno, column=failure.colno
                )
                what = _("is no whole JSON document: {msg}").format(msg=failure.msg)
            except RecursionError:
                place, what = name, _("is nested too deeply for a catalog")
            raise unfinished(self._export, what, place=place, fix=_("Save the catalog again."))

    @staticmethod
    def _only_location(catalog: Catalog) -> str:
        """Return the one location that the catalog names, or "". Raises ExportUnreadable."""
        named = catalog.locations()
        if len(named) > 1:
            listed = ", ".join(f'"{each}"' for each in named)
            raise ExportUnreadable(
                _("{name} has several locations: {listed}.").format(
                    name=catalog.name, listed=listed
                ),
                place=catalog.name,
                fix=_("Say which one it is, with the option {option}.").format(option="location"),
            )
        return named[0] if named else ""


ADAPTER = Adapter(
    name="square",
    summary="Square, by its item library or by a catalog as JSON",
    options=SquareOptions,
    open=SquareAdapter,
)
