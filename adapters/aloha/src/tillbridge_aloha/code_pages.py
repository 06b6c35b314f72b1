"""Finding out the code page of a DBF file: its own mark, or a guess by its letters. Pure."""

from collections.abc import Iterable

# The header's language mark (byte 29), where it says something.
_MARKS = {
    0x01: "cp437",
    0x02: "cp850",
    0x03: "cp1252",
    0x26: "cp866",
    0x57: "cp1252",
    0x64: "cp852",
    0x65: "cp866",
    0xC8: "cp1250",
    0xC9: "cp1251",
}
_MARK_AT = 29
_MOSTLY = 0.4


def code_page(header: bytes, texts: Iterable[bytes]) -> str:
    """Return the code page that a file says it has; else the one its texts speak for."""
    mark = header[_MARK_AT] if len(header) > _MARK_AT else 0
    return _MARKS.get(mark) or guess(b" ".join(texts))


def guess(text: bytes) -> str:
    """Return the likeliest code page of these bytes.

    Most letters of Cyrillic words lie above ASCII, few of Western ones do. Of two pages for a
    script, the right one makes letters of them, the wrong one lines and boxes.
    """
    high = sum(byte > 0x7F for byte in text)
    if not high:
        return "cp1252"
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    letters = high + sum(chr(byte).isalpha() for byte in text if byte <= 0x7F)
    pages = ("cp1251", "cp866") if high > _MOSTLY * letters else ("cp1252", "cp850")
    return max(pages, key=lambda page: _letters_in(text, page))


def _letters_in(text: bytes, page: str) -> int:
    return sum(letter.isalpha() for letter in text.decode(page, "replace") if letter > "\x7f")
