"""Workbooks as they come: whatever they claim, they must not take the bridge's memory."""

import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge.adapter.xlsx_extent import MOST_CELLS, far_corner

ROWS = [["id", "name"], ["1", "Soup"]]


def with_a_cell_at(path: Path, cell: str) -> Path:
    """Write a small table, and one blank far from it."""
    write_workbook(path, {"Items": ROWS})
    far = path.with_name("far.xlsx")
    with zipfile.ZipFile(path) as small, zipfile.ZipFile(far, "w") as other:
        for name in small.namelist():
            part = small.read(name)
            row = re.sub(r"[A-Z]+", "", cell)
            stray = f'<row r="{row}"><c r="{cell}" t="inlineStr"><is><t> </t></is></c></row>'
            other.writestr(name, part.replace(b"</sheetData>", f"{stray}</sheetData>".encode()))
    return far


@pytest.mark.parametrize("cell", ["XFD1048576", "ZZZ20000", "ALM9001"])
def test_a_stray_blank_far_away_is_told_and_not_read(cell: str, tmp_path: Path) -> None:
    path = with_a_cell_at(tmp_path / "items.xlsx", cell)
    with pytest.raises(ExportUnreadable, match=f"reaches to cell {cell}") as told:
        XlsxExport(path).read()
    assert not told.value.passing


@pytest.mark.parametrize("cell", ["C40", "AB2000", "D20000"])
def test_a_stray_blank_nearby_changes_nothing(cell: str, tmp_path: Path) -> None:
    sheet = XlsxExport(with_a_cell_at(tmp_path / "items.xlsx", cell)).read()["Items"]
    assert [(number, [each for each in cells if each]) for number, cells in sheet.rows] == [
        (number, cells) for number, cells in enumerate(ROWS, 1)
    ]


@given(st.integers(1, 16_384), st.integers(1, 1_048_576))
def test_whatever_reaches_too_far_is_found(column: int, row: int) -> None:
    letters, left = "", column
    while left:
        left, last = divmod(left - 1, 26)
        letters = chr(ord("A") + last) + letters
    sheet = f'<x:row r="{row}"><x:c s="1" r="{letters}{row}"/></x:row>'.encode()
    assert far_corner(sheet) == (f"{letters}{row}" if column * row > MOST_CELLS else "")
