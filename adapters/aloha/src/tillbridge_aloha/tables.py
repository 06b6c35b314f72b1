"""Reading a DBF file whole, or not at all: Aloha rewrites its files at the end of the day."""

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dbfread import DBF, FieldParser

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.export_files import reading_whole, still_being_written
from tillbridge.adapter.sharing import open_shared
from tillbridge_aloha.code_pages import code_page, fits

Row = Mapping[str, Any]
_HEADER_BYTES = 32
_FIELD_BYTES = 32
_FIELDS_END = 0x0D


class _Exact(FieldParser):  # type: ignore[misc]  # dbfread has no types
    """Numbers as decimals, none as None; what is no number is NaN, and the rest is read."""

    def parseN(self, field: object, data: bytes) -> Decimal | None:  # noqa: N802 -- dbfread's name and arguments
        text = data.replace(b"\0", b"").strip().replace(b",", b".")
        try:
            return Decimal(text.decode("ascii")) if text else None
        except (InvalidOperation, UnicodeDecodeError):
            return Decimal("NaN")

    parseF = parseN  # noqa: N815 -- dbfread's name


def find_table(folder: Path, name: str) -> Path | None:
    """Return the file of that name, whatever the case of its letters; None where it is missing."""
    wanted = f"{name}.dbf".casefold()
    try:
        return next((path for path in folder.iterdir() if path.name.casefold() == wanted), None)
    except OSError as failure:
        raise ExportUnreadable(
            f"{folder} is not there.",
            place=str(folder),
            fix="Correct the option folder, or connect the share again.",
            passing=True,
        ) from failure


def read_table(path: Path, encoding: str | None) -> Sequence[Row]:
    """Return the rows that are not deleted. Raises ExportUnreadable."""
    with reading_whole(path):
        header = _checked_header(path)
        texts = _texts(path, header)
        page = encoding or code_page(header, texts)
        if not fits(b" ".join(texts), page):
            raise ExportUnreadable(
                f"{path.name} is not written in {page}.",
                place=path.name,
                fix="Correct the option encoding, or leave it out.",
            )
        try:
            return list(
                DBF(
                    str(path),
                    encoding=page,
                    char_decode_errors="replace",
                    parserclass=_Exact,
                    ignore_missing_memofile=True,
                    lowernames=True,
                )
            )
        except (ValueError, struct.error) as failure:
            raise _no_dbf(path, str(failure)) from failure


def _checked_header(path: Path) -> bytes:
    """Return the header of a file that has as many records as it says."""
    with open_shared(path) as file:
        start = file.read(_HEADER_BYTES)
        if len(start) < _HEADER_BYTES:
            raise still_being_written(path.name, "ends inside its header")
        records, header_size, record_size = struct.unpack("<IHH", start[4:12])
        header = start + file.read(max(0, header_size - _HEADER_BYTES))
    if header_size < _HEADER_BYTES or not record_size:
        raise _no_dbf(path, "its header makes no sense")
    if path.stat().st_size < header_size + records * record_size:
        raise still_being_written(path.name, f"has fewer records than the {records} it names")
    return header


def _texts(path: Path, header: bytes) -> list[bytes]:
    """Return the bytes of all text fields, to guess the code page by.

    Some headers name fewer records than there are, and the others are read all the same.
    """
    header_size, record_size = struct.unpack("<HH", header[8:12])
    spans = []
    at = 1
    for place in range(_HEADER_BYTES, len(header) - 1, _FIELD_BYTES):
        if header[place] == _FIELDS_END:
            break
        kind, length = header[place + 11], header[place + 16]
        if kind == ord("C"):
            spans.append((at, at + length))
        at += length
    with open_shared(path) as file:
        file.seek(header_size)
        content = file.read()
    return [
        content[start + begin : start + end].strip()
        for start in range(0, len(content) - record_size + 1, record_size)
        for begin, end in spans
    ]


def _no_dbf(path: Path, detail: str) -> ExportUnreadable:
    return ExportUnreadable(
        f"{path.name} is no DBF file: {detail}.",
        place=path.name,
        fix="Look whether folder is Aloha's own, and whether the file opens in Aloha.",
    )
