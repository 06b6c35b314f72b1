"""QR codes of tables, ready to print: as a sheet in the language of the guests, and as files."""

import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import ceil
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote, urlsplit

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, reader

QUIET_ZONE = 4  # modules of white around a code; scanners need them (ISO/IEC 18004)
_AS_IT_IS = "%:/?#[]@!$&'()*+,;="
_PNG_MODULE = 20  # pixels


def code_of(name: str, url: str) -> segno.QRCode:
    """Return the code of a table's address, error correction M or better. Raises BridgeError."""
    try:
        # A code holds bytes, and phones guess their meaning: only ASCII has but one.
        address = quote(url, safe=_AS_IT_IS)
    except UnicodeEncodeError:
        address = ""
    if urlsplit(address).scheme not in {"http", "https"}:
        raise BridgeError(
            _("The service's address for table {name} is not a web address.").format(name=name),
            fix=_("Send the tables again. If this continues, tell the ordering service."),
        )
    try:
        return segno.make_qr(address, error="m", boost_error=True)
    except segno.DataOverflowError as failure:
        raise BridgeError(
            _("The service's address for table {name} is too long for a QR code.").format(
                name=name
            ),
            fix=_("Tell the ordering service."),
        ) from failure


def modules_across(code: segno.QRCode) -> int:
    """Return how many modules wide a code is, its quiet zone included."""
    return int(code.symbol_size(border=QUIET_ZONE)[0])


def inline_svg(code: segno.QRCode) -> str:
    """Return a code as an SVG element without a size of its own; it holds no text."""
    return code.svg_inline(border=QUIET_ZONE, omitsize=True, light="#fff", svgclass=None)


def svg_file(code: segno.QRCode, title: str) -> bytes:
    """Return a code as an SVG file; `title` is what screen readers and viewers show."""
    stream = io.BytesIO()
    code.save(stream, kind="svg", border=QUIET_ZONE, scale=10, light="#fff", title=title)
    return stream.getvalue()


def png_file(code: segno.QRCode) -> bytes:
    """Return a code as a PNG file."""
    stream = io.BytesIO()
    code.save(stream, kind="png", border=QUIET_ZONE, scale=_PNG_MODULE, dpi=300)
    return stream.getvalue()


_JOINERS = "\u200c\u200d"  # they shape Persian words and emoji, and steer nothing
_LONGEST = 40


def printable(text: str) -> str:
    """Return the text on one line, without characters that steer (control, bidi, surrogates)."""
    cleaned = "".join(each if each.isprintable() or each in _JOINERS else " " for each in text)
    return " ".join(cleaned.split())


