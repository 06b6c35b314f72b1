"""CSV that a spreadsheet opens without doing what a customer wrote."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile import CORPUS
from tillbridge.web.rendering import csv_bytes, csv_file

_SIGNS = tuple("=+-@|%\t\r\n\uff1d\uff0b\uff0d\uff20")


def read_back(data: bytes) -> list[list[str]]:
    text = data.decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_every_hostile_text_is_one_harmless_cell() -> None:
    rows = read_back(csv_bytes(["name", "note", "amount"], [[each, each, -5] for each in CORPUS]))
    assert len(rows) == len(CORPUS) + 1
    for row in rows[1:]:
        assert len(row) == 3
        assert row[2] == "-5"
        assert not row[0].startswith(_SIGNS)
        assert row[0].isprintable() or "\u3000" in row[0]


@given(st.text())
def test_no_text_begins_as_a_formula(text: str) -> None:
    _heads, row = read_back(csv_bytes(["a", "b"], [[text, 1]]))
    assert len(row) == 2
    assert not row[0].lstrip().startswith(_SIGNS)


def test_plain_text_and_numbers_stay_as_they_are() -> None:
    rows = read_back(csv_bytes(["Größe", "n"], [['Bob "B" Miller, jr', 3], ["", None], ["x", 1.5]]))
    assert rows == [["Größe", "n"], ['Bob "B" Miller, jr', "3"], ["", ""], ["x", "1.5"]]


def test_a_browser_saves_it_under_its_name() -> None:
    answer = csv_file("orders.csv", ["a"], [["1"]])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="orders.csv"'
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
