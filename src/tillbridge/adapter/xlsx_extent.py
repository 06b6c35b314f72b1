"""How far the cells of a sheet reach: a reader makes a grid of all that lies between. Pure.

One blank in the last cell of a sheet, typed by mistake, would take more memory than there is. The
sheet's own word for it (`dimension`) is not to be trusted, so the last cell of each row is looked
at, which is the one farthest to the right.
"""

import re

MOST_CELLS = 8_000_000
_ROW_END = b"row>"
_PLACE = b' r="'
_CELL = re.compile(rb' r="([A-Z]{1,3})([0-9]{1,7})"')
_LETTERS = 26


def far_corner(sheet: bytes) -> str:
    """Return the corner cell (`XFD1048576`) of a sheet's XML with more than MOST_CELLS, else ""."""
    widest, widest_number, lowest = b"A", 1, 1
    seen = {widest}  # most rows end in the same few columns
    begin, end = 0, sheet.find(_ROW_END)
    while end >= 0:
        # Every row has its last cell behind the end of the row before.
        found = _CELL.match(sheet, max(sheet.rfind(_PLACE, begin, end), 0))
        if found is not None:
            column, row = found[1], int(found[2])
            lowest = max(lowest, row)
            if column not in seen:
                seen.add(column)
                if (number := _number(column)) > widest_number:
                    widest, widest_number = column, number
        begin, end = end, sheet.find(_ROW_END, end + len(_ROW_END))
    return f"{widest.decode()}{lowest}" if widest_number * lowest > MOST_CELLS else ""


def _number(column: bytes) -> int:
    number = 0
    for letter in column:
        number = number * _LETTERS + letter - ord("A") + 1
    return number
