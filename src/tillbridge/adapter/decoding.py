"""Finding out how the bytes of an export stand for text: one rule for all adapters.

Tills write UTF-8 with and without a byte order mark, UTF-16 (a spreadsheet's "Unicode text") and
Windows-1252. A wrong guess would put garbled names on a storefront, so the order of the questions
matters: marks first, then the zero bytes of UTF-16, then strict UTF-8, and only what is surely not
UTF-8 is Windows-1252. A file with more good UTF-8 letters than bad bytes is UTF-8 with some damage:
the bad bytes become U+FFFD, which makes the row they stand in a bad one.

What was found out is a fact for the catalogue (`FileEncoding`): the bridge compares it with that of
the menu it accepted last.
"""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from tillbridge.adapter.sharing import open_shared
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_UTF8_NAMES = {"utf-8", "utf-8-sig"}
_FEW_ZEROS = 2
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_MOST_RUNS = 5000
_FEW_RUNS = 20
# What UTF-8 is mistaken for by programs that then encode it once more.
_MISTAKEN_FOR = ("cp1252", "latin-1", "mac_roman", "cp850", "cp437")


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
    # Digits, delimiters, blanks and line ends have a zero in UTF-16, always on the same side;
    # Latin letters too, those of other scripts have not. No other text holds zeros.
    zeros, strays = max(even, odd), min(even, odd)
    if zeros > _FEW_ZEROS and zeros * 20 > len(head) and strays * 10 < zeros:
        return Decoding("utf-16-le" if odd > even else "utf-16-be")
    return Decoding("utf-8")


def guess_by_whole(path: Path, failed: Decoding) -> Decoding:
    """Return how to read a file of which `failed` could not decode every byte."""
    if failed.encoding not in _UTF8_NAMES:
        return Decoding(failed.encoding, "replace")
    with open_shared(path) as file:
        return _in_doubt(iter(partial(file.read, _CHUNK_BYTES), b""), failed)


def decode(data: bytes, encoding: str | None = None) -> tuple[str, FileEncoding]:
    """Return the text of a whole file, and how it was read.

    `encoding` is what an option names; without it, it is found out. Raises UnicodeDecodeError for
    a file that ends inside a character (`is_cut_short`) or is not written in the encoding named.
    """
    decoding = Decoding(encoding) if encoding else guess_by_head(data[:_HEAD_BYTES])
    try:
        text = data.decode(decoding.encoding)
    except UnicodeDecodeError as failure:
        if encoding or is_cut_short(failure):
            raise
        if decoding.encoding in _UTF8_NAMES:
            decoding = _in_doubt([data], decoding)
        else:
            decoding = Decoding(decoding.encoding, "replace")
        text = data.decode(decoding.encoding, decoding.errors)
    return text, _described([data], decoding, chosen=bool(encoding))


def encoding_of(path: Path, decoding: Decoding, *, chosen: bool) -> FileEncoding:
    """Return the fact about a file that was read by `decoding`, which an option may have chosen."""
    with open_shared(path) as file:
        return _described(iter(partial(file.read, _CHUNK_BYTES), b""), decoding, chosen=chosen)


def facts_of(name: str, encoding: FileEncoding) -> ExportFacts:
    """Return the facts of a file, with a warning where its text looks encoded twice."""
    warnings: tuple[ExportWarning, ...] = ()
    if encoding.encoded_twice:
        warnings = (
            ExportWarning(
                place=name,
                text=f"{name} looks as if it was encoded twice: names may be garbled.",
                fix="Look at the names; save or export the file as UTF-8 from where it was made.",
            ),
        )
    return ExportFacts(encodings={name: encoding}, warnings=warnings)


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, enough to guess by."""
    with open_shared(path) as file:
        return file.read(_HEAD_BYTES)


def is_cut_short(error: UnicodeDecodeError) -> bool:
    """Return whether the file ends in the middle of a character: it is still being written."""
    return error.reason in {"unexpected end of data", "truncated data"}


def _in_doubt(chunks: Iterable[bytes], failed: Decoding) -> Decoding:
    good, bad = _utf8_balance(chunks)
    if failed.encoding == "utf-8-sig" or good > bad:
        return Decoding(failed.encoding, "replace")
    return Decoding("cp1252", "replace")


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


def _described(chunks: Iterable[bytes], decoding: Decoding, *, chosen: bool) -> FileEncoding:
    name = "utf-8" if decoding.encoding in _UTF8_NAMES else codecs.lookup(decoding.encoding).name
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset, line, runs = 0, 1, set[bytes]()
    bad_byte = bad_line = None
    ascii_only = suspect = True
    fits = name.startswith("utf-16") or (name == "utf-8" and decoding.errors == "strict")
    for chunk in chunks:
        if not chunk.isascii():
            ascii_only = False
            if suspect and len(runs) < _MOST_RUNS:
                found = (each[0] for each in _NOT_ASCII.finditer(chunk))
                first = list(islice(found, _FEW_RUNS))
                # Nearly always the first few runs show that the text is encoded once.
                suspect = _are_encoded_twice(first)
                runs.update(first if not suspect else (*first, *islice(found, _MOST_RUNS)))
        if fits:
            continue
        if bad_byte is None:
            waiting = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as failure:
                at = failure.start - waiting
                bad_byte, bad_line = offset + at, line + chunk.count(b"\n", 0, max(at, 0))
        offset += len(chunk)
        line += chunk.count(b"\n")
    return FileEncoding(
        encoding="ascii" if ascii_only and not name.startswith("utf-16") else name,
        chosen=chosen,
        bad_byte=bad_byte,
        bad_line=bad_line,
        encoded_twice=suspect and bad_byte is None and _are_encoded_twice(runs),
    )


def _are_encoded_twice(runs: Iterable[bytes]) -> bool:
    """Return whether all that is not ASCII is UTF-8 inside of UTF-8 ("Ã¨")."""
    try:
        texts = [run.decode() for run in runs]
    except UnicodeDecodeError:  # a chunk ended inside a character
        return False
    return bool(texts) and any(
        all(_is_utf8_in(text, codec) for text in texts) for codec in _MISTAKEN_FOR
    )


def _is_utf8_in(text: str, codec: str) -> bool:
    try:
        return len(text.encode(codec).decode()) < len(text)
    except UnicodeError:
        return False
