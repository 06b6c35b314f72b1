"""The printable sheet: one HTML file that needs nothing else, cards by zone, ready to cut."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tillbridge.core.i18n import _
from tillbridge.qr_sheets import paper
from tillbridge.qr_sheets.codes import code_of, inline_svg, modules_across
from tillbridge.qr_sheets.paper import Grid, Paper, cut_marks, grid_for, name_lines, name_size
from tillbridge.qr_sheets.texts import printable


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
        return self.finest_module_mm < paper.SMALLEST_MODULE


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
        "margin": paper.MARGIN,
        "heading": paper.HEADING,
        "padding": paper.PADDING,
        "grid": grid,
        "across": round(grid.columns * grid.card_width, 3),
        "down": round(grid.rows * grid.card_height, 3),
        "lines": name_lines(grid),
        "small": round(max(2.4, min(4.2, grid.card_height * 0.045)), 2),
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tillbridge.qr_sheets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_=_)
    return environment
