"""Tickets in ESC/POS, the language of most receipt printers: values in, bytes out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tillbridge_printer.code_pages import encoded
from tillbridge_printer.paper import Align, Cut, Feed, Line, Paper, Rule, Style, fitted
from tillbridge_printer.raster import Bitmap, draw_line

INIT = b"\x1b@"
STATUS_BACK_ON = b"\x1da\x0e"  # GS a: tell of offline, errors and paper as soon as they come
STATUS_BACK_OFF = b"\x1da\0"
ASK_WHEN_DONE = b"\x1dr\x01"  # GS r: answered when all before it has been worked off
_NO_KANJI = b"\x1c."
_FEED_AND_CUT = b"\x1dVB\0"
_REAL_TIME = re.compile(rb"\x10(?=[\x04\x05\x14])")
_ALIGN = {Align.LEFT: 0, Align.CENTRE: 1, Align.RIGHT: 2}


def ask_state(kind: int) -> bytes:
    """DLE EOT: 1 the printer, 2 why it is offline, 3 errors, 4 paper; answered at once."""
    return bytes((0x10, 0x04, kind))


def ask_process_id(number: int) -> bytes:
    """GS ( H: answered with these four digits once all before it has been printed."""
    return b"\x1d(H\x06\x0000" + f"{number % 10_000:04d}".encode()


@dataclass(frozen=True, slots=True)
class Language:
    """What one printer understands: its code pages and their numbers, and its paper."""

    pages: Mapping[str, int]
    columns: int
    dots: int

    def ticket(self, paper: Paper) -> bytes:
        """Return all bytes of a ticket; nothing but commands of ours and printable letters."""
        body = b"".join(self._part(part) for part in paper)
        return INIT + (_NO_KANJI if any(each >= 0x80 for each in body) else b"") + body

    def _part(self, part: object) -> bytes:
        match part:
            case Line():
                return b"".join(self._line(part))
            case Rule():
                return _styled(Style()) + b"-" * self.columns + b"\n"
            case Feed(lines):
                return b"\x1bd" + bytes((min(lines, 255),))
            case Cut():
                return _FEED_AND_CUT
            case _:
                raise TypeError(f"{part!r} is no part of a ticket")

    def _line(self, line: Line) -> Iterator[bytes]:
        lines = [
            (each, encoded(each.text, tuple(self.pages))) for each in fitted(line, self.columns)
        ]
        if any(pieces is None for _each, pieces in lines):
            yield _styled(Style())
            for bitmap in _cropped(line, self.dots):
                yield _picture(bitmap)
            return
        for each, pieces in lines:
            yield _styled(each.style)
            for piece in pieces or ():
                yield bytes((0x1B, 0x74, self.pages[piece.page])) + piece.data
            yield b"\n"


def _styled(style: Style) -> bytes:
    size = (style.wide - 1) << 4 | (style.tall - 1)
    return bytes(
        (
            *(0x1B, 0x61, _ALIGN[style.align]),
            *(0x1B, 0x45, style.bold),
            *(0x1D, 0x42, style.invert),
            *(0x1D, 0x21, size),
        )
    )


def _cropped(line: Line, dots: int) -> Iterator[Bitmap]:
    """Draw the line, without white on the right where the printer itself aligns to the left."""
    for bitmap in draw_line(line, dots):
        yield bitmap.cropped() if line.style.align is Align.LEFT else bitmap


def _picture(bitmap: Bitmap) -> bytes:
    """GS v 0: a picture, line by line. Aligned already, so it goes out from the left."""
    width, height = bitmap.packed_width, len(bitmap.rows)
    head = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    # Printers obey real-time commands in the middle of a picture: a dot more, and it is none.
    dots = _REAL_TIME.sub(b"\x18", bitmap.packed())
    return b"\x1ba\0" + b"\x1dv0\0" + head + dots
