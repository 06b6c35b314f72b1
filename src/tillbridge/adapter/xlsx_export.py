"""Reading an XLSX export whole, for adapters. Needs python-calamine, which they depend on."""

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from tillbridge.adapter.export_files import reading_whole, still_being_written
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.adapter.sharing import open_shared
from tillbridge.adapter.xlsx_extent import far_corner

# A menu is a few megabytes at most. What unpacks to more is no menu, or means harm.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet: `rows` are (number as a spreadsheet counts, cells as text), blank ones left out.

    Numbers are decimal text as a spreadsheet shows them (`9.99`, `16`), never binary fractions.
    """

    place_name: str
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def place(self, number: int) -> str:
        """Return how a person finds that row."""
        return f"{self.place_name}, row {number}"


@dataclass(frozen=True, slots=True)
class XlsxExport:
    """A workbook that a till exports."""

    path: Path

    def read(self) -> Mapping[str, Sheet]:
        """Return the sheets by name, in the workbook's order. Raises ExportUnreadable."""
        # Half a megabyte of native code, for adapters that read workbooks.
        import python_calamine  # noqa: PLC0415 -- see above

        with reading_whole(self.path):
            self._check_archive()
            try:
                book = python_calamine.CalamineWorkbook.from_path(str(self.path))
                return {
                    name: self._sheet(
                        name, book.get_sheet_by_name(name).to_python(skip_empty_area=False)
                    )
                    for name in book.sheet_names
                }
            except (python_calamine.CalamineError, ValueError) as failure:
                raise self._no_workbook(failure) from failure

    def _check_archive(self) -> None:
        """Refuse what has no end yet, and what is far larger than it looks."""
        try:
            with open_shared(self.path) as file, zipfile.ZipFile(file) as archive:
                self._check_sizes(archive)
        except (zipfile.BadZipFile, zlib.error) as failure:
            # The directory of an archive is its last part.
            raise still_being_written(self.path.name, "is no complete workbook") from failure
        except (RuntimeError, NotImplementedError) as failure:  # of a password, of a packer
            raise self._no_workbook(failure) from failure

    def _check_sizes(self, archive: zipfile.ZipFile) -> None:
        unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > _MOST_BYTES:
            raise ExportUnreadable(
                f"{self.path.name} unpacks to {unpacked >> 20} MB; no menu is that large.",
                place=self.path.name,
                fix="Look where the file comes from, and export the menu again.",
            )
        for entry in archive.infolist():
            if "/worksheets/" in entry.filename and (corner := far_corner(archive.read(entry))):
                raise ExportUnreadable(
                    f"{self.path.name} has a sheet that reaches to cell {corner}; no menu does.",
                    place=f"{self.path.name}, {corner}",
                    fix="Delete all rows below and columns right of the table, or export again.",
                )

    def _no_workbook(self, failure: Exception) -> ExportUnreadable:
        return ExportUnreadable(
            f"{self.path.name} is no workbook that can be read: {failure}.",
            place=self.path.name,
            fix="Open it in a spreadsheet program; if that works, export it again.",
        )

    def _sheet(self, name: str, rows: list[list[Any]]) -> Sheet:
        found = []
        for number, cells in enumerate(rows, 1):
            # Most cells are text, and a call for each would cost more than all the rest.
            texts = tuple(
                [each.strip() if type(each) is str else cell_text(each) for each in cells]
            )
            if any(texts):
                found.append((number, texts))
        return Sheet(f"{self.path.name}, sheet {name}", tuple(found))


def cell_text(value: object) -> str:
    """Return a cell as text; numbers with the fifteen digits that a spreadsheet keeps."""
    if type(value) is str:  # most cells are
        return value.strip()
    match value:
        case float():
            text = format(value, ".15g")
            return text if "e" not in text else format(value, ".10f").rstrip("0").rstrip(".")
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime() | date() | time():
            return value.isoformat()
        case str():
            return value.strip()
        case _:
            return "" if value is None else str(value)
