"""How many codes fit on a sheet of paper, and how large. Pure; all lengths in millimetres."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

MARGIN = 10.0  # what printers leave white anyway
HEADING = 12.0  # the line with the zone and the store
PADDING = 4.0  # between a card's edge, where it is cut, and what is on it
CODE_SHARE = 0.68  # of a card's height; the rest is for the names
MOST_PER_PAGE = 30
_LETTER = 0.64  # how wide a bold letter is, in heights of a letter
SMALLEST_MODULE = 0.35  # finer squares are hard to scan at arm's length


class Paper(StrEnum):
    """The paper sizes."""

    A4 = "a4"
    LETTER = "letter"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return (210.0, 297.0) if self is Paper.A4 else (215.9, 279.4)


@dataclass(frozen=True, slots=True)
class Grid:
    """The cards on a page. `code` is the width of a code with its quiet zone."""

    columns: int
    rows: int
    card_width: float
    card_height: float
    code: float


def grid_for(paper: Paper, per_page: int) -> Grid:
    """Return the grid for up to `per_page` cards (1 to 30) that makes the codes largest."""
    if not 1 <= per_page <= MOST_PER_PAGE:
        msg = f"per_page is {per_page}, not from 1 to {MOST_PER_PAGE}"
        raise ValueError(msg)
    grids = [_grid(paper, columns, ceil(per_page / columns)) for columns in range(1, per_page + 1)]
    return max(grids, key=lambda grid: (round(grid.code, 3), -grid.columns * grid.rows))


def cut_marks(grid: Grid, cards: int) -> list[tuple[float, float]]:
    """Return where the corners of the first `cards` cards are, from the grid's upper left."""
    corners = set()
    for card in range(cards):
        row, column = divmod(card, grid.columns)
        corners |= {(column + across, row + down) for across in (0, 1) for down in (0, 1)}
    return [
        (round(column * grid.card_width, 3), round(row * grid.card_height, 3))
        for column, row in sorted(corners)
    ]


def name_lines(grid: Grid) -> int:
    """Return how many lines of a name there is room for."""
    return 3 if grid.card_height > 70 else 2


def name_size(name: str, grid: Grid) -> float:
    """Return the height of the letters of a name: on one line if that reads well, else on several.

    What does not fit even then is cut off with an ellipsis.
    """
    width = (grid.card_width - 2 * PADDING) / _LETTER
    largest = min((grid.card_height - 2 * PADDING) * 0.115, 16.0)
    if (on_one_line := width / max(len(name), 1)) >= largest * 0.6:
        return round(min(largest, on_one_line), 2)
    longest_word = max(map(len, name.split()), default=1)
    a_line = max(len(name) / name_lines(grid), longest_word)
    smallest = max(largest * 0.3, 2.2)
    return round(max(min(largest * 0.8, width / a_line), smallest), 2)


def _grid(paper: Paper, columns: int, rows: int) -> Grid:
    width, height = paper.size
    card_width = (width - 2 * MARGIN) / columns
    card_height = (height - 2 * MARGIN - HEADING - 1) / rows  # 1: rounding must not start a page
    code = min(card_width - 2 * PADDING, (card_height - 2 * PADDING) * CODE_SHARE)
    return Grid(columns, rows, round(card_width, 3), round(card_height, 3), round(code, 3))
