"""CSV for spreadsheets: what a customer typed must not become a formula of the one who opens it.

Cells that a spreadsheet would take for a formula get an apostrophe before them, which it shows as
nothing; a line stays a line. With a byte order mark, since Excel takes CSV for the local code page
without one.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from aiohttp import web

Cell = str | int | float | None

# ASCII, and the full-width forms that Excel in East Asian locales takes for the same.
_FORMULA = ("=", "+", "-", "@", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_BOM = "\ufeff"


def csv_bytes(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return the whole file; numbers stay numbers, text is always text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow([_cell(head) for head in heads])
    for row in rows:
        writer.writerow([_cell(cell) for cell in row])
    return (_BOM + text.getvalue()).encode("utf-8", "replace")


def csv_file(name: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> web.Response:
    """Return the answer with which a browser saves `name` (plain ASCII, with its .csv)."""
    return web.Response(
        body=csv_bytes(heads, rows),
        headers={
            "Content-Type": "text/csv; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{name}"',
        },
    )


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    # Breaks and other control characters become spaces: a line that begins anew is a new cell to
    # some, and what stands before a sign must not hide it.
    line = "".join(c if c.isprintable() or c == "\u3000" else " " for c in cell).strip()
    bare = line.lstrip("\"'` \u00a0\u3000\ufeff;,")
    return f"'{line}" if bare.startswith(_FORMULA) or line.startswith("'") else line
