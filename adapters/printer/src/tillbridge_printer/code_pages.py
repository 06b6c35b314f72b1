"""Which of a printer's code pages has the letters of a text.

The numbers are those of `ESC t` on Epson's printers, which others follow for the first ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

# Python's name of the encoding: the printer's number of the page.
NUMBERS: Mapping[str, int] = {
    "cp437": 0,
    "cp850": 2,
    "cp860": 3,
    "cp863": 4,
    "cp865": 5,
    "cp737": 14,
    "iso8859-7": 15,
    "cp1252": 16,
    "cp866": 17,
    "cp852": 18,
    "cp858": 19,
    "cp775": 33,
    "cp855": 34,
    "cp861": 35,
    "iso8859-2": 39,
    "iso8859-15": 40,
    "cp1250": 45,
    "cp1251": 46,
    "cp1253": 47,
    "cp1254": 48,
    "cp1257": 51,
    "cp1258": 52,
}
# What almost every printer has.
COMMON = ("cp437", "cp850", "cp1252", "cp858", "cp852", "cp866")


@dataclass(frozen=True, slots=True)
class Encoded:
    """A piece of text in one code page, by its name."""

    page: str
    data: bytes


def encoded(text: str, pages: Sequence[str]) -> tuple[Encoded, ...] | None:
    """Return the text in pieces, with as few changes of the page as can be.

    None where a letter is in no page: the line is drawn instead. Pages are tried in their order.
    """
    pieces: list[Encoded] = []
    rest = text
    while rest:
        page, length = max(
            ((page, _reach(rest, page)) for page in pages), key=lambda found: found[1]
        )
        if not length:
            return None
        pieces.append(Encoded(page, rest[:length].encode(page)))
        rest = rest[length:]
    return tuple(pieces)


def _reach(text: str, page: str) -> int:
    """Return how many letters from the beginning are in the page."""
    for number, letter in enumerate(text):
        if not _has(page, letter):
            return number
    return len(text)


@lru_cache(maxsize=4096)
def _has(page: str, letter: str) -> bool:
    try:
        data = letter.encode(page)
    except UnicodeEncodeError:
        return False
    # The C1 range is controls, not letters, in the pages that leave it empty.
    return len(data) == 1 and data[0] >= 0x20 and data[0] != 0x7F
