"""The menu by a mapping: tables whose rows are grouped, workbooks, lines of text and JSON."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, ExportUnreadable
from tillbridge.adapter.decoding import decode, facts_of, undecodable
from tillbridge.adapter.export_files import reading_whole, still_being_written
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _
from tillbridge.adapter.xlsx_export import Sheet, XlsxExport
from tillbridge.model.export_facts import ExportFacts, ExportWarning, LeftOut
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell, BrokenRow
from tillbridge.pos.folder.items import (
    OPTIONAL,
    REQUIRED,
    ItemBuilder,
    RowValues,
)
from tillbridge.pos.folder.json_paths import Document, Node
from tillbridge.pos.folder.json_pieces import json_or_lines, json_text
from tillbridge.pos.folder.mapped_json import JsonMenuReader
from tillbridge.pos.folder.mapping import (
    ColumnName,
    ColumnNames,
    JsonMenu,
    LinePatterns,
    MenuColumn,
    MenuMapping,
    explained,
    mapping_named,
    no_column,
)
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, positions, read_table
from tillbridge.pos.folder.units import Record, Unit, UnitMaker, texts_of

_HEADER_WITHIN = 30  # rows of a sheet: above its header may stand a title
WORKBOOKS = frozenset({".xlsx"})
# Part of every fingerprint. Raise it when the same rows come to mean another item.
_READING_VERSION = 2


# -- rows of tables, sheets and texts


def _column_places(
    at: Mapping[str, int], size: int, names: Iterable[ColumnName]
) -> tuple[int, ...]:
    """Return where the columns of those names are in a header of that size, if they are.

    `at` is the place of each of its names, as names are compared.
    """
    places = (
        each - 1 if isinstance(each, int) else at.get(cells.alike(cells.plain(each)), -1)
        for each in names
    )
    return tuple(place for place in places if 0 <= place < size)


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a mapping are in one file; a column may have several places."""

    mapping: MenuMapping
    header: Sequence[str]
    own: Mapping[str, tuple[int, ...]]
    group: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...]
    filters: Mapping[str, tuple[int, ...]]
    parent_key: tuple[int, ...]

    @classmethod
    def of(cls, mapping: MenuMapping, header: Sequence[str]) -> "Columns":
        """Find the columns in a header; those that are not there have no place."""
        at = {cells.alike(name): place for place, name in reversed(list(enumerate(header)))}
        places = partial(_column_places, at, len(header))
        return cls(
            mapping=mapping,
            header=header,
            own={ours: places(names) for ours, names in mapping.columns.items()},
            group=places(mapping.group_by or ()),
            sizes=tuple(map(places, mapping.sizes)),
            filters={name: places((name,)) for name in mapping.where},
            parent_key=places(mapping.parent_by or ()),
        )

    @property
    def shown(self) -> dict[str, str]:
        """What the file calls our columns."""
        places = {**self.own, "group_by": self.group}
        shown = {ours: self.header[found[0]] for ours, found in places.items() if found}
        if named := [self.header[found[0]] for found in self.sizes if found]:
            shown["variant_name"] = ", ".join(named)
        return shown

    def missing(self) -> list[str]:
        """Return how the columns are called that there must be and are not."""
        mapping = self.mapping
        needed: list[tuple[ColumnNames, tuple[int, ...]]] = []
        if mapping.group_by is not None:
            needed.append((mapping.group_by, self.group))
        has_ids = mapping.ids == "column" and mapping.group_by is None
        ours: tuple[MenuColumn, ...] = ("external_id", "name", "price")
        needed += [
            (mapping.columns.get(name, (name,)), self.own.get(name, ()))
            for name in (ours if has_ids else ours[1:])
        ]
        return [" or ".join(map(str, names)) for names, found in needed if not found]

    def check(self, path: Path, *, named: bool) -> None:
        """Raise ExportUnreadable for a file without a column, or with ids that would not count.

        `named` is whether the mapping is of a format that was chosen.
        """
        mapping = self.mapping
        if missing := self.missing():
            fix = _("Name the columns as they are called there in the option columns.")
            if named:
                fix = (
                    _("Export the menu as {format} has it ({where}).")
                    if mapping.export
                    else _("Export the menu as {format} has it, or correct the mapping.")
                ).format(format=mapping.title or _("the format"), where=mapping.export)
            raise no_column(path, self.header, missing, fix)
        if mapping.ids == "derived" and "external_id" in map(str.casefold, self.header):
            raise ExportUnreadable(
                _(
                    '{name} has a column external_id, and ids = "derived" would give every dish '
                    "another "
                    "id."
                ).format(name=path.name),
                place=_("{file}, row {row}").format(file=path.name, row=1),
                fix=_("Leave out the option ids, so that the ids of the file count."),
            )

    def record(self, number: int, row: Sequence[str], bad: BadCell | None = None) -> Record:
        """Return one row as a record."""

        def cell(places: Sequence[int]) -> str:
            found = (row[at] for at in places if at < len(row) and row[at].strip())
            return cells.unwrapped(next(found, ""))

        return Record(
            number=number,
            fields={ours: cell(places) for ours, places in self.own.items()},
            group=cells.plain(cell(self.group)),
            sizes=tuple(map(cell, self.sizes)),
            filters={name: cell(places) for name, places in self.filters.items()},
            parent_key=cells.plain(cell(self.parent_key)),
            bad=bad,
        )


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one file, how a row is found in it, and what its columns are called."""

    rows: tuple[Record, ...]
    place: Callable[[int], str]
    shown: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ""
    ends_with_newline: bool | None = None
    facts: ExportFacts = field(default_factory=ExportFacts)


def table_records(table: Table, mapping: MenuMapping, *, named: bool) -> Records:
    """Return the records of a CSV. Raises ExportUnreadable if a column is missing."""
    columns = Columns.of(mapping, table.header)
    columns.check(table.path, named=named)
    key = columns.group or columns.own.get("external_id") or columns.own["name"]
    table = replace(table, columns={"external_id": key[0], "price": columns.own["price"][0]})
    return Records(
        rows=tuple(_checked_rows(table, columns)),
        place=table.place,
        shown=columns.shown,
        delimiter=table.delimiter,
        ends_with_newline=table.passed.ends_with_newline(),
        facts=facts_of(table.path.name, table.passed.encoding()),
    )


def _checked_rows(table: Table, columns: Columns) -> Iterator[Record]:
    for number, row in table.rows():
        try:
            table.check(row)
        except BrokenRow as bad:
            swallowed = table.swallowed(row)
            if columns.mapping.ids == "derived" and swallowed:
                # Which dishes are inside cannot be known, so that none may be taken away.
                raise ExportUnreadable(bad.text, place=table.place(number), fix=bad.fix) from bad
            yield columns.record(number, row, bad)
            for each in swallowed:
                # The items inside stay as they were, and so do all sizes of theirs.
                yield Record(number, {"external_id": each}, group=each, bad=bad)
        else:
            yield columns.record(number, row)


def workbook_records(
    path: Path, sheet: str | None, mapping: MenuMapping, *, named: bool
) -> Records:
    """Return the records of a workbook's sheet: of the one named, else the first that fits.

    Raises ExportUnreadable.
    """
    sheets = XlsxExport(path).read()
    if sheet is not None:
        by_name = {name.casefold(): each for name, each in sheets.items()}
        if sheet.casefold() not in by_name:
            raise ExportUnreadable(
                _('{name} has no sheet "{sheet}".').format(name=path.name, sheet=sheet),
                place=path.name,
                fix=_("Correct the option sheet; its sheets are: {sheets}.").format(
                    sheets=", ".join(sheets)
                ),
            )
        sheets = {sheet: by_name[sheet.casefold()]}
    likely: Columns | None = None
    found: list[tuple[Sheet, Columns, Sequence[tuple[int, Sequence[str]]]]] = []
    for each in sheets.values():
        for header, rows in _tables_of(each, mapping):
            columns = Columns.of(mapping, header)
            if not columns.missing():
                found.append((each, columns, rows))
                break
            if likely is None and sum(map(bool, header)) > 1:
                likely = columns
    if found:
        (each, columns, rows), *more = found
        columns.check(path, named=named)
        title = ", ".join(filter(None, (mapping.title, each.place_name)))
        others = [other.place_name for other, _columns, rows_there in more if rows_there]
        return Records(
            rows=tuple(columns.record(number, row) for number, row in rows),
            place=each.place,
            shown=columns.shown,
            facts=ExportFacts(
                read_as=title,
                warnings=tuple(_not_read(other, each.place_name) for other in others),
            ),
        )
    if likely is not None:
        likely.check(path, named=named)
    raise ExportUnreadable(
        _("{name} has no sheet with a table.").format(name=path.name),
        place=path.name,
        fix=_("Export the menu again, or correct the option menu."),
    )


def _not_read(place: str, instead: str) -> ExportWarning:
    return ExportWarning(
        place=place,
        text=_("The sheet has a menu, too, and is not read: {sheet} is.").format(sheet=instead),
        fix=_("Put all items on one sheet, or name the one to read in the option sheet."),
    )


def _tables_of(
    sheet: Sheet, mapping: MenuMapping
) -> Iterator[tuple[Sequence[str], Sequence[tuple[int, Sequence[str]]]]]:
    """Yield what may be the table of a sheet: its header, and the rows below."""
    if not mapping.has_header:
        width = max((len(row) for _number, row in sheet.rows), default=0)
        yield positions(width), sheet.rows
        return
    for at, (_number, row) in enumerate(sheet.rows[:_HEADER_WITHIN]):
        yield [cells.plain(cell) for cell in row], sheet.rows[at + 1 :]


def line_records(path: Path, encoding: str | None, patterns: LinePatterns) -> Records:
    """Return the records of lines of text: headings, and items below them."""
    name = path.name
    try:
        text, how = decode(read_shared(path), encoding)
    except UnicodeDecodeError as failure:
        raise undecodable(name, encoding, failure) from failure
    heading = re.compile(patterns.heading) if patterns.heading else None
    item = re.compile(patterns.row)
    category = ""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().lstrip("\ufeff")
        if not stripped:
            continue
        if heading is not None and (found := heading.fullmatch(stripped)):
            category = found.groupdict().get("category") or ""
        elif match := item.fullmatch(stripped):
            fields = {ours: value or "" for ours, value in match.groupdict().items()}
            rows.append(Record(number, {"category": category, **fields}))
        else:
            text_of_it = _("{line!r} is neither a heading nor an item.").format(line=stripped[:80])
            bad = BadCell("", stripped, text_of_it, _("Correct the line."))
            rows.append(Record(number, {"category": category}, bad=bad))
    return Records(
        rows=tuple(rows),
        place=lambda number: _("{file}, row {row}").format(file=name, row=number),
        ends_with_newline=text.endswith(("\n", "\r")),
        facts=facts_of(name, how),
    )


# -- the menu


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
        self,
        path: Path,
        options: FolderOptions,
        context: AdapterContext,
        read_add_ons: Callable[[], Catalogue],
    ) -> None:
        self._path = path
        self._mapping = _mapping(path, options, context.base_dir)
        self._options = options
        self._read_add_ons = read_add_ons
        self._currency = context.currency
        self._table = replace(
            options.table(path, (), ()),
            renamed={},
            has_header=self._mapping.has_header,
            is_header=lambda names: not Columns.of(self._mapping, names).missing(),
        )

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`."""
        add_ons = self._read_add_ons()
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
        builder = ItemBuilder(found.values, found.place, rules if rules.sells_less else None)
        for unit in found.units:
            fingerprint = records.new(texts_of(unit))
            for number, row, bad in unit:
                # Where the item is as it was, that a row is there twice is reported each time.
                if bad is not None:
                    builder.add_bad(number, row, bad)
                elif fingerprint is not None:
                    builder.add(number, row, fingerprint)
        read = builder.catalogue(self._options.menu_name)
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

    def _rows(self, add_ons: Catalogue) -> _Export:
        found = self._records()
        written = [record.fields.get("price", "") for record in found.rows]
        prices = PriceReader.of(written, self._currency, self._options.decimal)
        values = RowValues(prices, found.delimiter, found.shown)
        maker = UnitMaker(self._mapping, self._options, values.names, found.place)
        parts = replace(
            add_ons,
            ends_with_newline=found.ends_with_newline and add_ons.ends_with_newline,
            facts=found.facts.with_more([ExportFacts(read_as=self._mapping.title)]),
        )
        return _Export(maker.units(found.rows), values, found.place, parts, maker.left_out)

    def _records(self) -> Records:
        path, mapping, last = self._path, self._mapping, self._table.last
        named = self._options.format is not None
        if path.suffix.lower() in WORKBOOKS:
            return workbook_records(path, self._options.sheet, mapping, named=named)
        if mapping.lines is None:
            return read_table(self._table, partial(table_records, mapping=mapping, named=named))
        with reading_whole(path):
            found = line_records(path, self._options.encoding, mapping.lines)
            if not found.ends_with_newline and last.is_being_rewritten(path):
                raise still_being_written(path.name, _("ends without a line end"))
            last.done(path)
        return found

    def _document(self, menu: JsonMenu) -> _Export:
        name, mapping = self._path.name, self._mapping
        with reading_whole(self._path):
            text = json_text(self._path, self._options.encoding)
            document = Document(Node(json_or_lines(name, text)))
        values = RowValues(
            PriceReader.of((), self._currency, self._options.decimal),
            shown={ours: str(paths[0]) for ours, paths in mapping.columns.items()},
            minor_units=menu.price_unit == "minor",
            exact=True,
        )
        reader = JsonMenuReader(name, document, mapping, menu, values, self._options)
        units, parts = reader.read()
        if not units and not parts.bad_rows:
            raise ExportUnreadable(
                _("{name} has no items at {path}.").format(name=name, path=str(menu.items)),
                place=name,
                fix=_("Export the menu as {format} has it, or correct the option format.").format(
                    format=mapping.title or _("the mapping")
                ),
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
            kind = _("a JSON document") if mapping.json_menu else _("a table or a text")
            raise ValueError(
                _('format: "{format}" is for {kind}; {name} is none').format(
                    format=options.format, kind=kind, name=path.name
                )
            )
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
