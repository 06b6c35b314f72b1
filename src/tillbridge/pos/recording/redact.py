"""Makes other words of what nobody else should see, and keeps the form of everything.

First all values are collected: secrets, what is in columns and under keys about people, and
what looks like an address, a telephone or an account number. Then each becomes another text of the
same form (letters for letters, digits for digits), the same one everywhere. Quirks of a file, which
a case is about, are left as they are: only these values change in it.
"""

import csv
import hashlib
import io
import json
import re
import string
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

from tillbridge.core.redaction import (
    EMAIL,
    JWT,
    PHONE,
    KnownTexts,
    coded_forms,
    quoted_forms,
)
from tillbridge.model.numbers import map_leaves

_PEOPLE = re.compile(
    r"(?:^|[_\-. ])(?:customer|client|guest|partner|contact|person|employee|staff|driver|waiter|"
    r"cashier|phone|telephone|tel|mobile|cell|fax|e-?mail|mail|address|addr|street|zip|postcode|"
    r"postal|city|birth\w*|iban|bic|account|passport|ssn|vat|first_?name|last_?name|surname|"
    r"full_?name|nickname|login|user|author|create_uid|write_uid|special_instructions|"
    r"kunde|telefon|adresse|strasse|straße|ort|cliente?|correo|direcci[oó]n|t[eé]l[eé]phone|adresse)"
    r"s?(?:$|[_\-. ])",
    re.IGNORECASE,
)
_LOOKS = (
    EMAIL,
    PHONE,
    JWT,
    re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    re.compile(r"\b\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}\b"),
)
_SHORTEST = 3
_PLAIN_NUMBER = re.compile(r"[\d.,]{1,6}")
_WORD = re.compile(r"true|false|yes|no|none|null", re.IGNORECASE)
_OLD_PAGES = ("cp850", "cp437", "cp1252")
_HEADERS_IN = 4  # tills put a title or two above the header


