"""Finding out how the bytes of an export stand for text: one rule for all adapters.

Tills write UTF-8 with and without a byte order mark, UTF-16 (a spreadsheet's "Unicode text") and
Windows-1252. A wrong guess would put garbled names on a storefront, so the order of the questions
matters: marks first, then the zero bytes of UTF-16, then strict UTF-8, and only what is surely not
UTF-8 is Windows-1252, if its words can be: of the many other encodings none is guessed. A file with
more good UTF-8 letters than bad bytes is UTF-8 with some damage:
the bad bytes become U+FFFD, which makes the row they are in a bad one.

What was found out is a fact for the catalogue (`FileEncoding`): the bridge compares it with that of
the menu it accepted last.
"""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO

from tillbridge.adapter.export_files import still_being_written
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.core.i18n import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_UTF8_NAMES = {"utf-8", "utf-8-sig"}
_FEW_ZEROS = 2
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_MOST_RUNS = 5000
_FEW_RUNS = 20
_HIGH = rb"\x80-\x9f\xa1-\xff"  # beyond ASCII; 0xA0 is a blank
_WORD = re.compile(rb"[A-Za-z%b]*[%b][A-Za-z%b]*" % (_HIGH, _HIGH, _HIGH))
_WESTERN = re.compile(rb"[\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xd6\xd8-\xf6\xf8-\xff]")
# In Windows-1252 none of these signs stands inside a word (apostrophes, dashes and points do), and
# no such capital between small letters.
_NOT_WESTERN = re.compile(
    rb"[A-Za-z\xc0-\xff]"
    rb"[\x81-\x84\x86-\x88\x8d\x8f\x90\x9d\xa1-\xac\xaf\xb1-\xb3\xb5\xb6\xb8-\xbf]+"
    rb"[A-Za-z\xc0-\xff]"
    rb"|[a-z][\x8a\x8c\x8e\x9f\xc0-\xde][a-z]"
)
_NO_LETTERS = re.compile(rb"[\x80-\xff]{3,}")
# What UTF-8 is mistaken for by programs that then encode it once more.
_MISTAKEN_FOR = ("cp1252", "latin-1", "mac_roman", "cp850", "cp437")


@dataclass(frozen=True, slots=True)
class Decoding:
    """An encoding, and what becomes of bytes that do not fit it (`errors` as of `open`).

    With "replace" they become U+FFFD, which makes the row they are in a bad one. `chosen` is
    whether an option named it.
    """

    encoding: str
    errors: str = "strict"
    chosen: bool = False


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


def decoding_of(file: BinaryIO, encoding: str | None = None, *, in_doubt: bool = False) -> Decoding:
    """Return how to read a file: by what an option names, else by what its bytes speak for.

    `in_doubt` is for one of which that could not decode every byte. The file is at its
    beginning, before and after.
    """
    if encoding:
        return Decoding(encoding, chosen=True)
    decoding = guess_by_head(file.read(HEAD_BYTES))
    file.seek(0)
    if in_doubt:
        decoding = _fall_back(iter(partial(file.read, _CHUNK_BYTES), b""), decoding)
        file.seek(0)
    return decoding


def decode(data: bytes, encoding: str | None = None) -> tuple[str, FileEncoding]:
    """Return the text of a whole file, and how it was read.

    `encoding` is what an option names; without it, it is found out. Raises UnicodeDecodeError for
    a file that ends inside a character (`is_cut_short`), is not written in the encoding named, or
    in none that is found out.
    """
    decoding = Decoding(encoding, chosen=True) if encoding else guess_by_head(data[:HEAD_BYTES])
    try:
        text = data.decode(decoding.encoding)
    except UnicodeDecodeError as failure:
        if encoding or is_cut_short(failure):
            raise
        decoding = _fall_back([data], decoding)
        text = data.decode(decoding.encoding, decoding.errors)
    passed = BytesPassed(decoding)
    passed.feed(data)
    return text, passed.encoding()


def facts_of(name: str, encoding: FileEncoding) -> ExportFacts:
    """Return the facts of a file, with a warning where its text looks encoded twice."""
    warnings: tuple[ExportWarning, ...] = ()
    if encoding.encoded_twice:
        warnings = (
            ExportWarning(
                place=name,
                text=_("{name} looks as if it was encoded twice: names may be garbled.").format(
                    name=name
                ),
                fix=_(
                    "Look at the names; save or export the file as UTF-8 from where it was made."
                ),
            ),
        )
    return ExportFacts(encodings={name: encoding}, warnings=warnings)


def is_cut_short(error: UnicodeDecodeError) -> bool:
    """Return whether the file ends in the middle of a character: it is still being written."""
    return error.reason in {"unexpected end of data", "truncated data"}


