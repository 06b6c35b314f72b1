"""Parsing a workbook: what the child process of `XlsxExport` runs. Pure.

calamine makes a grid of all that lies between the first cell and the last, and aborts where memory
does not suffice. It does not check what an archive says about its parts either: a flipped bit would
become another name. So the parts are checked first, and all of it happens under limits.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import python_calamine

from tillbridge.parsing import N_, Unreadable

Row = tuple[int, list[str]]

# A menu is a few megabytes at most. What unpacks to more is no menu, or means harm.
_MOST_BYTES = 256 << 20
_CHUNK_BYTES = 1 << 16
_ARCHIVE = b"PK"
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BEGINNING = 4096
_SAVE_AS = N_("Export it again as an Excel workbook (.xlsx).")
_EXPORT_AGAIN = N_("Open it in a spreadsheet program; if that works, export it again.")


def parse_sheets(contents: Mapping[str, bytes]) -> list[tuple[str, list[Row]]]:
    """Return the sheets of one workbook with their rows that are not blank.

    A row is its number as a spreadsheet counts, and its cells as text. Raises Unreadable.
    """
    ((name, content),) = contents.items()
    if not content.startswith(_ARCHIVE):
        raise _other_kind(name, content)
    _check_archive(name, content)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = [(each, _rows(_grid(book.get_sheet_by_name(each)))) for each in book.sheet_names]
    except (python_calamine.CalamineError, ValueError) as failure:
        raise _no_workbook(name, str(failure)) from failure
    if not sheets:
        raise _no_workbook(name, N_("it has no sheet"))
    return sheets


def _grid(sheet: python_calamine.CalamineSheet) -> list[list[Any]]:
    """Return the cells; one that is merged over several rows stands in each that says more."""
    grid = sheet.to_python(skip_empty_area=False)
    for (top, left), (bottom, _right) in sheet.merged_cell_ranges or ():
        for row in grid[top + 1 : bottom + 1]:
            if left < len(row) and row[left] == "" and any(cell != "" for cell in row):
                row[left] = grid[top][left]
    return grid


def _check_archive(name: str, content: bytes) -> None:
    """Refuse what has no end yet, what is damaged, and what is far larger than it looks."""
    file = io.BytesIO(content)
    if not zipfile.is_zipfile(file):
        # The directory of an archive is its last part.
        raise Unreadable.still_being_written(name, N_("is no complete workbook"))
    left = _MOST_BYTES
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as part:  # compares its checksum at its end
                    while chunk := part.read(_CHUNK_BYTES):
                        left -= len(chunk)
                        if left < 0:
                            raise _too_large(name)
    except (RuntimeError, NotImplementedError) as failure:  # of a password, of a packer
        raise _no_workbook(name, str(failure)) from failure
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as failure:
        raise Unreadable(
            N_("{name} is damaged: {why}."),
            {"name": name, "why": str(failure)},
            place=name,
            fix=N_("Export it again. If it came over a network or a USB stick, copy it once more."),
        ) from failure


def _too_large(name: str) -> Unreadable:
    return Unreadable(
        N_("{name} unpacks to more than {size} MB; no menu is that large."),
        {"name": name, "size": str(_MOST_BYTES >> 20)},
        place=name,
        fix=N_("Check where the file comes from, and export the menu again."),
    )


def _no_workbook(name: str, detail: str) -> Unreadable:
    return Unreadable(
        N_("{name} is no workbook that can be read: {why}."),
        {"name": name, "why": detail},
        place=name,
        fix=_EXPORT_AGAIN,
    )


def _other_kind(name: str, content: bytes) -> Unreadable:
    """Return what the file is instead of a workbook."""
    if content.startswith(_OLD_EXCEL):
        if _ENCRYPTED in content:
            text, fix = N_("{name} is protected by a password."), N_("Save it without a password.")
            return Unreadable(text, {"name": name}, place=name, fix=fix)
        text = N_("{name} is a workbook of Excel 97 to 2003 (.xls) under another name.")
        return Unreadable(text, {"name": name}, place=name, fix=_SAVE_AS)
    beginning = content[:_BEGINNING]
    if not beginning.startswith(_MARKS) and b"\0" in beginning:
        return _no_workbook(name, N_("it is neither an archive nor text"))
    start = beginning.lstrip(b"\xef\xbb\xbf").lstrip()[:1]
    text = (
        N_("{name} is a web page or XML under another name.")
        if start == b"<"
        else N_("{name} is text, such as CSV, under another name.")
    )
    return Unreadable(text, {"name": name}, place=name, fix=_SAVE_AS)


def _rows(rows: list[list[Any]]) -> list[Row]:
    found = []
    for number, cells in enumerate(rows, 1):
        # Most cells are text, and a call for each would cost more than all the rest.
        texts = [each.strip() if type(each) is str else cell_text(each) for each in cells]
        if any(texts):
            found.append((number, texts))
    return found


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
