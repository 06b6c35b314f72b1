"""CSV exports of tills as they come: saved by whatever program, with whatever above the header."""

from pathlib import Path

import pytest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.modifier_file import read_modifiers

ROWS = [["1", "Tea, green", "2.50"], ["2", "Soup; hot", "7"]]


@pytest.mark.parametrize(
    "text",
    [
        'id,name,price\n1,"Tea, green",2.50\n2,Soup; hot,7\n',
        'id;name;price\r\n1;Tea, green;2.50\r\n2;"Soup; hot";7\r\n',
        "id\tname\tprice\n1\tTea, green\t2.50\n2\tSoup; hot\t7\n",
        'sep=;\nid;"name, and; more";price\n1;Tea, green;2.50\n2;"Soup; hot";7\n',
        '\n,,\nid,name,price\n\n1,"Tea, green",2.50\n2,Soup; hot,7\n,,\n',
    ],
    ids=["commas", "semicolons", "tabs", "hint of Excel", "blank rows"],
)
def test_a_table_is_read_whatever_parts_its_columns(tmp_path: Path, text: str) -> None:
    path = tmp_path / "items.csv"
    path.write_text(text, "utf-8", newline="")
    table = CsvExport(path).read()
    assert table.header[0] == "id"
    assert [fields for _number, fields in table.rows] == ROWS


def test_a_row_is_told_by_the_number_a_spreadsheet_shows(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("\nid;name\n\n1;Tea\n", "utf-8")
    table = CsvExport(path).read()
    assert [table.place(number) for number, _fields in table.rows] == ["items.csv, row 4"]


def test_blank_rows_only_are_a_file_still_being_written(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("\n\n", "utf-8")
    with pytest.raises(ExportUnreadable) as told:
        CsvExport(path).read()
    assert told.value.passing


def test_a_modifier_that_lowers_the_price_is_refused_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "modifiers.csv"
    path.write_text(
        "modifier,option,price\nMilk,Oat,0.60\nMilk,None,-0.50\nSyrup,Hazel,0.40\n", "utf-8"
    )
    found = read_modifiers(path, "EUR")
    assert list(found.add_ons) == ["Syrup/Hazel"]
    assert list(found.refused) == ["Milk"]
    assert [row.place for row in found.bad_rows] == ["modifiers.csv, row 3"]


@pytest.mark.parametrize(("end", "ended"), [("\n", True), ("\r\n", True), ("", False)])
def test_a_table_knows_whether_its_file_ends_with_a_line_end(
    tmp_path: Path, end: str, *, ended: bool
) -> None:
    path = tmp_path / "menu.csv"
    path.write_bytes(f"id,name\n1,Soup{end}".encode())
    assert CsvExport(path).read().ends_with_newline is ended
