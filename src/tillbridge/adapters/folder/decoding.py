"""Finding out how the bytes of an export stand for text.

Tills write UTF-8 with and without a byte order mark, UTF-16 (a spreadsheet's "Unicode text") and
Windows-1252. A wrong guess would put garbled names on a storefront, so the order of the questions
matters: marks first, then the zero bytes of UTF-16, then strict UTF-8, and only what is surely not
UTF-8 is Windows-1252.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter.sharing import open_shared

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_UTF8_NAMES = {"utf-8", "utf-8-sig"}


@dataclass(frozen=True, slots=True)
class Decoding:
    """An encoding, and what becomes of bytes that do not fit it (`errors` as of `open`).

    With "replace" they become U+FFFD, which makes the row they stand in a bad one.
    """

    encoding: str
    errors: str = "strict"


def guess_by_head(head: bytes) -> Decoding:
    """Return the decoding that the first bytes of a file speak for."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return Decoding(encoding)
    even, odd = head[0::2].count(0), head[1::2].count(0)
    # Latin text in UTF-16 has a zero in nearly every pair, always on the same side.
    if max(even, odd) * 4 > len(head) and min(even, odd) * 10 < max(even, odd):
        return Decoding("utf-16-le" if odd > even else "utf-16-be")
    return Decoding("utf-8")


def guess_by_whole(path: Path, failed: Decoding) -> Decoding:
    """Return how to read a file of which `failed` could not decode every byte.

    A file with more good UTF-8 letters than bad bytes is UTF-8 with some damage, never
    Windows-1252: reading it as that would garble every name that was right.
    """
    if failed.encoding not in _UTF8_NAMES:
        return Decoding(failed.encoding, "replace")
    with open_shared(path) as file:
        good, bad = _utf8_balance(iter(lambda: file.read(_CHUNK_BYTES), b""))
    if failed.encoding == "utf-8-sig" or good > bad:
        return Decoding(failed.encoding, "replace")
    return Decoding("cp1252", "replace")


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, enough to guess by."""
    with open_shared(path) as file:
        return file.read(_HEAD_BYTES)


def is_cut_short(error: UnicodeDecodeError) -> bool:
    """Return whether the file ends in the middle of a character: it is still being written."""
    return error.reason in {"unexpected end of data", "truncated data"}


def _utf8_balance(chunks: Iterable[bytes]) -> tuple[int, int]:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    good = bad = 0
    for chunk in chunks:
        text = decoder.decode(chunk)
        if text.isascii():
            continue
        escaped = sum("\udc80" <= character <= "\udcff" for character in text)
        bad += escaped
        good += sum(character > "\x7f" for character in text) - escaped
    return good, bad
