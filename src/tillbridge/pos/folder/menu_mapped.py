"""The menu by a mapping: tables whose rows are grouped, workbooks, lines of text and JSON."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, ExportUnreadable, Menu
from tillbridge.adapter.decoding import decode, facts_of, is_cut_short
from tillbridge.adapter.export_files import LastRead, reading_whole, still_being_written
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.adapter.sharing import read_shared
from tillbridge.model.export_facts import ExportFacts
from tillbridge.pos.folder.item_builder import ItemBuilder, meaning_of
from tillbridge.pos.folder.json_paths import Document, Node
from tillbridge.pos.folder.mapped_json import JsonMenuReader, JsonReading
from tillbridge.pos.folder.mapped_table import (
    Records,
    line_records,
    table_records,
    workbook_records,
)
from tillbridge.pos.folder.mapping import (
    ColumnNames,
    JsonMenu,
    MenuColumn,
    MenuMapping,
    explained,
    mapping_named,
)
from tillbridge.pos.folder.menu_csv import MENU_ID
from tillbridge.pos.folder.menu_json import json_text, parsed_json
from tillbridge.pos.folder.menu_rows import OPTIONAL, REQUIRED, RowValues
from tillbridge.pos.folder.menu_units import Unit, UnitMaker
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.side_tables import AddOnsFile
from tillbridge.pos.folder.table_file import TableSource, read_table

WORKBOOKS = frozenset({".xlsx"})
# Part of every fingerprint. Raise it when the same rows come to mean another item.
_READING_VERSION = 1


@dataclass(frozen=True, slots=True)
class MenuMapped:
    """Reads a menu by its mapping, which a format or the options alone say."""

    path: Path
    mapping: MenuMapping
    options: FolderOptions
    add_ons: AddOnsFile | None
    menu: Menu
    currency: str
    _last: LastRead = field(default_factory=LastRead, compare=False)

    @classmethod
    def of(cls, path: Path, options: FolderOptions, context: AdapterContext) -> "MenuMapped":
        """Return the reader of the menu at `path`. Raises ValueError for options that cannot be."""
        add_ons = None
        if options.addons is not None:
            add_ons = AddOnsFile.of(context.base_dir / options.addons, options, context)
        return cls(
            path=path,
            mapping=_mapping(path, options, context.base_dir),
            options=options,
            add_ons=add_ons,
            menu=Menu(MENU_ID, options.menu_name),
            currency=context.currency,
        )

    def read_catalogue(self) -> Catalogue:
        """Return the whole menu."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`."""
        add_ons = Catalogue() if self.add_ons is None else self.add_ons.read()
        if self.mapping.json_menu is not None:
            return self._of_document(self.mapping.json_menu, known)
        return self._of_rows(add_ons, known)

    # -- tables and lines

    def _of_rows(self, add_ons: Catalogue, known: AbstractSet[int]) -> CatalogueChanges:
        found = self._records()
        written = [record.fields.get("price", "") for record in found.rows]
        prices = PriceReader.of(written, self.currency, self.options.decimal)
        values = RowValues(prices, MENU_ID, found.delimiter, found.shown)
        maker = UnitMaker(self.mapping, self.options, values.name_of, found.place)
        ended = found.ends_with_newline
        if self.add_ons is not None:
            ended = ended and add_ons.ends_with_newline
        return self._changes(
            maker.units(found.rows),
            replace(add_ons, ends_with_newline=ended),
            values,
            found.place,
            known,
            lambda: found.facts.with_more(
                [ExportFacts(left_out=tuple(maker.left_out.values()), read_as=self.mapping.title)]
            ),
        )

    def _records(self) -> Records:
        named = self.options.format is not None
        if self.path.suffix.lower() in WORKBOOKS:
            return workbook_records(self.path, self.options.sheet, self.mapping, named=named)
        if self.mapping.lines is not None:
            return self._lines()
        source = TableSource(
            path=self.path,
            required=(),
            encoding=self.options.encoding,
            delimiter=self.options.delimiter,
            has_header=self.mapping.has_header,
            last=self._last,
        )
        return read_table(source, lambda table: table_records(table, self.mapping, named=named))

    def _lines(self) -> Records:
        with reading_whole(self.path):
            try:
                text, how = decode(read_shared(self.path), self.options.encoding)
            except UnicodeDecodeError as failure:
                if is_cut_short(failure):
                    raise still_being_written(
                        self.path.name, "ends inside a character"
                    ) from failure
                raise ExportUnreadable(
                    f"{self.path.name} is not written in {self.options.encoding}.",
                    place=self.path.name,
                    fix="Correct the option encoding, or leave it out: then it is found out.",
                ) from failure
            found = line_records(self.path.name, text, self.mapping)
            if not found.ends_with_newline and self._last.is_being_rewritten(self.path):
                raise still_being_written(self.path.name, "ends without a line end")
            self._last.done(self.path)
        return replace(found, facts=facts_of(self.path.name, how))

    # -- JSON

    def _of_document(self, menu: JsonMenu, known: AbstractSet[int]) -> CatalogueChanges:
        with reading_whole(self.path):
            text = json_text(self.path, self.options.encoding)
            document = Document(Node(parsed_json(self.path.name, text)))
        values = RowValues(
            PriceReader.of((), self.currency, self.options.decimal),
            MENU_ID,
            shown={ours: str(paths[0]) for ours, paths in self.mapping.columns.items()},
            minor_units=menu.price_unit == "minor",
            exact=True,
        )
        reader = JsonMenuReader(self.path.name, document, self.mapping, menu, values, self.options)
        found: JsonReading = reader.read()
        if not found.units and not found.bad_rows:
            raise ExportUnreadable(
                f"{self.path.name} has no items at {menu.items}.",
                place=self.path.name,
                fix=f"Export the menu as {self.mapping.title or 'the mapping'} has it, or correct "
                "the option format.",
            )
        parts = Catalogue(add_ons=found.add_ons, addon_groups=found.groups, bad_rows=found.bad_rows)
        facts = ExportFacts(
            read_as=self.mapping.title, left_out=found.left_out, warnings=found.warnings
        )
        return self._changes(found.units, parts, values, reader.place, known, lambda: facts)

    def _changes(
        self,
        units: Iterable[Unit],
        parts: Catalogue,
        values: RowValues,
        place: Callable[[int], str],
        known: AbstractSet[int],
        facts: Callable[[], ExportFacts],
    ) -> CatalogueChanges:
        """Return the items of the units that are not known, with the parts they name.

        `facts` are asked for when all units are read.
        """
        rules = SaleRules(self.options, parts.addon_groups, parts.add_ons)
        records = KnownRecords(
            known,
            _READING_VERSION,
            values.prices,
            self.mapping.model_dump_json(),
            meaning_of(rules),
        )
        builder = ItemBuilder(values, place, rules)
        for unit in units:
            _take(builder, unit, records)
        read = builder.catalogue(self.menu)
        return records.changes(
            replace(
                parts,
                items=read.items,
                categories=read.categories,
                menus=read.menus,
                fingerprints=read.fingerprints,
                source=read.source,
                bad_rows=(*read.bad_rows, *parts.bad_rows),
                facts=facts().with_more([rules.facts(self.path.name)]),
            )
        )