class Redactor:
    """Collects what must not be seen, and replaces it. `salt` is thrown away with it."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._secrets: set[str] = set()
        self._people: set[str] = set()
        self._given: dict[str, str] = {}
        self._known: KnownTexts | None = None

    @property
    def count(self) -> int:
        """How many values become others."""
        return len(self._secrets | self._people)

    # -- collecting

    def hide(self, secret: str) -> None:
        """Take a secret, which is replaced wherever it is, in other words too."""
        if len(secret) >= _SHORTEST:
            self._secrets.add(secret)

    def replace(self, value: str, other: str) -> None:
        """Take a value that is replaced by a given other, wherever it is."""
        self._given[value] = other

    def scan_file(self, name: str, content: bytes) -> None:
        """Collect from a file."""
        suffix = name.lower().rpartition(".")[2]
        if suffix == "xlsx":
            self._scan_workbook(content)
        elif suffix == "dbf":
            self._take_columns(_dbf_rows(content))
        else:
            text, _codec = decoded(content)
            self.scan_text(text)
            if suffix == "json":
                self._scan_json_text(text)
            elif "\x00" not in text:
                self._take_columns(_csv_rows(text))

    def scan_text(self, text: str) -> None:
        """Collect what looks like an address, a telephone, an account."""
        for look in _LOOKS:
            self._people.update(found[0].strip() for found in look.finditer(text))

    def scan_json(self, value: object, *, people: bool = False) -> None:
        """Collect from a JSON value: all texts below a key about people."""
        if isinstance(value, Mapping):
            for key, part in value.items():
                self.scan_json(part, people=people or bool(_PEOPLE.search(str(key))))
        elif isinstance(value, list | tuple):
            for part in value:
                self.scan_json(part, people=people)
        elif isinstance(value, str):
            self.scan_text(value)
            if people:
                self._take(value)

    # -- replacing

    def text(self, text: str) -> str:
        """Return a text with others for all that was collected."""
        return self._collected().replaced(text)

    def value(self, value: Any) -> Any:  # noqa: ANN401 -- any JSON value
        """Return a JSON value with others in it; keys stay."""
        return map_leaves(value, lambda each: self.text(each) if isinstance(each, str) else each)

    def file(self, name: str, content: bytes) -> bytes:
        """Return a file with others in it; a workbook stays one."""
        if name.lower().endswith(".xlsx"):
            return self._workbook(content)
        text, codec = decoded(content)
        return self.text(text).encode(codec)

    def remains(self, content: bytes) -> str:
        """Return something that was collected and is still there; "" where nothing is."""
        texts = [decoded(content)[0]]
        if content.startswith(b"PK"):
            texts = [decoded(each)[0] for _name, each in _members(content)]
        return next(filter(None, map(self._collected().first_in, texts)), "")

    # -- inside

    def _take(self, value: str) -> None:
        text = value.strip()
        if len(text) < _SHORTEST or _PLAIN_NUMBER.fullmatch(text) or _WORD.fullmatch(text):
            return  # nobody is known by that
        self._people.add(text)

    def _take_columns(self, rows: Iterable[list[str]]) -> None:
        columns: set[int] = set()
        for number, row in enumerate(rows):
            if number < _HEADERS_IN:
                columns |= {place for place, cell in enumerate(row) if _PEOPLE.search(cell)}
            for place, cell in enumerate(row):
                self.scan_text(cell)
                if place in columns and not _PEOPLE.search(cell):
                    self._take(cell)

    def _scan_json_text(self, text: str) -> None:
        try:
            self.scan_json(json.loads(text))
        except (ValueError, RecursionError):
            return  # half a file is a case too; what it looks like was collected

    def _scan_workbook(self, content: bytes) -> None:
        for name, part in _members(content):
            text = decoded(part)[0]
            self.scan_text(text)
            if name.startswith("docProps/"):
                for found in re.finditer(
                    r"<(?:dc:creator|cp:lastModifiedBy|Company)>([^<]+)<", text
                ):
                    self._take(found[1])
        try:
            import python_calamine  # noqa: PLC0415 -- adapters for workbooks bring it

            book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
            for name in book.sheet_names:
                rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
                self._take_columns([[str(cell) for cell in row] for row in rows])
        except (ImportError, ValueError, OSError):
            return

    def _workbook(self, content: bytes) -> bytes:
        made = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(content)) as old,
            zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for entry in old.infolist():
                text, codec = decoded(old.read(entry))
                new.writestr(entry.filename, self.text(text).encode(codec))
        return made.getvalue()

    def _collected(self) -> KnownTexts:
        if self._known is None:
            self._known = KnownTexts()
            for value, other in self._given.items():
                self._known.add(value, other, anywhere=True)
            for value in sorted(self._secrets | self._people, key=len, reverse=True):
                other, secret = _another(self._salt, value), value in self._secrets
                for form, replaced in _forms(value, other, secret=secret).items():
                    self._known.add(form, replaced, anywhere=secret)
        return self._known


def decoded(content: bytes) -> tuple[str, str]:
    """Return bytes as text, and the codec that makes the same bytes of it again."""
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    codec = marks.get(content[:2], "utf-8")
    try:
        return content.decode(codec), codec
    except UnicodeDecodeError:
        return content.decode("latin-1"), "latin-1"


def _another(salt: bytes, value: str) -> str:
    """Return another text of the same form."""
    turn, other = 0, value
    while other == value and any(each.isalnum() for each in value):
        noise = hashlib.shake_256(salt + f"{turn}:{value}".encode()).digest(len(value))
        other = "".join(map(_like, value, noise))
        turn += 1
    return other


def _like(each: str, noise: int) -> str:
    if each.isdigit():
        return string.digits[noise % 10]
    if not each.isalpha():
        return each
    letter = string.ascii_lowercase[noise % 26]
    return letter.upper() if each.isupper() else letter


def _forms(value: str, other: str, *, secret: bool) -> Mapping[str, str]:
    """Return the ways in which a value is written, each with its other."""
    forms = dict(zip(quoted_forms(value), quoted_forms(other), strict=True))
    forms[escape(value)] = escape(other)
    forms[value.replace('"', '""')] = other.replace('"', '""')
    if not value.isascii():
        for page in _OLD_PAGES:
            try:
                forms[value.encode(page).decode("latin-1")] = other
            except UnicodeEncodeError:
                continue
    if secret:
        forms.update(zip(coded_forms(value), coded_forms(other), strict=True))
    return forms


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                yield entry.filename, archive.read(entry)
    except zipfile.BadZipFile:
        yield "", content


def _csv_rows(text: str) -> Iterator[list[str]]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t|", key=first.count)
    try:
        yield from csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter)
    except csv.Error:
        return


def _dbf_rows(content: bytes) -> Iterator[list[str]]:
    """Return names of the fields, then the records, of a DBF; texts as Latin-1, byte by byte."""
    if len(content) < 32:
        return
    begin, size = int.from_bytes(content[8:10], "little"), int.from_bytes(content[10:12], "little")
    fields = []
    at = 32
    while at + 32 <= begin and content[at] != 0x0D:
        name = content[at : at + 11].split(b"\x00")[0].decode("latin-1")
        fields.append((name, content[at + 16]))
        at += 32
    yield [name for name, _width in fields]
    for start in range(begin, len(content) - size + 1, max(size, 1)):
        row, place = [], start + 1
        for _name, width in fields:
            row.append(content[place : place + width].decode("latin-1").strip())
            place += width
        yield row
