"""Tables and lines of text as records, by a mapping: CSV files, sheets of workbooks, text."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.xlsx_export import Sheet, XlsxExport
from tillbridge.model.export_facts import ExportFacts
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell, BrokenRow
from tillbridge.pos.folder.mapping import (
    ColumnName,
    LinePatterns,
    MenuMapping,
    alike,
    format_hint,
)
from tillbridge.pos.folder.table_file import Table, positions, shown_header
from tillbridge.pos.folder.units import Record

_HEADER_WITHIN = 30  # rows of a sheet: above its header may stand a title


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a mapping stand in one file; a column may have several places."""

    own: Mapping[str, tuple[int, ...]]
    group: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...]
    filters: Mapping[str, tuple[int, ...]]
    parent_key: tuple[int, ...]
    shown: Mapping[str, str]

    @classmethod
    def of(cls, mapping: MenuMapping, header: Sequence[str]) -> "Columns":
        """Find the columns in a header; those that are not there have no place."""
        at = {alike(name): place for place, name in reversed(list(enumerate(header)))}

        def places(names: Sequence[ColumnName]) -> tuple[int, ...]:
            found = [
                each - 1 if isinstance(each, int) else at.get(alike(cells.plain(each)), -1)
                for each in names
            ]
            return tuple(place for place in found if 0 <= place < len(header))

        own: dict[str, tuple[int, ...]] = {
            ours: places(names) for ours, names in mapping.columns.items()
        }
        shown: dict[str, str] = {ours: header[found[0]] for ours, found in own.items() if found}
        group = places(mapping.group_by or ())
        sizes = tuple(places(names) for names in mapping.sizes)
        if group:
            shown["group_by"] = header[group[0]]
        if named := [header[found[0]] for found in sizes if found]:
            shown["variant_name"] = ", ".join(named)
        return cls(
            own=own,
            group=group,
            sizes=sizes,
            filters={name: places((name,)) for name in mapping.where},
            parent_key=places(mapping.parent_by or ()),
            shown=shown,
        )

    def missing(self, mapping: MenuMapping) -> list[str]:
        """Return how the columns are called that there must be and are not."""
        needed = {"name", "price"}
        if mapping.ids == "column" and mapping.group_by is None:
            needed.add("external_id")
        absent = [
            " or ".join(map(str, mapping.columns.get(ours, (ours,))))
            for ours in ("external_id", "name", "price")
            if ours in needed and not self.own.get(ours)
        ]
        if mapping.group_by is not None and not self.group:
            absent.insert(0, " or ".join(map(str, mapping.group_by)))
        return absent

    def record(self, number: int, row: Sequence[str], bad: BadCell | None) -> Record:
        """Return one row as a record."""
        return Record(
            number=number,
            fields={ours: _cell(row, places) for ours, places in self.own.items()},
            group=cells.plain(_cell(row, self.group)),
            sizes=tuple(_cell(row, places) for places in self.sizes),
            filters={name: _cell(row, places) for name, places in self.filters.items()},
            parent_key=cells.plain(_cell(row, self.parent_key)),
            bad=bad,
        )


