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
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.decoding import (
    BytesPassed,
    Decoding,
    decoding_of,
    is_cut_short,
    undecodable,
)
from tillbridge.adapter.export_files import (
    LastRead,
    reading_whole,
    still_being_written,
    unfinished,
)
from tillbridge.adapter.sharing import open_shared
from tillbridge.adapter.texts import _, joined
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BrokenRow
from tillbridge.pos.folder.mapping import no_column

T = TypeVar("T")

_DELIMITERS = ",;\t|"
_UNSEEN = str.maketrans("", "", "\ufeff\x00")
_HINT = "sep="  # the first line with which a spreadsheet declares its delimiter
# Stands after the last line. A quote left open swallows it, which is how one is noticed.
_END = "\x00end of file\x00"
_DOS_END = "\x1a"  # what programs of DOS write behind the last line
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
    is_header: Callable[[Sequence[str]], bool] | None = field(default=None, compare=False)
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

    passed: BytesPassed

    def read1(self, size: int = -1, /) -> bytes:
        block = super().read1(max(size, _BLOCK_BYTES))
        self.passed.feed(block)
        return block


@dataclass(slots=True)
class Table:
    """A table that is open for reading. `columns` maps our names to positions in a row.

    `shown` is what the file calls our columns, `blank` a row that has none of those wanted.
    A row has fields up to the last column with a name: `least` of them. `first_row` is the number
    of the first row after the header, as a spreadsheet counts. `passed` is what its bytes show,
    once its rows were read.
    """

    path: Path
    header: tuple[str, ...]
    least: int
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
                    elif any(map(str.strip, row)) and row != [_DOS_END]:
                        if len(row) < self.least:
                            short_row = at
                        yield at, row, fingerprint
            number += len(fingerprints)

    def _portions(self, seed: int) -> Iterator[tuple[list[int], Callable[[], list[list[str]]]]]:
        """Yield the fingerprints of the next rows, and what makes their cells. `_END` is the last.

        Where no quotation mark is, a line is a row, which is not parsed unless it is new.
        """
        digest, delimiter, longest = xxh3_64_intdigest, self.delimiter, csv.field_size_limit()
        self.passed = BytesPassed(self.decoding)
        with _Blocks(open_shared(self.path).detach()) as blocks:
            blocks.passed, how = self.passed, self.decoding
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
                cell = row[at]
                fields[name] = cells.unwrapped(cell) if cell[:1] == "=" else cell
        return fields

    def written(self, column: str) -> list[str]:
        """Return what all rows have in one of our columns."""
        at = self.columns[column]
        return [row[at] for _number, row in self.rows() if at < len(row)]

    def check(self, row: Sequence[str]) -> None:
        """Raise BrokenRow for a row that is not as wide as the header, or more than one row."""
        width = len(self.header)
        if len(row) < self.least or any(map(str.strip, row[width:])):
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
            raise unfinished(
                self.path,
                _("ends inside a quotation in row {row}").format(row=number),
                place=self.place(number),
                fix=_("Look for a quotation mark that is opened and never closed."),
            )
        if self.passed.ends_with_newline():
            return
        if short_row == number - 1:
            raise unfinished(
                self.path,
                _("ends in the middle of row {row}").format(row=short_row),
                place=self.place(short_row),
                fix=_("Complete this row or delete it, or export again."),
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
            try:
                result = consume(_open(source))
            except UnicodeDecodeError as failure:
                if source.encoding or is_cut_short(failure):
                    raise
                result = consume(_open(source, in_doubt=True))
        except UnicodeDecodeError as failure:
            raise undecodable(path.name, source.encoding, failure) from failure
        source.last.done(path)
        return result


def _open(source: TableSource, *, in_doubt: bool = False) -> Table:
    name = source.path.name
    with open_shared(source.path) as file:
        decoding = decoding_of(file, source.encoding, in_doubt=in_doubt)
        with io.TextIOWrapper(file, decoding.encoding, decoding.errors, newline="") as lines:
            head = list(islice(lines, _MAX_HEADER_LINES))
    first = next(filter(None, (line.translate(_UNSEEN).strip() for line in head)), "")
    if not first:
        raise still_being_written(name, _("contains no row"))
    delimiter = source.delimiter
    if not delimiter and first.lower().startswith(_HINT):
        delimiter = first[len(_HINT) : len(_HINT) + 1]
    # What finds most of the wanted columns, else what divides most rows as it does the header.
    found = [_find_header(source, head, each) for each in delimiter or _DELIMITERS]
    header = max(
        found,
        key=lambda each: (
            each.fits,
            len(each.columns),
            each.as_wide if len(each.names) > 1 else 0,
            len(each.names),
        ),
    )
    if first.startswith("<") and not header.fits:
        raise ExportUnreadable(
            _("{name} is a web page or XML under another name.").format(name=name),
            place=name,
            fix=_("Export the menu again, or correct the option menu."),
        )
    if header.missing:
        # A file of one unfinished line: the till has only begun.
        if header.is_last and not head[-1].endswith(("\n", "\r")):
            raise still_being_written(name, _("ends inside its header"))
        raise _missing(source, header)
    return Table(
        path=source.path,
        header=tuple(header.names),
        least=max((at for at, each in enumerate(header.names, 1) if each), default=0),
        columns=header.columns,
        shown={ours: header.names[at] for ours, at in header.columns.items()},
        blank=dict.fromkeys((*source.required, *source.optional), ""),
        first_row=header.number + source.has_header,
        delimiter=header.delimiter,
        decoding=decoding,
        last=source.last,
    )


@dataclass(frozen=True, slots=True)
class _Header:
    """What a delimiter makes of the first lines: the row that is the header, and its columns.

    `missing` are the columns that there must be and that it does not name; `fits` says whether it
    is the header; `is_last` whether nothing is below it. `as_wide` is how many of the first rows
    have as many fields, it among them.
    """

    number: int
    names: list[str]
    columns: Mapping[str, int]
    delimiter: str
    missing: Sequence[str]
    fits: bool
    is_last: bool
    as_wide: int


def _find_header(source: TableSource, head: Sequence[str], delimiter: str) -> _Header:
    """Return the first row that names all columns; without one, the first that may be meant.

    Above it can stand the title of a report, and the time and place of its printing.
    """
    rows: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):  # which reading the rows reports, with its line
        for number, row in enumerate(csv.reader(head, delimiter=delimiter), 1):
            names = [" ".join(name.translate(_UNSEEN).split()) for name in row]
            if any(names) and not delimiter.join(names).lower().startswith(_HINT):
                rows.append((number, names))
    if not source.has_header:
        number, names = rows[0] if rows else (1, [])
        rows = [(number, positions(len(names)))]
    promised = {*source.required, *(source.renamed if source.must_rename else ())}
    needed = [each for each in (*source.required, *source.optional) if each in promised]
    most = max((sum(map(bool, names)) for _number, names in rows), default=0)
    likely: _Header | None = None
    for number, names in rows:
        columns = source.columns(names)
        missing = [each for each in needed if each not in columns]
        fits = source.is_header(names) if source.is_header else not missing
        made = _Header(
            number,
            names,
            columns,
            delimiter,
            missing,
            fits,
            is_last=number == rows[-1][0],
            as_wide=sum(len(other) == len(names) for _number, other in rows),
        )
        if fits:
            return made
        if likely is None and 2 * sum(map(bool, names)) >= most:
            likely = made
    return likely or _Header(1, [], {}, delimiter, needed, fits=False, is_last=True, as_wide=0)


def _cells(data: bytes, delimiter: str) -> list[list[str]]:
    return [line.decode().split(delimiter) for line in data.splitlines()]


def positions(width: int) -> list[str]:
    """Return the names of columns that have none of their own."""
    return [_("column {number}").format(number=number) for number in range(1, width + 1)]


def _missing(source: TableSource, header: _Header) -> ExportUnreadable:
    renamed, missing = source.renamed, header.missing
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
    return no_column(source.path, header.names, wanted, fix, row=header.number)