def undecodable(
    name: str,
    encoding: str | None,
    failure: UnicodeDecodeError,
    fix: str = _("Correct the option encoding, or leave it out: the bridge then finds it out."),
) -> ExportUnreadable:
    """Return what is wrong with a file that is not written in the encoding, or in any (None)."""
    if is_cut_short(failure):
        return still_being_written(name, _("ends inside a character"))
    if encoding is None:
        return ExportUnreadable(
            _("{name} is written neither in UTF-8 nor in the encoding of Western Europe.").format(
                name=name
            ),
            place=name,
            fix=_(
                'Export it as UTF-8, or set the option encoding: "cp1251" for Cyrillic, "cp1250" '
                'for Central Europe, "cp1253" for Greek, "cp850" for programs of DOS.'
            ),
        )
    return ExportUnreadable(
        _("{name} is not written in {encoding}.").format(name=name, encoding=encoding),
        place=name,
        fix=fix,
    )


def _fall_back(chunks: Iterable[bytes], failed: Decoding) -> Decoding:
    """Return how to read a file of which `failed` could not decode every byte.

    That is `failed` itself where nothing fits.
    """
    if failed.encoding not in _UTF8_NAMES:
        return Decoding(failed.encoding, "replace")
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    good = bad = western = other = 0
    for chunk in chunks:
        for found in islice(_WORD.finditer(chunk), max(0, _MOST_RUNS - western - other)):
            if _is_not_western(found[0]):
                other += 1
            elif _WESTERN.search(found[0]) is not None:
                western += 1
        text = decoder.decode(chunk)
        if not text.isascii():
            escaped = sum("\udc80" <= character <= "\udcff" for character in text)
            bad += escaped
            good += sum(character > "\x7f" for character in text) - escaped
    if failed.encoding == "utf-8-sig" or good > bad:
        return Decoding(failed.encoding, "replace")
    return failed if other > western else Decoding("cp1252", "replace")


def _is_not_western(word: bytes) -> bool:
    """Return whether a word makes no sense in Windows-1252.

    Words of other scripts have no letter below 0x80, and those of other Latin encodings get signs
    and capitals between their letters: "Go³¹bki", "KŠsespŠtzle".
    """
    if _NO_LETTERS.fullmatch(word):
        return len(set(word)) > 1
    return _NOT_WESTERN.search(word) is not None


class BytesPassed:
    """What the bytes of a file show of its encoding and its end, while they are read."""

    def __init__(self, decoding: Decoding) -> None:
        self._chosen = decoding.chosen
        is_utf8 = decoding.encoding in _UTF8_NAMES
        self._name = "utf-8" if is_utf8 else codecs.lookup(decoding.encoding).name
        self._is_utf16 = self._name.startswith("utf-16")
        self._fits = self._is_utf16 or (is_utf8 and decoding.errors == "strict")
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._offset, self._line = 0, 1
        self._bad: tuple[int, int] | None = None  # byte and line
        self._is_ascii = self._is_suspect = True
        self._runs: set[bytes] = set()
        self._end = b""

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        if chunk:
            self._end = (self._end + chunk[-4:])[-4:]
        if not chunk.isascii():
            self._is_ascii = False
            if self._is_suspect and len(self._runs) < _MOST_RUNS:
                found = (each[0] for each in _NOT_ASCII.finditer(chunk))
                first = list(islice(found, _FEW_RUNS))
                # Nearly always the first few runs show that the text is encoded once.
                self._is_suspect = _are_encoded_twice(first)
                more = islice(found, _MOST_RUNS) if self._is_suspect else ()
                self._runs.update((*first, *more))
        if self._fits:
            return
        if self._bad is None:
            waiting = len(self._decoder.getstate()[0])
            try:
                self._decoder.decode(chunk)
            except UnicodeDecodeError as failure:
                at = failure.start - waiting
                line = self._line + chunk.count(b"\n", 0, max(at, 0))
                self._bad = (self._offset + at, line)
        self._offset += len(chunk)
        self._line += chunk.count(b"\n")

    def encoding(self) -> FileEncoding:
        """Return how a file is encoded, all of which has passed."""
        bad_byte, bad_line = self._bad or (None, None)
        is_suspect = self._is_suspect and bool(self._runs) and bad_byte is None
        return FileEncoding(
            encoding="ascii" if self._is_ascii and not self._is_utf16 else self._name,
            chosen=self._chosen,
            bad_byte=bad_byte,
            bad_line=bad_line,
            encoded_twice=is_suspect and _are_encoded_twice(self._runs),
        )

    def ends_with_newline(self) -> bool:
        """Return whether what has passed ends with a line end."""
        return self._end.rstrip(b"\0\x1a").endswith((b"\n", b"\r"))


def _are_encoded_twice(runs: Iterable[bytes]) -> bool:
    """Return whether all that is not ASCII is UTF-8 inside of UTF-8 ("Ã¨")."""
    try:
        texts = [run.decode() for run in runs]
    except UnicodeDecodeError:  # a chunk ended inside a character
        return False
    return any(all(_is_utf8_in(text, codec) for text in texts) for codec in _MISTAKEN_FOR)


def _is_utf8_in(text: str, codec: str) -> bool:
    try:
        return len(text.encode(codec).decode()) < len(text)
    except UnicodeError:
        return False
