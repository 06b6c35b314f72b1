"""The item library as a table: where its header is, and what its columns mean. Pure but for files.

The workbook has an empty first row and its header in the second; the CSV begins with the header.
Columns of a location end in its name, modifier sets and taxes are columns with Y and N.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import ExportUnreadable, TaxComponent
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.xlsx_export import XlsxExport

_TOKEN = "token"  # noqa: S105 -- the name of a column
_HEADER_WITHIN = 5
_SET = re.compile(r"^modifier set - (?P<name>.+)$", re.IGNORECASE)
_TAX = re.compile(r"^tax - (?P<name>.+) \((?P<rate>[0-9.,]+)\s*%\)$", re.IGNORECASE)
_OF_LOCATION = re.compile(r"^(?:enabled|price|current quantity) (?P<location>.+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """One variation: its cells by column name, in small letters.

    `beyond` is whether something stands to the right of the last column.
    """

    place: str
    cells: Mapping[str, str]
    beyond: bool = False

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")


@dataclass(frozen=True, slots=True)
class Library:
    """The rows, the modifier sets by column, the taxes by column, and the locations."""

    name: str
    rows: tuple[Row, ...]
    modifier_sets: Mapping[str, str]
    taxes: Mapping[str, TaxComponent]
    locations: tuple[str, ...]


def read_library(path: Path) -> Library:
    """Read an item library. Raises ExportUnreadable."""
    name, table = _table(path)
    for place, (_number, cells) in enumerate(table[:_HEADER_WITHIN]):
        header = [_label(cell) for cell in cells]
        if _TOKEN in header:
            return _library(name, [cell.strip() for cell in cells], header, table[place + 1 :])
    raise ExportUnreadable(
        f"{path.name} is no item library of Square: it has no column Token.",
        place=f"{name}, row 1",
        fix="Square dashboard, Items & services, Items, Actions, Export library.",
    )


_Rows = Sequence[tuple[int, Sequence[str]]]


def _table(path: Path) -> tuple[str, _Rows]:
    if path.suffix.lower() == ".xlsx":
        sheets = XlsxExport(path).read()
        by_name = {name.casefold(): sheet for name, sheet in sheets.items()}
        sheet = by_name.get("items") or next(iter(sheets.values()))
        return sheet.place_name, sheet.rows
    table = CsvExport(path).read()
    return table.name, [(1, table.header), *table.rows]


def _label(cell: str) -> str:
    """Return a column's name: without the mark of what cannot be edited, in small letters."""
    return " ".join(cell.replace("(locked)", "").split()).casefold()


def _library(name: str, shown: Sequence[str], header: Sequence[str], rows: _Rows) -> Library:
    sets, taxes, locations = {}, {}, {}
    for label, words in zip(header, (" ".join(cell.split()) for cell in shown), strict=True):
        if found := _SET.match(words):
            sets[label] = found["name"]
        elif found := _TAX.match(words):
            taxes[label] = TaxComponent(found["name"], found["rate"].replace(",", "."))
        elif found := _OF_LOCATION.match(words):
            locations[found["location"].casefold()] = found["location"]
    return Library(
        name=name,
        rows=tuple(
            Row(
                f"{name}, row {number}",
                dict(zip(header, map(str.strip, cells), strict=False)),
                beyond=len(cells) > len(header) and any(map(str.strip, cells[len(header) :])),
            )
            for number, cells in rows
        ),
        modifier_sets=sets,
        taxes=taxes,
        locations=tuple(locations.values()),
    )
