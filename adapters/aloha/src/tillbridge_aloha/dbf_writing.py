"""Writing small DBF files, for the rig and for cases."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

# Name, kind (C text, N number), length, decimals.
Field = tuple[str, str, int, int]
_END = b"\x1a"


def write_dbf(
    path: Path,
    fields: Sequence[Field],
    rows: Sequence[Mapping[str, object]],
    *,
    encoding: str = "cp1251",
    mark: int = 0,
) -> None:
    """Write a dBASE III file by temporary file and rename; a row with "*" true is deleted."""
    described = b"".join(
        struct.pack("<11sc4xBB14x", name.encode("ascii"), kind.encode("ascii"), length, decimals)
        for name, kind, length, decimals in fields
    )
    size = 1 + sum(length for _name, _kind, length, _decimals in fields)
    header = struct.pack("<4BIHH", 3, 126, 1, 2, len(rows), 32 + len(described) + 1, size)
    records = b"".join(_record(fields, row, encoding) for row in rows)
    start = header + bytes(17) + bytes([mark]) + bytes(2)
    part = path.with_suffix(".part")
    part.write_bytes(start + described + b"\r" + records + _END)
    part.replace(path)


def _record(fields: Sequence[Field], row: Mapping[str, object], encoding: str) -> bytes:
    cells = [b"*" if row.get("*") else b" "]
    for name, kind, length, decimals in fields:
        value = row.get(name, "")
        if kind == "N":
            text = "" if value == "" else f"{value:.{decimals}f}" if decimals else str(value)
            cells.append(text.encode("ascii").rjust(length)[:length])
        else:
            cells.append(str(value).encode(encoding).ljust(length)[:length])
    return b"".join(cells)
