"""Reading an XLSX export whole, for adapters. The workbook is parsed in a child process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tillbridge.adapter.isolation import IsolatedReader
from tillbridge.adapter.texts import _
from tillbridge.parsing.workbook import cell_text, parse_sheets

__all__ = ["Sheet", "XlsxExport", "cell_text"]

_FIX = _(
    "Delete all rows below the table and all columns right of it, also those that look empty,"
    " and save it; or export it again."
)


def _reader() -> IsolatedReader:
    return IsolatedReader(fix=_FIX)


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet: `rows` are (number as in a spreadsheet, cells as text), without blank rows.

    Numbers are decimal text as a spreadsheet shows them (`9.99`, `16`), never binary fractions.
    """

    place_name: str
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def place(self, number: int) -> str:
        """Return the place of that row, for people."""
        return _("{file}, row {row}").format(file=self.place_name, row=number)


@dataclass(frozen=True, slots=True)
class XlsxExport:
    """A workbook exported by a till."""

    path: Path
    _reader: IsolatedReader = field(default_factory=_reader, compare=False, repr=False)

    def read(self) -> Mapping[str, Sheet]:
        """Return the sheets by name, in the workbook's order, at least one.

        An unchanged workbook is not parsed again. Raises ExportUnreadable.
        """
        sheets = self._reader.read([self.path], parse_sheets)
        return {
            name: Sheet(
                _("{file}, sheet {sheet}").format(file=self.path.name, sheet=name),
                tuple([(number, tuple(cells)) for number, cells in rows]),
            )
            for name, rows in sheets
        }
