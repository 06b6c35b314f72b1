"""Reading a CSV of any dialect as a table: decoding, delimiter, header, rows.

One reading is all or nothing: a file that changes while it is read, ends inside a row, or is
empty raises `ExportUnreadable` with `passing`, for it is surely being written. A row that is
wrong by itself is none of this module's business.

An export of 200,000 rows passes through here whenever the till writes it, and nearly always only
a few rows are new. So rows are compared by fingerprint where they are read, and nothing is
stored of those that are known.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TypeVar

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.decoding import (
    BytesPassed,
    Decoding,
    decoding_of,
    is_cut_short,
    undecodable,
)
from tillbridge.adapter.export_files import LastRead, reading_whole, still_being_written
from tillbridge.adapter.sharing import open_shared
from tillbridge.adapter.texts import _, joined
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BrokenRow
from tillbridge.pos.folder.mapping import no_column

T = TypeVar("T")

_DELIMITERS = ",;\t|"
_HINT = "sep="  # the first line with which a spreadsheet declares its delimiter
# Stands after the last line. A quote left open swallows it, which is how one is noticed.
_END = "\x00end of file\x00"
_BLOCK_BYTES = 1 << 20
_PORTION = 1 << 14  # characters
_FIELD_MARK = "\x1f"
_MAX_HEADER_LINES = 50
_PRICE_LIKE = re.compile(r"\s*\d[\d\s.,']*\s*")
# SQLite's integers are signed.
_TO_SIGNED = 1 << 63


@dataclass(frozen=True, slots=True)
class TableSource:
    """A CSV file, the columns wanted of it and the settings that say how it is written.

    `required` and `optional` are our names; `renamed` gives the header for those that differ. In
    a file of which `must_rename` is False, a column may also have our own name. The columns of a
    file without a header are called `column 1`, `column 2`, ...
    """

    path: Path
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    must_rename: bool = True
    has_header: bool = True
    last: LastRead = field(default_factory=LastRead, compare=False)

    def columns(self, header: Sequence[str]) -> dict[str, int]:
        """Return where our columns are in a header, as far as they do."""
        at = {cells.alike(name): place for place, name in reversed(list(enumerate(header)))}
        columns = {}
        for ours in (*self.required, *self.optional):
            theirs = self.renamed.get(ours, ours)
            names = (theirs,) if self.must_rename else (theirs, ours)
            found = [at[key] for name in names if (key := cells.alike(cells.plain(name))) in at]
            if found:
                columns[ours] = found[0]
        return columns


class _Blocks(io.BufferedReader):
    """A file that is read in large blocks, so that a long reading lets other threads have a turn.

    Each read lets go of the interpreter's lock and takes it back at once. Many small ones wake
    every thread that waits for it, too late each time, and keep it from ever insisting: reading
    in the usual blocks of 8 KiB stopped the event loop for a tenth of a second at a time.
    """

    def __init__(self, path: Path, passed: BytesPassed) -> None:
        super().__init__(open_shared(path).detach())
        self._passed = passed

    def read1(self, size: int = -1, /) -> bytes:
        block = super().read1(max(size, _BLOCK_BYTES))
        self._passed.feed(block)
        return block


@dataclass(slots=True)
class Table:
    """A table that is open for reading. `columns` maps our names to positions in a row.

    `shown` is what the file calls our columns, `blank` a row that has none of those wanted.
    `first_row` is the number of the first row after the header, as a spreadsheet counts. `passed`
    is what its bytes show, once its rows were read.
    """

    path: Path
    header: tuple[str, ...]
    columns: Mapping[str, int]
    shown: Mapping[str, str]
    blank: dict[str, str]
    first_row: int
    delimiter: str
    decoding: Decoding
    last: LastRead
    passed: BytesPassed = field(init=False)

    def unknown_rows(
        self, known: AbstractSet[int], unseen: set[int], seed: int
    ) -> Iterator[tuple[int, list[str], int]]:
        """Yield number, fields and fingerprint of each row whose fingerprint is not in `known`.

        Each known fingerprint that occurs is taken out of `unseen`. Blank rows are left out; rows
        with too few or too many fields are not. May be called again for another pass.

        Raises ExportUnreadable at the end of a file that stops inside a row.
        """
        number, short_row = self.first_row, 0
        for fingerprints, cells_of_rows in self._portions(seed):
            left = len(unseen)
            unseen.difference_update(fingerprints)
            if left - len(unseen) < len(fingerprints):  # some are new, or there twice
                rows = zip(fingerprints, cells_of_rows(), strict=True)
                for at, (fingerprint, row) in enumerate(rows, number):
                    if fingerprint in known:
                        continue
                    if row and row[-1].endswith(_END):
                        self._check_end(row, at, short_row)
                    elif any(map(str.strip, row)):
                        if len(row) < len(self.header):
                            short_row = at
                        yield at, row, fingerprint
            number += len(fingerprints)

    def _portions(self, seed: int) -> Iterator[tuple[list[int], Callable[[], list[list[str]]]]]:
        """Yield the fingerprints of the next rows, and what makes their cells. `_END` is the last.

        Where no quotation mark is, a line is a row, which is not parsed unless it is new.
        """
        digest, delimiter, longest = xxh3_64_intdigest, self.delimiter, csv.field_size_limit()
        self.passed = BytesPassed(self.decoding)
        with _Blocks(self.path, self.passed) as blocks:
            how = self.decoding
            file = io.TextIOWrapper(blocks, how.encoding, how.errors, newline="")
            reader, above = csv.reader(file, delimiter=delimiter), 0
            try:
                for _row in range(1, self.first_row):
                    next(reader, None)
                above = reader.line_num
                while text := file.read(_PORTION) + file.readline():
                    if '"' not in text and len(text) <= longest:
                        data = text.encode()  # the lines of bytes end as those of a table do
                        marked = data.replace(delimiter.encode(), _FIELD_MARK.encode())
                        records = marked.splitlines()
                        cells_of_rows = partial(_cells, data, delimiter)
                        above += len(records)
                    else:
                        lines, rows = io.StringIO(text, newline=""), []
                        # A quotation may go on in what follows.
                        reader = csv.reader(chain(lines, file, (_END,)), delimiter=delimiter)
                        while lines.tell() < len(text):
                            rows.append(next(reader))
                        records = [_FIELD_MARK.join(row).encode() for row in rows]
                        cells_of_rows = partial(list, rows)
                        above += reader.line_num
                    yield [digest(each, seed) - _TO_SIGNED for each in records], cells_of_rows
            except csv.Error as failure:
                line = above + reader.line_num
                raise ExportUnreadable(
                    _("{name} is not a table from line {line} on: {why}.").format(
                        name=self.path.name, line=line, why=str(failure)
                    ),
                    place=_("{file}, line {line}").format(file=self.path.name, line=line),
                    fix=_("Look for a quotation mark that is never closed, at or above that line."),
                ) from failure
        yield [digest(_END.encode(), seed) - _TO_SIGNED], partial(list, [[_END]])

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield number and cells of every row that is not blank."""
        for number, row, _fresh in self.unknown_rows(frozenset(), set(), 0):
            yield number, row

    def fields(self, row: Sequence[str]) -> dict[str, str]:
        """Return the cells of a row by our names of its columns, "" for what it lacks."""
        fields, width = self.blank.copy(), len(row)
        for name, at in self.columns.items():
            if at < width:
                fields[name] = row[at]
        return fields

    def written(self, column: str) -> list[str]:
        """Return what all rows have in one of our columns."""
        at = self.columns[column]
        return [row[at] for _number, row in self.rows() if at < len(row)]

    def check(self, row: Sequence[str]) -> None:
        """Raise BrokenRow for a row that is not as wide as the header, or more than one row."""
        width = len(self.header)
        if len(row) < width or any(map(str.strip, row[width:])):
            raise BrokenRow(
                "",
                self.delimiter.join(row),
                _("The row has {n} fields, and the table has {width} columns.").format(
                    n=len(row), width=width
                ),
                _("A text that holds the delimiter or a line break must stand in quotation marks."),
            )
        if "\n" in "".join(row) and any(map(self._looks_like_a_row, self._lines_within(row))):
            raise BrokenRow(
                "",
                self.delimiter.join(row),
                _("The row runs on over what looks like other rows."),
                _("Look for a quotation mark that is opened and never closed."),
            )

    def swallowed(self, row: Sequence[str]) -> list[str]:
        """Return the ids in lines that a stray quotation mark has made part of this bad row."""
        at = self.columns["external_id"]
        lines = (line for line in self._lines_within(row) if at < len(line))
        return [external_id for line in lines if (external_id := cells.plain(line[at].strip('"')))]

    def _lines_within(self, row: Sequence[str]) -> Iterator[list[str]]:
        for cell in row:
            if "\n" in cell:
                for line in cell.splitlines()[1:]:
                    yield line.split(self.delimiter)

    def _looks_like_a_row(self, line: Sequence[str]) -> bool:
        id_at, price_at = self.columns["external_id"], self.columns["price"]
        return (
            max(id_at, price_at) < len(line)
            and bool(line[id_at].strip())
            and _PRICE_LIKE.fullmatch(line[price_at]) is not None
        )

    def place(self, number: int) -> str:
        """Return how a person finds row `number`."""
        return _("{file}, row {row}").format(file=self.path.name, row=number)

    def _check_end(self, row: list[str], number: int, short_row: int) -> None:
        if row != [_END]:
            raise still_being_written(
                self.path.name, _("ends inside a quotation in row {row}").format(row=number)
            )
        if self.passed.ends_with_newline():
            return
        if short_row == number - 1:
            raise still_being_written(
                self.path.name, _("ends in the middle of row {row}").format(row=short_row)
            )
        # Half of "12.50" is a price, too. A till that never ends its last line is believed later.
        if self.last.is_being_rewritten(self.path):
            raise still_being_written(
                self.path.name,
                _("ends without a line end in row {row}").format(row=number - 1),
            )