def slug(text: str) -> str:
    """Return lower-case ASCII letters, digits and hyphens; "" where nothing of it is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST].strip("-")


def file_stems(prefix: str, named: Iterable[tuple[str, str]]) -> list[str]:
    """Return a stem of a file name for each (name, id), no two the same on any file system.

    `prefix` begins each, so that none is hidden, a folder, or a name that Windows keeps.
    """
    taken: set[str] = set()
    stems = []
    for name, external_id in named:
        first = "-".join(filter(None, (prefix, slug(name) or "table")))
        second = "-".join(filter(None, (first, slug(external_id))))
        stem, number = first if first not in taken else second, 2
        while stem in taken:
            stem, number = f"{second}-{number}", number + 1
        taken.add(stem)
        stems.append(stem)
    return stems


MARGIN = 10.0  # what printers leave white anyway
HEADING = 12.0  # the line with the zone and the store
PADDING = 4.0  # between a card's edge, where it is cut, and what is on it
CODE_SHARE = 0.68  # of a card's height; the rest is for the names
MOST_PER_PAGE = 30
_LETTER = 0.64  # how wide a bold letter is, in heights of a letter
SMALLEST_MODULE = 0.35  # finer squares are hard to scan at arm's length


class Paper(StrEnum):
    """The paper sizes."""

    A4 = "a4"
    LETTER = "letter"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return (210.0, 297.0) if self is Paper.A4 else (215.9, 279.4)


@dataclass(frozen=True, slots=True)
class Grid:
    """The cards on a page. `code` is the width of a code with its quiet zone."""

    columns: int
    rows: int
    card_width: float
    card_height: float
    code: float


def grid_for(paper: Paper, per_page: int) -> Grid:
    """Return the grid for up to `per_page` cards (1 to 30) that makes the codes largest."""
    if not 1 <= per_page <= MOST_PER_PAGE:
        msg = f"per_page is {per_page}, not from 1 to {MOST_PER_PAGE}"
        raise ValueError(msg)
    grids = [_grid(paper, columns, ceil(per_page / columns)) for columns in range(1, per_page + 1)]
    return max(grids, key=lambda grid: (round(grid.code, 3), -grid.columns * grid.rows))


def cut_marks(grid: Grid, cards: int) -> list[tuple[float, float]]:
    """Return where the corners of the first `cards` cards are, from the grid's upper left."""
    corners = set()
    for card in range(cards):
        row, column = divmod(card, grid.columns)
        corners |= {(column + across, row + down) for across in (0, 1) for down in (0, 1)}
    return [
        (round(column * grid.card_width, 3), round(row * grid.card_height, 3))
        for column, row in sorted(corners)
    ]


def name_lines(grid: Grid) -> int:
    """Return how many lines of a name there is room for."""
    return 3 if grid.card_height > 70 else 2


def name_size(name: str, grid: Grid) -> float:
    """Return the height of the letters of a name: on one line if that reads well, else on several.

    What does not fit even then is cut off with an ellipsis.
    """
    width = (grid.card_width - 2 * PADDING) / _LETTER
    largest = min((grid.card_height - 2 * PADDING) * 0.115, 16.0)
    if (on_one_line := width / max(len(name), 1)) >= largest * 0.6:
        return round(min(largest, on_one_line), 2)
    longest_word = max(map(len, name.split()), default=1)
    a_line = max(len(name) / name_lines(grid), longest_word)
    smallest = max(largest * 0.3, 2.2)
    return round(max(min(largest * 0.8, width / a_line), smallest), 2)


def _grid(paper: Paper, columns: int, rows: int) -> Grid:
    width, height = paper.size
    card_width = (width - 2 * MARGIN) / columns
    card_height = (height - 2 * MARGIN - HEADING - 1) / rows  # 1: rounding must not start a page
    code = min(card_width - 2 * PADDING, (card_height - 2 * PADDING) * CODE_SHARE)
    return Grid(columns, rows, round(card_width, 3), round(card_height, 3), round(code, 3))


@dataclass(frozen=True, slots=True)
class QrTable:
    """A table with what its code leads to."""

    external_id: str
    name: str
    zone: str
    url: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet: its HTML, its pages, and how wide the finest code's modules are (mm)."""

    html: str
    pages: int
    finest_module_mm: float

    @property
    def hard_to_scan(self) -> bool:
        """Whether a code is so fine that some phones will not read it."""
        return self.finest_module_mm < SMALLEST_MODULE


