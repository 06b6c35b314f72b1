"""A DBF file as a table of texts: the columns that are wanted, and nothing believed. Pure.

The header says how many bytes a record has, and each column how many of them are its own. Where
the two do not agree, no cell is where the header says it is, so the file is refused. Memory and
time are bounded by the size of the file, whatever it claims.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.export_files import still_being_written
from tillbridge.adapter.texts import _

_HEADER_BYTES = 32
_COLUMN_BYTES = 32
_HEADER_ENDS = (0x0D, 0x0A)
_RECORD = 0x20  # others are deleted
_FILE_ENDS = 0x1A
# Years of sales have fewer cells; what has more is no table of a till.
_MOST_CELLS = 2_000_000
_TRUE = frozenset(b"YyTt")
_LONG = struct.Struct("<i")
_MONEY = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: str
    begin: int  # within a record, whose first byte says whether it was deleted
    end: int


@dataclass(frozen=True, slots=True)
class Table:
    """The wanted columns of a table, cell by cell as they stand in the file."""

    name: str
    header: bytes
    _columns: Sequence[_Column]
    _records: Sequence[bytes]

    @classmethod
    def of(cls, name: str, content: bytes, wanted: re.Pattern[str]) -> "Table":
        """Find the records. Raises ExportUnreadable, `passing` for a file that is cut short."""
        if len(content) < _HEADER_BYTES:
            raise still_being_written(name, _("ends inside its header"))
        records, header_size, record_size = struct.unpack_from("<IHH", content, 4)
        if header_size <= _HEADER_BYTES or record_size <= 1:
            raise _no_dbf(name, _("its header makes no sense"))
        if len(content) < header_size + records * record_size:
            raise still_being_written(
                name, _("has fewer records than the {records} it names").format(records=records)
            )
        columns = list(_columns(content[:header_size]))
        width = columns[-1].end if columns else 1
        if width != record_size:
            detail = _("its columns are {width} bytes wide, and its records {record_size}").format(
                width=width, record_size=record_size
            )
            raise _no_dbf(name, detail)
        chosen = [column for column in columns if wanted.fullmatch(column.name)]
        # Some headers name fewer records than there are, and the others are read all the same.
        most = (len(content) - header_size) // record_size
        if most * max(len(chosen), 1) > _MOST_CELLS:
            raise _no_dbf(name, _("it has {most} records, more than any menu").format(most=most))
        return cls(name, content[:header_size], chosen, _records(content, header_size, record_size))

    def texts(self) -> list[bytes]:
        """Return the cells of all columns of text, to find out the code page by."""
        spans = [(each.begin, each.end) for each in self._columns if each.kind == "C"]
        return [record[begin:end].strip() for record in self._records for begin, end in spans]

    def rows(self, page: str) -> list[Mapping[str, str]]:
        """Return the records that are not deleted: cells that say something, by column.

        Numbers are as they stand in the file, with a point; what is true is "Y".
        """
        return [
            {
                column.name: cell
                for column in self._columns
                if (cell := _cell(column.kind, record[column.begin : column.end], page))
            }
            for record in self._records
            if record[0] == _RECORD
        ]


def _columns(header: bytes) -> Iterator[_Column]:
    begin = 1
    for at in range(_HEADER_BYTES, len(header) - _COLUMN_BYTES + 1, _COLUMN_BYTES):
        if header[at] in _HEADER_ENDS:
            return
        kind = chr(header[at + 11])
        # Texts of more than 255 bytes have the rest of their length where numbers have decimals.
        end = begin + header[at + 16] + (header[at + 17] << 8 if kind == "C" else 0)
        name = header[at : at + 11].partition(b"\0")[0].decode("latin-1").strip().lower()
        yield _Column(name, kind, begin, end)
        begin = end


def _records(content: bytes, begin: int, size: int) -> list[bytes]:
    found = []
    for at in range(begin, len(content) - size + 1, size):
        if content[at] == _FILE_ENDS:
            break
        found.append(content[at : at + size])
    return found


def _cell(kind: str, cell: bytes, page: str) -> str:
    match kind, len(cell):
        case (("N" | "F"), _):
            return cell.replace(b"\0", b"").strip().replace(b",", b".").decode("latin-1")
        case "L", _:
            return "Y" if cell and cell[0] in _TRUE else ""
        case (("I" | "+"), _LONG.size):
            return str(_LONG.unpack(cell)[0])
        case "Y", _MONEY.size:
            return str(Decimal(_MONEY.unpack(cell)[0]).scaleb(-4))
        case (("B" | "O"), _DOUBLE.size):
            return repr(_DOUBLE.unpack(cell)[0])
        case _:
            return cell.rstrip(b"\0 ").decode(page, "replace")


def _no_dbf(name: str, detail: str) -> ExportUnreadable:
    return ExportUnreadable(
        _("{name} is no DBF file: {detail}.").format(name=name, detail=detail),
        place=name,
        fix=_("Check that the option folder is Aloha's own, and that the file opens in Aloha."),
    )