def read_table(source: TableSource, consume: Callable[[Table], T]) -> T:
    """Return what `consume` makes of the table; it may be called twice, and must then start over.

    Raises ExportUnreadable: the file cannot be read now, or is not the table wanted.
    """
    path = source.path
    with reading_whole(path):
        try:
            result = consume(_open(source))
        except UnicodeDecodeError as failure:
            if source.encoding or is_cut_short(failure):
                raise undecodable(path.name, source.encoding, failure) from failure
            result = consume(_open(source, in_doubt=True))
        source.last.done(path)
        return result


def _open(source: TableSource, *, in_doubt: bool = False) -> Table:
    name = source.path.name
    with open_shared(source.path) as file:
        decoding = decoding_of(file, source.encoding, in_doubt=in_doubt)
        with io.TextIOWrapper(file, decoding.encoding, decoding.errors, newline="") as lines:
            before, line = _header_line(lines)
    if not line:
        raise still_being_written(name, _("contains no row"))
    hint = before[-1] if before and before[-1].lower().startswith(_HINT) else ""
    delimiter = source.delimiter or hint[len(_HINT) : len(_HINT) + 1]
    if not delimiter:
        # What finds most of the wanted columns, else most columns.
        headers = [(each, _split(line, each)) for each in _DELIMITERS]
        fits = {each: (len(source.columns(header)), len(header)) for each, header in headers}
        delimiter = max(fits, key=fits.__getitem__)
    header = _split(line, delimiter)
    if not source.has_header:
        header = positions(len(header))
    columns = source.columns(header)
    promised = {*source.required, *(source.renamed if source.must_rename else ())}
    wanted = (*source.required, *source.optional)
    if missing := [each for each in wanted if each in promised and each not in columns]:
        # A file of one unfinished line: the till has only begun.
        if not line.endswith(("\n", "\r")):
            raise still_being_written(name, _("ends inside its header"))
        raise _missing(source, header, missing)
    return Table(
        path=source.path,
        header=tuple(header),
        columns=columns,
        shown={ours: header[at] for ours, at in columns.items()},
        blank=dict.fromkeys(wanted, ""),
        first_row=len(before) + 1 + source.has_header,
        delimiter=delimiter,
        decoding=decoding,
        last=source.last,
    )


