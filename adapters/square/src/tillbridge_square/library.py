"""The item library as a table: where its header is, and what its columns mean. Pure but for files.

The workbook has an empty first row and its header in the second; the CSV begins with the header.
Columns of a location end in its name, modifier sets and taxes are columns with Y and N.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from tillbridge.adapter import ExportUnreadable, TaxComponent
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.export_files import still_being_written
from tillbridge.adapter.texts import _
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge.model.export_facts import ExportFacts

_TOKEN = "token"  # noqa: S105 -- the name of a column
_HEADER_WITHIN = 5
_SET = re.compile(r"^modifier set - (?P<name>.+)$", re.IGNORECASE)
_TAX = re.compile(r"^tax - (?P<name>.+) \((?P<rate>[0-9.,]+)\s*%\)$", re.IGNORECASE)
_OF_LOCATION = re.compile(r"^(?:enabled|price|current quantity) (?P<location>.+)$", re.IGNORECASE)


class Row(dict[str, str]):
    """One variation: its cells by column name, in small letters; "" for a column there is not.

    `beyond` is whether something stands to the right of the last column.
    """

    __slots__ = ("beyond", "number", "place")

    number: int
    place: str
    beyond: bool

    def __missing__(self, column: str) -> str:
        return ""


Cells = tuple[int, Sequence[str]]
"""A row as it stands: its number as a spreadsheet counts, and a cell for each column.

There are more where something stands to the right of the last column.
"""


@dataclass(frozen=True, slots=True)
class Library:
    """The rows, the columns and where they are, sets and taxes by column, and the locations.

    `shown` gives each column as the file calls it.
    """

    name: str
    header: Sequence[str]
    shown: Mapping[str, str]
    rows: Sequence[Cells]
    columns: Mapping[str, int]
    modifier_sets: Mapping[str, str]
    taxes: Mapping[str, TaxComponent]
    locations: tuple[str, ...]
    ends_with_newline: bool | None = None
    facts: ExportFacts = field(default_factory=ExportFacts)

    def cell(self, cells: Cells, column: str) -> str:
        """Return what stands in a column of a row, "" where there is no such column."""
        at = self.columns.get(column)
        return "" if at is None else cells[1][at].strip()

    def row(self, cells: Cells) -> Row:
        """Return a row with its cells by their columns."""
        number, written = cells
        row = Row(zip(self.header, map(str.strip, written), strict=False))
        row.number = number
        row.place = _("{file}, row {row}").format(file=self.name, row=number)
        row.beyond = len(written) > len(self.header)
        return row


def read_library(export: CsvExport | XlsxExport) -> Library:
    """Read an item library. Raises ExportUnreadable."""
    if isinstance(export, XlsxExport):
        sheets = export.read()
        by_name = {name.casefold(): sheet for name, sheet in sheets.items()}
        sheet = by_name.get("items") or next(iter(sheets.values()))
        library = _found(sheet.place_name, sheet.rows)
    else:
        table = export.read()
        library = _found(table.name, [(1, table.header), *table.rows])
        if library is None and table.may_grow:
            raise still_being_written(table.name, _("ends inside its header"))
        if library is not None:
            library = replace(library, ends_with_newline=table.ends_with_newline, facts=table.facts)
    if library is None:
        name = export.path.name
        raise ExportUnreadable(
            _("{name} is no item library of Square: it has no column Token.").format(name=name),
            place=_("{file}, row {row}").format(file=name, row=1),
            fix=_("Square dashboard, Items & services, Items, Actions, Export library."),
        )
    return library


def _found(name: str, table: Sequence[Cells]) -> Library | None:
    """Return the library of a table, None for one without its header."""
    for place, (_number, cells) in enumerate(table[:_HEADER_WITHIN]):
        header = [_label(cell) for cell in cells]
        if _TOKEN in header:
            return _library(name, [cell.strip() for cell in cells], header, table[place + 1 :])
    return None


def _label(cell: str) -> str:
    """Return a column's name: without the mark of what cannot be edited, in small letters."""
    return " ".join(cell.replace("(locked)", "").split()).casefold()


def _library(
    name: str, shown: Sequence[str], header: Sequence[str], rows: Sequence[Cells]
) -> Library:
    sets, taxes, locations = {}, {}, {}
    for label, text in zip(header, (" ".join(cell.split()) for cell in shown), strict=True):
        if found := _SET.match(text):
            sets[label] = found["name"]
        elif found := _TAX.match(text):
            taxes[label] = TaxComponent(found["name"], found["rate"].replace(",", "."))
        elif found := _OF_LOCATION.match(text):
            locations[found["location"].casefold()] = found["location"]
    return Library(
        name=name,
        header=header,
        shown=dict(zip(header, shown, strict=True)),
        rows=_as_wide(rows, len(header)),
        columns={label: at for at, label in enumerate(header)},
        modifier_sets=sets,
        taxes=taxes,
        locations=tuple(locations.values()),
    )


def _as_wide(rows: Sequence[Cells], width: int) -> Sequence[Cells]:
    """Return rows with a cell for each column: a till may leave out blank ones, or add some."""
    if {width}.issuperset(map(len, map(itemgetter(1), rows))):  # nearly always
        return rows
    return [
        (number, cells if any(map(str.strip, cells[width:])) else _cut_or_filled(cells, width))
        for number, cells in rows
    ]


def _cut_or_filled(cells: Sequence[str], width: int) -> Sequence[str]:
    return [*cells[:width], *[""] * (width - len(cells))]
