"""Reading a CSV export whole, for adapters: nothing of a file that is half written is believed."""

import contextlib
import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from tillbridge.adapter.decoding import decode, facts_of, is_cut_short, undecodable
from tillbridge.adapter.export_files import (
    LastRead,
    is_fresh,
    reading_whole,
    still_being_written,
    unfinished,
)
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.adapter.sharing import read_shared
from tillbridge.core.i18n import _
from tillbridge.model.export_facts import ExportFacts, FileEncoding

_HEADER_CHARACTERS = 1 << 16


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A table as exported: `rows` are (number as in a spreadsheet, fields).

    Pass `ends_with_newline` and `facts` to the `Catalogue` that you build from it. `may_grow` says
    whether the file may contain only part of a header that is being written now.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, list[str]], ...]
    ends_with_newline: bool | None = None
    may_grow: bool = False
    delimiter: str = ","
    facts: ExportFacts = field(default_factory=ExportFacts)

    def place(self, number: int) -> str:
        """Return the place of that row, for people."""
        return _("{file}, row {row}").format(file=self.name, row=number)


@dataclass(frozen=True, slots=True)
class CsvExport:
    """A CSV file with a header row. Without `encoding`, it is detected, as in `decoding`.

    `header_row` is the number of the row with the column names; rows above it and blank rows are
    left out. Without `delimiter`, it is a comma, semicolon or tab, whichever the first row has most
    of, since many spreadsheets save semicolons.
    """

    path: Path
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int = 1
    _last: LastRead = field(default_factory=LastRead, compare=False, repr=False)

    def read(self) -> CsvTable:
        """Return the table; blank rows are left out. Raises ExportUnreadable."""
        with reading_whole(self.path):
            text, encoding = self._decoded()
            table = self._table(text, encoding)
            if not table.ends_with_newline and self._last.is_being_rewritten(self.path):
                raise still_being_written(self.path.name, _("ends without a line end"))
            self._last.done(self.path)
        return table

    def read_text(self) -> str:
        """Return the file's text unchanged. Raises ExportUnreadable."""
        with reading_whole(self.path):
            return self._decoded()[0]

    def _decoded(self) -> tuple[str, FileEncoding]:
        name = self.path.name
        try:
            return decode(read_shared(self.path), self.encoding)
        except UnicodeDecodeError as failure:
            if is_cut_short(failure):
                raise unfinished(
                    self.path,
                    _("ends inside a character"),
                    place=_("{file}, byte {byte}").format(file=name, byte=failure.start),
                    fix=_("Export again; the last character is cut in two."),
                ) from failure
            if self.encoding is None:
                raise undecodable(name, None, failure) from failure
            raise ExportUnreadable(
                _("{name} is not written in {encoding}: byte {byte} does not fit.").format(
                    name=name, encoding=self.encoding, byte=failure.start
                ),
                place=_("{file}, byte {byte}").format(file=name, byte=failure.start),
                fix=_("Correct the option encoding, or leave it out."),
            ) from failure

    def _table(self, text: str, encoding: FileEncoding) -> CsvTable:
        delimiter = self.delimiter or _likely_delimiter(text)
        rows = self._rows(text, delimiter)
        numbered = list(enumerate(rows, 1))
        first_cells = [row[0] if row else "" for row in rows]
        if "" in first_cells or any(map(str.isspace, first_cells)):  # as in blank rows
            numbered = [row for row in numbered if any(map(str.strip, row[1]))]
        above = next(
            (
                place
                for place, (number, fields) in enumerate(numbered)
                if number >= self.header_row and not _is_hint(fields)
            ),
            None,
        )
        if above is None:
            raise still_being_written(self.path.name, _("has no header"))
        header = tuple(name.strip() for name in numbered[above][1])
        found = tuple(numbered[above + 1 :])
        ends_with_newline = text.endswith(("\n", "\r"))
        if found and len(found[-1][1]) < len(header) and not ends_with_newline:
            last = found[-1][0]
            raise unfinished(
                self.path,
                _("ends in the middle of row {row}").format(row=last),
                place=_("{file}, row {row}").format(file=self.path.name, row=last),
                fix=_("Export again; the rest of the file is missing."),
            )
        return CsvTable(
            self.path.name,
            header,
            found,
            ends_with_newline,
            may_grow=not found and not ends_with_newline and is_fresh(self.path),
            delimiter=delimiter,
            facts=facts_of(self.path.name, encoding),
        )

    def _rows(self, text: str, delimiter: str) -> list[list[str]]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            return list(reader)
        except csv.Error as failure:
            name, begins = self.path.name, _last_row(text, delimiter)
            if "unexpected end of data" in str(failure):
                raise unfinished(
                    self.path,
                    _("ends inside a quotation, which begins in line {line}").format(line=begins),
                    place=_("{file}, line {line}").format(file=name, line=begins),
                    fix=_("Look for a quotation mark in line {line} that is never closed.").format(
                        line=begins
                    ),
                ) from failure
            raise ExportUnreadable(
                _("{name} is not a table from line {line} on: {why}.").format(
                    name=name, line=reader.line_num, why=str(failure)
                ),
                place=_("{file}, line {line}").format(file=name, line=reader.line_num),
                fix=_("Look for a quotation mark that is never closed, at or above that line."),
            ) from failure


def _last_row(text: str, delimiter: str) -> int:
    """Return the line in which the row begins that cannot be read."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins = 1
    with contextlib.suppress(csv.Error):
        for _row in reader:
            begins = reader.line_num + 1
    return begins


def _is_hint(fields: list[str]) -> bool:
    """Return whether the row only names the delimiter for Excel (`sep=;`), which splits it."""
    return fields[0].casefold().startswith("sep=") and not "".join(fields[1:])


def _likely_delimiter(text: str) -> str:
    first = next((line for line in text[:_HEADER_CHARACTERS].splitlines() if line.strip()), "")
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(",;\t", key=unquoted.count)
