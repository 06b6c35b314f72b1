"""Paper of an emulated printer: what stands on it as text, and as a picture of grey dots."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from tillbridge_printer.raster import glyph_of

_WHITE = 255
CELL_WIDTH, CELL_HEIGHT = 12, 24


@dataclass(frozen=True, slots=True)
class Look:
    """How letters look: `wide` and `tall` are factors."""

    align: int = 0  # 0 left, 1 centre, 2 right
    bold: bool = False
    invert: bool = False
    wide: int = 1
    tall: int = 1


@dataclass(frozen=True, slots=True)
class Printed:
    """A line that came out; a picture has no text."""

    text: str
    look: Look = Look()
    picture: bool = False


@dataclass(slots=True)
class Sheet:
    """One piece of paper between two cuts."""

    dots: int
    lines: list[Printed] = field(default_factory=list)
    rows: list[bytearray] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return what can be read, line by line."""
        return "\n".join(line.text for line in self.lines)

    def print_text(self, text: str, look: Look) -> None:
        """Print a line of letters."""
        self.lines.append(Printed(text, look))
        height = CELL_HEIGHT * look.tall
        rows = [bytearray([_WHITE]) * self.dots for _row in range(height)]
        width = CELL_WIDTH * look.wide * len(text)
        left = {0: 0, 1: max(0, self.dots - width) // 2, 2: max(0, self.dots - width)}[look.align]
        for number, letter in enumerate(text):
            _draw(rows, letter, left + number * CELL_WIDTH * look.wide, look)
        self.rows += rows
        self.feed_dots(6)

    def print_picture(self, width: int, data: bytes, look: Look) -> None:
        """Print rows of so many bytes each."""
        self.lines.append(Printed("", look, picture=True))
        left = {0: 0, 1: max(0, self.dots - width * 8) // 2, 2: max(0, self.dots - width * 8)}
        for start in range(0, len(data), width):
            row = bytearray([_WHITE]) * self.dots
            for at in range(width * 8):
                x = left[look.align] + at
                if x < self.dots and data[start + at // 8] >> (7 - at % 8) & 1:
                    row[x] = 0
            self.rows.append(row)

    def feed_dots(self, count: int) -> None:
        """Feed white paper."""
        self.rows += [bytearray([_WHITE]) * self.dots for _row in range(count)]

    def png(self, margin: int = 24) -> bytes:
        """Return the paper as a picture."""
        width = self.dots + 2 * margin
        white = bytes([_WHITE]) * width
        side = bytes([_WHITE]) * margin
        rows = [white] * margin + [side + bytes(row) + side for row in self.rows] + [white] * margin
        raw = b"".join(b"\0" + row for row in rows)
        head = width.to_bytes(4, "big") + len(rows).to_bytes(4, "big") + b"\x08\0\0\0\0"
        chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
            for kind, data in chunks
        )


def _draw(rows: list[bytearray], letter: str, left: int, look: Look) -> None:
    for row, dots in zip(rows, _cell(letter, look), strict=True):
        row[left : left + len(dots)] = dots[: max(0, len(row) - left)]


@cache
def _cell(letter: str, look: Look) -> Sequence[bytes]:
    """Return an 8 by 16 glyph in a cell of 12 by 24, each dot a half more each way, softened."""
    glyph, width = glyph_of(letter)
    bits = [[row >> (width - 1 - x) & 1 for x in range(width)] for row in glyph]
    if look.bold:
        bits = [[at or (x > 0 and row[x - 1]) for x, at in enumerate(row)] for row in bits]
    paper = 0 if look.invert else _WHITE
    return [
        bytes(
            abs(paper - _ink(bits, x / look.wide, y / look.tall))
            for x in range(CELL_WIDTH * look.wide)
        )
        for y in range(CELL_HEIGHT * look.tall)
    ]


def _ink(bits: list[list[int]], x: float, y: float) -> int:
    """Return how black a dot of the cell is, by the four points around its middle."""
    total = 0
    for dx in (0.25, 0.75):
        for dy in (0.25, 0.75):
            row = bits[min(15, int((y + dy) / 1.5))]
            total += row[min(len(row) - 1, int((x + dx) / 1.5))]
    return total * _WHITE // 4