def _cell(row: Sequence[str], places: Sequence[int]) -> str:
    return next((row[at] for at in places if at < len(row) and row[at].strip()), "")


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one file, how a row is found in it, and what its columns are called."""

    rows: tuple[Record, ...]
    place: Callable[[int], str]
    shown: Mapping[str, str]
    delimiter: str = ""
    ends_with_newline: bool | None = None
    facts: ExportFacts = field(default_factory=ExportFacts)


def table_records(table: Table, mapping: MenuMapping, *, named: bool) -> Records:
    """Return the records of a CSV. Raises ExportUnreadable where a column is missing.

    `named` is whether the mapping is of a format that was chosen.
    """
    columns = Columns.of(mapping, table.header)
    _check(table.path, table.header, columns, mapping, named=named)
    key = columns.group or columns.own.get("external_id") or columns.own["name"]
    table = replace(table, columns={"external_id": key[0], "price": columns.own["price"][0]})
    return Records(
        rows=tuple(_checked_rows(table, columns, mapping)),
        place=table.place,
        shown=columns.shown,
        delimiter=table.delimiter,
        ends_with_newline=table.ends_with_newline(),
        facts=table.facts(),
    )


def _checked_rows(table: Table, columns: Columns, mapping: MenuMapping) -> Iterator[Record]:
    for number, row in table.rows():
        try:
            table.check(row)
        except BrokenRow as bad:
            swallowed = table.swallowed(row)
            if mapping.ids == "derived" and swallowed:
                # Which dishes are inside cannot be told, so that none may be taken away.
                raise ExportUnreadable(bad.text, place=table.place(number), fix=bad.fix) from bad
            yield columns.record(number, row, bad)
            for each in swallowed:
                # The items inside stay as they were, and so do all sizes of theirs.
                yield Record(number, {"external_id": each}, group=each, bad=bad)
        else:
            yield columns.record(number, row, None)


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
                f'{path.name} has no sheet "{sheet}".',
                place=path.name,
                fix=f"Correct the option sheet; its sheets are: {', '.join(sheets)}.",
            )
        sheets = {sheet: by_name[sheet.casefold()]}
    for each in sheets.values():
        for header, rows in _tables_of(each, mapping):
            columns = Columns.of(mapping, header)
            if not columns.missing(mapping):
                _check(path, header, columns, mapping, named=named)
                filled = ((at, [*row, *[""] * (len(header) - len(row))]) for at, row in rows)
                return Records(
                    rows=tuple(columns.record(at, row, None) for at, row in filled),
                    place=each.place,
                    shown=columns.shown,
                    facts=ExportFacts(
                        read_as=", ".join(filter(None, (mapping.title, each.place_name)))
                    ),
                )
    raise _no_sheet(path, sheets, mapping, named=named)


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


def _no_sheet(
    path: Path, sheets: Mapping[str, Sheet], mapping: MenuMapping, *, named: bool
) -> ExportUnreadable:
    for each in sheets.values():
        for header, _rows in _tables_of(each, mapping):
            if sum(map(bool, header)) > 1:
                return _missing(path, header, Columns.of(mapping, header), mapping, named=named)
    return ExportUnreadable(
        f"{path.name} has no sheet with a table.",
        place=path.name,
        fix="Export the menu again, or correct the option menu.",
    )


def line_records(name: str, text: str, patterns: LinePatterns) -> Records:
    """Return the records of lines of text: headings, and items below them."""
    heading = re.compile(patterns.heading) if patterns.heading else None
    item = re.compile(patterns.row)
    category = ""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip().lstrip("\ufeff")
        if not words:
            continue
        if heading is not None and (found := heading.fullmatch(words)):
            category = found.groupdict().get("category") or ""
            continue
        match = item.fullmatch(words)
        fields = {} if match is None else {k: v or "" for k, v in match.groupdict().items()}
        bad = None
        if match is None:
            bad = BadCell(
                "", words, f"{words[:80]!r} is neither a heading nor an item.", "Correct the line."
            )
        rows.append(Record(number, {"category": category, **fields}, bad=bad))
    return Records(
        rows=tuple(rows),
        place=lambda number: f"{name}, row {number}",
        shown={},
        ends_with_newline=text.endswith(("\n", "\r")),
    )


def _check(
    path: Path, header: Sequence[str], columns: Columns, mapping: MenuMapping, *, named: bool
) -> None:
    if columns.missing(mapping):
        raise _missing(path, header, columns, mapping, named=named)
    if mapping.ids == "derived" and "external_id" in {name.casefold() for name in header}:
        raise ExportUnreadable(
            f'{path.name} has a column external_id, and ids = "derived" would give every dish '
            "another id.",
            place=f"{path.name}, row 1",
            fix="Leave out the option ids, so that the ids of the file count.",
        )


def _missing(
    path: Path, header: Sequence[str], columns: Columns, mapping: MenuMapping, *, named: bool
) -> ExportUnreadable:
    missing = columns.missing(mapping)
    if fix := format_hint(header, path):
        pass
    elif named:
        fix = f"Export the menu as {mapping.title or 'the format'} has it" + (
            f" ({mapping.export})." if mapping.export else ", or correct the mapping."
        )
    else:
        fix = "Name the columns as they are called there in the option columns."
    return ExportUnreadable(
        f"{path.name} has no column {', '.join(missing)}. Its columns are: {shown_header(header)}.",
        place=f"{path.name}, row 1",
        fix=fix,
    )