def make_sheet(tables: Sequence[QrTable], title: str, *, size: Paper, per_page: int) -> Sheet:
    """Return the sheet of at least one table. Raises BridgeError for an address without a code."""
    grid = grid_for(size, per_page)
    codes = {each: code_of(printable(each.name), each.url) for each in tables}
    pages = [
        {
            "zone": zone,
            "number": number,
            "of": of,
            "marks": cut_marks(grid, len(cards)),
            "cards": [
                {
                    "name": printable(each.name),
                    "zone": zone,
                    "size": name_size(printable(each.name), grid),
                    "svg": Markup(inline_svg(codes[each])),  # noqa: S704 -- segno's own, without any text in it
                }
                for each in cards
            ],
        }
        for zone, number, of, cards in _pages(tables, per_page)
    ]
    html = (
        _environment()
        .get_template("sheet.html")
        .render(title=printable(title), pages=pages, **_measures(size, grid))
    )
    finest = grid.code / max(modules_across(code) for code in codes.values())
    return Sheet(html, len(pages), finest)


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts "Table 2" before "Table 10"."""
    parts: list[str] = [""]
    for each in name.casefold():
        digit = each.isascii() and each.isdigit()
        last = parts[-1][-1:]
        if last and digit != (last.isascii() and last.isdigit()):
            parts.append("")
        parts[-1] += each
    return tuple((0, int(p), "") if p.isascii() and p.isdigit() else (1, 0, p) for p in parts)


def in_order(tables: Iterable[QrTable]) -> list[QrTable]:
    """Return the tables by zone, then by name as people count."""
    return sorted(
        tables,
        key=lambda each: (natural_order(each.zone), natural_order(each.name), each.external_id),
    )


def _pages(
    tables: Sequence[QrTable], per_page: int
) -> Iterator[tuple[str, int, int, list[QrTable]]]:
    """Yield zone, page of the zone, pages of the zone, and tables. A zone begins a new page."""
    zones: dict[str, list[QrTable]] = {}
    for each in in_order(tables):
        zones.setdefault(printable(each.zone), []).append(each)
    for zone, there in zones.items():
        chunks = [there[at : at + per_page] for at in range(0, len(there), per_page)]
        for number, chunk in enumerate(chunks, 1):
            yield zone, number, len(chunks), chunk


def _measures(size: Paper, grid: Grid) -> Mapping[str, Any]:
    width, height = size.size
    return {
        "paper": "A4" if size is Paper.A4 else "letter",
        "width": width,
        "height": height - 1,  # a rounding error must not make a white page
        "margin": MARGIN,
        "heading": HEADING,
        "padding": PADDING,
        "grid": grid,
        "across": round(grid.columns * grid.card_width, 3),
        "down": round(grid.rows * grid.card_height, 3),
        "lines": name_lines(grid),
        "small": round(max(2.4, min(4.2, grid.card_height * 0.045)), 2),
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tillbridge.qr_sheets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_=lambda text: str(_(text)), language=lambda: reader().language)
    return environment


# -- as files: SVG, PNG, and the name of a printed sheet


def sheet_name(store: str, zone: str | None) -> str:
    """Return the name of a sheet's file; a print for one zone has a file of its own."""
    return "-".join(filter(None, ("tables", store, slug(zone or "")))) + ".html"


def single_files(
    tables: list[QrTable], store: str, title: str, *, kind: str
) -> Mapping[str, bytes]:
    """Return the contents of a file a table (`kind`: svg or png) by the file's name."""
    ordered = in_order(tables)
    stems = file_stems(store, ((each.name, each.external_id) for each in ordered))
    files = {}
    for stem, each in zip(stems, ordered, strict=True):
        name = printable(each.name)
        code = code_of(name, each.url)
        label = ", ".join(filter(None, (name, printable(title))))
        files[f"{stem}.{kind}"] = png_file(code) if kind == "png" else svg_file(code, label)
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write the files, each whole or not at all; return their paths. Raises BridgeError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_write(folder / name, content) for name, content in files.items()]
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(
                path=failure.filename or folder, detail=failure.strerror or failure
            ),
            fix=_("Choose another folder with --out."),
        ) from failure


def _write(path: Path, content: bytes) -> Path:
    with NamedTemporaryFile(dir=path.parent, prefix=".tables-", delete=False) as beside:
        try:
            beside.write(content)
            beside.close()
            os.chmod(beside.name, 0o666 & ~_umask())  # noqa: PTH101 -- whoever prints it may read it
            Path(beside.name).replace(path)
        except BaseException:
            Path(beside.name).unlink(missing_ok=True)
            raise
    return path


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