def _header_line(lines: IO[str]) -> tuple[list[str], str]:
    """Return the lines that are above the header (blank ones, a hint), and the header's."""
    before: list[str] = []
    for _line in range(_MAX_HEADER_LINES):
        line = lines.readline()
        text = line.strip().lstrip("\ufeff")
        if not line or (text and not text.lower().startswith(_HINT)):
            return before, line
        before.append(text)
    return before, ""


def _split(line: str, delimiter: str) -> list[str]:
    names = next(csv.reader([line], delimiter=delimiter))
    return [" ".join(name.replace("\ufeff", "").replace("\x00", "").split()) for name in names]


def _cells(data: bytes, delimiter: str) -> list[list[str]]:
    return [line.decode().split(delimiter) for line in data.splitlines()]


def positions(width: int) -> list[str]:
    """Return the names of columns that have none of their own."""
    return [_("column {number}").format(number=number) for number in range(1, width + 1)]


def _missing(source: TableSource, header: list[str], missing: list[str]) -> ExportUnreadable:
    renamed = source.renamed
    wanted = [
        _('{ours} (as "{theirs}")').format(ours=ours, theirs=renamed[ours])
        if ours in renamed
        else ours
        for ours in missing
    ]
    example = ", ".join(f'{ours} = "..."' for ours in missing)
    fix: str = _(
        "Say which of them it is, with the option columns = {{ {example} }}; "
        "if the columns run together, set the option delimiter."
    ).format(example=example)
    if "external_id" in missing:
        fix = joined(" ", [fix, _('If the till has no ids, set ids = "derived".')])
    return no_column(source.path, header, wanted, fix)
