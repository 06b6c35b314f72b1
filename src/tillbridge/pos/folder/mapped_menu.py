"""The menu by a mapping: tables whose rows are grouped, workbooks, lines of text and JSON."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
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
from tillbridge.model.export_facts import ExportFacts, LeftOut
from tillbridge.pos.folder.items import (
    MENU_ID,
    OPTIONAL,
    REQUIRED,
    ItemBuilder,
    RowValues,
)
from tillbridge.pos.folder.json_paths import Document, Node
from tillbridge.pos.folder.mapped_json import JsonMenuReader
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
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.plain_json import json_text, parsed_json
from tillbridge.pos.folder.side_tables import SideTables
from tillbridge.pos.folder.table_file import read_table
from tillbridge.pos.folder.units import Unit, UnitMaker, texts_of

WORKBOOKS = frozenset({".xlsx"})
# Part of every fingerprint. Raise it when the same rows come to mean another item.
_READING_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Export:
    """What an export says: its items as units, and all that is not in them.

    `left_out` is filled while the units are read.
    """

    units: Iterable[Unit]
    values: RowValues
    place: Callable[[int], str]
    parts: Catalogue
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)


class MappedMenu:
    """Reads a menu by its mapping, which a format or the options alone say."""

    def __init__(
        self, path: Path, options: FolderOptions, context: AdapterContext, side_tables: SideTables
    ) -> None:
        self._path = path
        self._mapping = _mapping(path, options, context.base_dir)
        self._options = options
        self._side_tables = side_tables
        self._menu = Menu(MENU_ID, options.menu_name)
        self._currency = context.currency
        self._table = options.table(path, (), ())
        self._last = LastRead()

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`."""
        add_ons = self._side_tables.read_add_ons()
        menu = self._mapping.json_menu
        found = self._rows(add_ons) if menu is None else self._document(menu)
        parts = found.parts
        rules = SaleRules(self._options, parts.addon_groups, parts.add_ons)
        records = KnownRecords(
            known,
            _READING_VERSION,
            found.values.prices,
            self._mapping.model_dump_json(),
            rules.meaning() if rules.sells_less else (),
        )
        builder = ItemBuilder(found.values, found.place, rules)
        for unit in found.units:
            fingerprint = records.new(texts_of(unit))
            for number, row, bad in unit:
                # Where the item is as it was, that a row is there twice must be told each time.
                if bad is not None:
                    builder.take_bad(number, row, bad)
                elif fingerprint is not None:
                    builder.take(number, row, fingerprint)
        read = builder.catalogue(self._menu)
        more = (ExportFacts(left_out=tuple(found.left_out.values())), rules.facts(self._path.name))
        return records.changes(
            replace(
                read,
                add_ons=parts.add_ons,
                addon_groups=parts.addon_groups,
                bad_rows=(*read.bad_rows, *parts.bad_rows),
                ends_with_newline=parts.ends_with_newline,
                facts=parts.facts.with_more(more),
            )
        )

    # -- tables and lines

    def _rows(self, add_ons: Catalogue) -> _Export:
        found = self._records()
        written = [record.fields.get("price", "") for record in found.rows]
        prices = PriceReader.of(written, self._currency, self._options.decimal)
        values = RowValues(prices, MENU_ID, found.delimiter, found.shown)
        maker = UnitMaker(self._mapping, self._options, values.name_of, found.place)
        parts = replace(
            add_ons,
            ends_with_newline=found.ends_with_newline and add_ons.ends_with_newline,
            facts=found.facts.with_more([ExportFacts(read_as=self._mapping.title)]),
        )
        return _Export(maker.units(found.rows), values, found.place, parts, maker.left_out)

    def _records(self) -> Records:
        path, mapping = self._path, self._mapping
        named = self._options.format is not None
        if path.suffix.lower() in WORKBOOKS:
            return workbook_records(path, self._options.sheet, mapping, named=named)
        if mapping.lines is None:
            source = replace(self._table, renamed=None, has_header=mapping.has_header)
            return read_table(source, partial(table_records, mapping=mapping, named=named))
        with reading_whole(path):
            try:
                text, how = decode(read_shared(path), self._options.encoding)
            except UnicodeDecodeError as failure:
                if is_cut_short(failure):
                    raise still_being_written(path.name, "ends inside a character") from failure
                raise ExportUnreadable(
                    f"{path.name} is not written in {self._options.encoding}.",
                    place=path.name,
                    fix="Correct the option encoding, or leave it out: then it is found out.",
                ) from failure
            found = line_records(path.name, text, mapping.lines)
            if not found.ends_with_newline and self._last.is_being_rewritten(path):
                raise still_being_written(path.name, "ends without a line end")
            self._last.done(path)
        return replace(found, facts=facts_of(path.name, how))

    # -- JSON

    def _document(self, menu: JsonMenu) -> _Export:
        name, mapping = self._path.name, self._mapping
        with reading_whole(self._path):
            text = json_text(self._path, self._options.encoding)
            document = Document(Node(parsed_json(name, text)))
        values = RowValues(
            PriceReader.of((), self._currency, self._options.decimal),
            MENU_ID,
            shown={ours: str(paths[0]) for ours, paths in mapping.columns.items()},
            minor_units=menu.price_unit == "minor",
            exact=True,
        )
        reader = JsonMenuReader(name, document, mapping, menu, values, self._options)
        units, parts = reader.read()
        if not units and not parts.bad_rows:
            raise ExportUnreadable(
                f"{name} has no items at {menu.items}.",
                place=name,
                fix=f"Export the menu as {mapping.title or 'the mapping'} has it, or correct "
                "the option format.",
            )
        return _Export(units, values, reader.place, parts)


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
