"""Reading a CSV export whole, for adapters: nothing of a file that is half written is believed."""

import codecs
import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from tillbridge.adapter.export_files import LastRead, reading_whole, still_being_written
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.adapter.sharing import read_shared

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_HEADER_CHARACTERS = 1 << 16


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A table as it was exported: `rows` are (number as a spreadsheet counts, fields).

    `ends_with_newline` belongs into the `Catalogue` that is made of it.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, list[str]], ...]
    ends_with_newline: bool | None = None

    def place(self, number: int) -> str:
        """Return how a person finds that row."""
        return f"{self.name}, row {number}"


@dataclass(frozen=True, slots=True)
class CsvExport:
    """A CSV file with a header row. Without `encoding` it is UTF-8, UTF-16 by its mark, or cp1252.

    `header_row` is the number of the row with the column names; what stands above is left out, and
    so are blank rows. Without `delimiter` it is a comma, semicolon or tab: what the first row has
    most of, since spreadsheets of half the world save semicolons.
    """

    path: Path
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int = 1
    _last: LastRead = field(default_factory=LastRead, compare=False, repr=False)

    def read(self) -> CsvTable:
        """Return the table; blank rows are left out. Raises ExportUnreadable."""
        with reading_whole(self.path):
            text = self._text(read_shared(self.path))
            table = self._table(text)
            if not table.ends_with_newline and self._last.is_being_rewritten(self.path):
                raise still_being_written(self.path.name, "ends without a line end")
            self._last.done(self.path)
        return table

    def _text(self, data: bytes) -> str:
        named = self.encoding or next(
            (encoding for mark, encoding in _MARKS if data.startswith(mark)), ""
        )
        try:
            return data.decode(named or "utf-8")
        except UnicodeDecodeError as failure:
            if failure.reason in {"unexpected end of data", "truncated data"}:
                raise still_being_written(self.path.name, "ends inside a character") from failure
            if named:
                raise ExportUnreadable(
                    f"{self.path.name} is not written in {named}.",
                    place=self.path.name,
                    fix="Correct the option encoding, or leave it out.",
                ) from failure
        return data.decode("cp1252", "replace")

    def _table(self, text: str) -> CsvTable:
        numbered = [
            row
            for row in enumerate(self._rows(text), 1)
            # Few begin with a blank field, and to look at all of them takes its time.
            if row[1] and (row[1][0].strip() or any(map(str.strip, row[1])))
        ]
        above = next(
            (
                place
                for place, (number, fields) in enumerate(numbered)
                if number >= self.header_row and not _is_hint(fields)
            ),
            None,
        )
        if above is None:
            raise still_being_written(self.path.name, "has no header")
        header = tuple(name.strip() for name in numbered[above][1])
        found = tuple(numbered[above + 1 :])
        ended = text.endswith(("\n", "\r"))
        if found and len(found[-1][1]) < len(header) and not ended:
            raise still_being_written(self.path.name, f"ends in the middle of row {found[-1][0]}")
        return CsvTable(self.path.name, header, found, ended)

    def _rows(self, text: str) -> list[list[str]]:
        delimiter = self.delimiter or _likely_delimiter(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            return list(reader)
        except csv.Error as failure:
            if "unexpected end of data" in str(failure):
                raise still_being_written(self.path.name, "ends inside a quotation") from failure
            raise ExportUnreadable(
                f"{self.path.name} is not a table from line {reader.line_num} on: {failure}.",
                place=f"{self.path.name}, line {reader.line_num}",
                fix="Look for a quotation mark that is never closed, at or above that line.",
            ) from failure


def _is_hint(fields: list[str]) -> bool:
    """Return whether the row only tells Excel the delimiter (`sep=;`), which parts it in two."""
    return fields[0].casefold().startswith("sep=") and not "".join(fields[1:])


def _likely_delimiter(text: str) -> str:
    first = next((line for line in text[:_HEADER_CHARACTERS].splitlines() if line.strip()), "")
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(",;\t", key=unquoted.count)