def _mapping(path: Path, options: FolderOptions, base_dir: Path) -> MenuMapping:
    """Return the mapping of the format, changed by the options beside it. Raises ValueError."""
    own: dict[str, ColumnNames] = {
        ours: (theirs,) for ours, theirs in options.columns.items() if ours in get_args(MenuColumn)
    }
    if options.format is None:
        columns = _plain_columns(own, options)
        changes: dict[str, object] = {}
    else:
        mapping = mapping_named(options.format, base_dir)
        if (mapping.json_menu is not None) != (path.suffix.lower() == ".json"):
            kind = "a JSON document" if mapping.json_menu else "a table or a text"
            raise ValueError(f'format: "{options.format}" is for {kind}; {path.name} is none')
        columns = {**{str(ours): names for ours, names in mapping.columns.items()}, **own}
        changes = mapping.model_dump(by_alias=True)
    changes |= options.model_dump(include={"group_by", "ids"}, exclude_none=True)
    if changes.get("ids") == "derived":
        columns.pop("external_id", None)
    try:
        return MenuMapping.model_validate({**changes, "columns": columns})
    except ValidationError as failure:
        raise ValueError("; ".join(explained(failure))) from None


def _plain_columns(
    own: Mapping[str, ColumnNames], options: FolderOptions
) -> dict[str, ColumnNames]:
    """Return the columns of a table that has no format: ours, but for those that are renamed."""
    by_position = any(isinstance(each, int) for names in own.values() for each in names)
    columns = dict(own)
    if not by_position:
        columns |= {name: (name,) for name in (*REQUIRED, *OPTIONAL) if name not in own}
    if options.group_by is not None:
        columns.pop("parent_id", None)
        if "external_id" not in own:
            columns["external_id"] = options.group_by
    return columns


def _take(builder: ItemBuilder, unit: Unit, known: KnownRecords) -> None:
    fingerprint = known.new(unit.texts())
    for number, row, bad in unit.rows:
        if fingerprint is None:
            # The item is as it was; that a row is there twice must be told each time.
            if bad is not None:
                builder.take_bad(number, row, bad)
            continue
        if bad is not None:
            builder.take_bad(number, row, bad)
        else:
            builder.take_row(number, row, 0 if row.parent_id else fingerprint)
