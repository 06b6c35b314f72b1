"""Finding out the code page of a DBF file: its own mark, or a guess by its letters. Pure.

Some tills mark Cyrillic files with a page that they are not written in, so there the mark counts
only where its page makes letters of the texts.
"""

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
_MOST = 0.95
_CYRILLIC = ("cp1251", "cp866")
_FEW = 0.1
_ASCII = bytes(range(0x80))


def code_page(header: bytes, texts: Iterable[bytes]) -> str:
    """Return the code page that a file says it has; else the one its texts speak for."""
    text = b" ".join(texts)
    marked = _MARKS.get(header[_MARK_AT] if len(header) > _MARK_AT else 0)
    guessed = guess(text)
    if marked is None or (
        guessed in _CYRILLIC and _letters_in(text, marked) < _MOST * _letters_in(text, guessed)
    ):
        return guessed
    return marked


def fits(text: bytes, page: str) -> bool:
    """Return whether a code page can be meant: nearly all that is not ASCII has a character."""
    return text.decode(page, "replace").count("\ufffd") <= _FEW * _high_in(text)


def guess(text: bytes) -> str:
    """Return the likeliest code page of these bytes.

    Most letters of Cyrillic words lie above ASCII, few of Western ones do. Of two pages for a
    script, the right one makes letters of them, the wrong one lines and boxes.
    """
    high = _high_in(text)
    if not high:
        return "cp1252"
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    letters = high + sum(chr(byte).isalpha() for byte in text if byte <= 0x7F)
    pages = _CYRILLIC if high > _MOSTLY * letters else ("cp1252", "cp850")
    return max(pages, key=lambda page: _letters_in(text, page))


def _letters_in(text: bytes, page: str) -> int:
    return sum(letter.isalpha() for letter in text.decode(page, "replace") if letter > "\x7f")


def _high_in(text: bytes) -> int:
    return len(text.translate(None, _ASCII))
