"""The workbook's sheets as records: columns by their names, rows that go on joined. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.texts import _
from tillbridge.adapter.xlsx_export import Sheet

_HEADER_ROWS = 10


@dataclass(slots=True)
class Record:
    """One thing of a sheet: its first row, and the rows below that only add to it.

    `values` are the cells of the first row by column, `more` all cells of a column from top to
    bottom, blank ones left out; None where they are those of `values`. A column that occurs several
    times has all its cells in `more`.
    """

    number: int
    values: Mapping[str, str]
    more: dict[str, list[str]] | None = None

    def __getitem__(self, column: str) -> str:
        return self.values.get(column, "")

    def all(self, column: str) -> Sequence[str]:
        """Return every cell of a column that says something."""
        if self.more is not None:
            return self.more.get(column, ())
        return (self.values[column],) if column in self.values else ()

    def equals(self, other: "Record") -> bool:
        """Return whether both say the same."""
        return self.values == other.values and self.more == other.more

    def add(self, cells: Sequence[tuple[str, str]]) -> None:
        """Add the cells of a row."""
        if self.more is None:
            self.more = {name: [cell] for name, cell in self.values.items()}
        for name, cell in cells:
            self.more.setdefault(name, []).append(cell)


def records(sheet: Sheet, *, key: Sequence[str], first: str) -> list[Record]:
    """Return the records of a sheet with a header row that has the column `first`.

    A row with a value in one of the columns `key` begins a record; others go on with the one above.
    Raises ExportUnreadable where there is no such header.
    """
    header, rows = _header(sheet, first)
    names = [name for name in header if name]
    repeated = len(set(names)) < len(names)
    found: list[Record] = []
    for number, cells in rows:
        named = [(name, cell) for name, cell in zip(header, cells, strict=False) if name and cell]
        values = dict(reversed(named)) if repeated else dict(named)
        if any(map(values.get, key)):
            found.append(Record(number, values, {} if repeated else None))
            if not repeated:
                continue
        elif not found:
            continue
        found[-1].add(named)
    return found


def cells_of(sheet: Sheet, column: str) -> Iterator[str]:
    """Yield all that stands in a column; nothing where the sheet has no such column."""
    at: int | None = None
    for place, (_number, cells) in enumerate(sheet.rows):
        if at is None and place < _HEADER_ROWS:
            at = next((i for i, cell in enumerate(cells) if cell.casefold() == column), None)
        elif at is not None and at < len(cells):
            yield cells[at]


def transposed(sheet: Sheet, label: str) -> Iterator[Mapping[str, list[str]]]:
    """Yield each column of a sheet whose first column holds the labels, from top to bottom.

    A row without a label goes on with the one above.
    """
    width = max((len(cells) for _number, cells in sheet.rows), default=0)
    labels: list[str] = []
    for _number, cells in sheet.rows:
        labels.append(cells[0].casefold() if cells and cells[0] else (labels or [label])[-1])
    for position in range(1, width):
        column: dict[str, list[str]] = {}
        for name, (_number, cells) in zip(labels, sheet.rows, strict=True):
            if position < len(cells) and cells[position]:
                column.setdefault(name, []).append(cells[position])
        if column:
            yield column


def is_transposed(sheet: Sheet) -> bool:
    """Return whether the sheet has its labels in the first column: a category a column."""
    labels = [cells[0].casefold() for _number, cells in sheet.rows[:4] if cells]
    return "category name" in labels[1:] or labels[:2] == ["category name", "items in category"]


def find_sheet(sheets: Mapping[str, Sheet], *names: str) -> Sheet | None:
    """Return the first sheet of one of these names, whatever their case."""
    by_name = {name.casefold().strip(): sheet for name, sheet in sheets.items()}
    return next((by_name[name] for name in names if name in by_name), None)


def _header(
    sheet: Sheet, first: str
) -> tuple[Sequence[str], Sequence[tuple[int, tuple[str, ...]]]]:
    for place, (_number, cells) in enumerate(sheet.rows[:_HEADER_ROWS]):
        names = [" ".join(cell.casefold().rstrip("?").split()) for cell in cells]
        if first in names:
            return names, sheet.rows[place + 1 :]
    raise ExportUnreadable(
        _('{place_name} has no column "{first}".').format(place_name=sheet.place_name, first=first),
        place=sheet.place(1),
        fix=_("Export the inventory again: Clover dashboard, Inventory, Items, Export."),
    )
