"""Draws text as dots, for what a printer has no letters for, with the bitmaps the package ships.

Sixteen rows of a glyph become 32 dots, four millimetres on paper: the size kitchens read East
Asian scripts at. The bitmaps (half a megabyte) are read when the first such line is printed.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import arabic_reshaper
from bidi.algorithm import get_display  # the one in `bidi` does not turn brackets round

from tillbridge_printer.paper import Align, Cut, Feed, Line, Paper, Rule, fitted

SCALE = 2
_ROWS = 16
_HALF = 8 * SCALE  # dots of a column
_FEED_ROWS = 24
_RESHAPER = arabic_reshaper.ArabicReshaper({"delete_harakat": False})
_MARKS = re.compile("([\u0591-\u05bd\u05bf\u05c1-\u05c7\u064b-\u065f\u0670]+)(.)")


@dataclass(frozen=True, slots=True)
class Bitmap:
    """Black dots: each row a number of `width` bits, the leftmost dot the highest."""

    width: int
    rows: tuple[int, ...]

    @property
    def packed_width(self) -> int:
        """How many bytes a row takes."""
        return (self.width + 7) // 8

    def packed(self) -> bytes:
        """Return the rows as bytes, filled up with white on the right."""
        size = self.packed_width
        shift = size * 8 - self.width
        return b"".join((row << shift).to_bytes(size, "big") for row in self.rows)

    def cropped(self) -> "Bitmap":
        """Return it without the white on its right, which would only be sent for nothing."""
        ink = 0
        for row in self.rows:
            ink |= row
        white = (ink & -ink).bit_length() - 1 if ink else self.width - 1
        white -= white % 8
        return Bitmap(self.width - white, tuple(row >> white for row in self.rows))


def columns_of(dots: int) -> int:
    """Return how many drawn columns fit on paper that is so many dots wide."""
    return dots // _HALF


def draw_line(line: Line, dots: int) -> Iterable[Bitmap]:
    """Yield the line as bitmaps as wide as the paper, one for each line it takes."""
    for each in fitted(line, columns_of(dots)):
        yield _drawn_line(each, dots)


def draw_paper(paper: Paper, dots: int) -> Bitmap:
    """Return a whole ticket as one bitmap, for printers that take pictures; cuts are left out."""
    rows: list[int] = []
    for part in paper:
        match part:
            case Line():
                for bitmap in draw_line(part, dots):
                    rows += bitmap.rows
            case Rule():
                rows += [0] * 8 + [(1 << dots) - 1] * 2 + [0] * 8
            case Feed(lines):
                rows += [0] * _FEED_ROWS * lines
            case Cut():
                rows += [0] * _FEED_ROWS
    return Bitmap(dots, tuple(rows))


def png(bitmap: Bitmap) -> bytes:
    """Return the bitmap as a PNG of one bit a dot."""
    size = bitmap.packed_width
    mask = (1 << (size * 8)) - 1
    shift = size * 8 - bitmap.width
    raw = b"".join(b"\0" + ((~(row << shift)) & mask).to_bytes(size, "big") for row in bitmap.rows)
    head = bitmap.width.to_bytes(4, "big") + len(bitmap.rows).to_bytes(4, "big")
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", head + b"\x01\0\0\0\0"),
            _chunk(b"IDAT", zlib.compress(raw, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + kind + data + check


def _drawn_line(line: Line, dots: int) -> Bitmap:
    rows, width = _text_rows(drawn(line.text))
    wide, tall = line.style.wide, line.style.tall
    wider = [_stretched(row, width, SCALE * wide) for row in rows]
    if line.style.bold:
        wider = [row | (row >> 1) for row in wider]
    width *= SCALE * wide
    if width > dots:
        wider, width = [row >> (width - dots) for row in wider], dots
    free = dots - width
    left = {Align.LEFT: 0, Align.CENTRE: free // 2, Align.RIGHT: free}[line.style.align]
    if line.style.invert:
        wider = [row ^ ((1 << width) - 1) for row in wider]
    placed = [row << (free - left) for row in wider for _dot in range(SCALE * tall)]
    return Bitmap(dots, tuple(placed))


def drawn(text: str) -> str:
    """Return the text as a printer draws it, from left to right, with Arabic letters joined."""
    if text.isascii():
        return text
    turned = str(get_display(_RESHAPER.reshape(text)))
    # A mark is drawn over the letter before it, and turned round it stands before its letter.
    return _MARKS.sub(r"\2\1", turned)


def _text_rows(text: str) -> tuple[Sequence[int], int]:
    """Return sixteen rows of the text, and their width in dots of the glyphs."""
    rows = [0] * _ROWS
    width = 0
    for character in text:
        glyph, dots = glyph_of(character)
        if unicodedata.combining(character) and width:
            rows = [row | mark >> max(0, dots - 8) for row, mark in zip(rows, glyph, strict=True)]
            continue
        rows = [(row << dots) | bits for row, bits in zip(rows, glyph, strict=True)]
        width += dots
    return rows, max(width, 1)


def _stretched(row: int, width: int, factor: int) -> int:
    if factor == 1:
        return row
    bits = f"{row:0{width}b}"
    return int("".join(bit * factor for bit in bits), 2)


def glyph_of(character: str) -> tuple[tuple[int, ...], int]:
    """Return a character's sixteen rows and its width (8 or 16); a box for what there is none."""
    widths, offsets, dots = _font()
    code = ord(character)
    if code > 0xFFFF or not widths[code]:
        code = 0xFFFD
    size = widths[code]
    start = offsets[code >> 8] + _ROWS * sum(widths[code & ~0xFF : code])
    raw = dots[start : start + _ROWS * size]
    rows = tuple(int.from_bytes(raw[at : at + size], "big") for at in range(0, len(raw), size))
    return rows, 8 * size


@cache
def _font() -> tuple[bytes, Sequence[int], bytes]:
    import lzma  # noqa: PLC0415 -- most tickets need no picture of a letter

    packed = files("tillbridge_printer").joinpath("glyphs", "unifont.xz").read_bytes()
    data = lzma.decompress(packed)
    widths, dots = data[:0x10000], data[0x10000:]
    offsets = [0]
    for block in range(0, 0x10000, 256):
        offsets.append(offsets[-1] + _ROWS * sum(widths[block : block + 256]))
    return widths, offsets, dots
