from pathlib import Path

import pytest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.csv_export import CsvExport, CsvTable


def read(folder: Path, content: bytes, **options: object) -> CsvTable:
    path = folder / "items.csv"
    path.write_bytes(content)
    return CsvExport(path, **options).read()  # type: ignore[arg-type]  # each test knows the options


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_usual_encodings_are_found_out(tmp_path: Path, encoding: str) -> None:
    table = read(tmp_path, "id,name\r\n1,Crème brûlée\r\n".encode(encoding))
    assert table.header == ("id", "name")
    assert table.rows == ((2, ["1", "Crème brûlée"]),)
    assert table.place(2) == "items.csv, row 2"


def test_rows_are_numbered_as_a_spreadsheet_does(tmp_path: Path) -> None:
    table = read(tmp_path, b'Report\nid;name\n\n1;"two\nlines"\n2;x\n', delimiter=";", header_row=2)
    assert [number for number, _fields in table.rows] == [4, 5]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b'id,name\n1,"Sou', "ends inside a quotation"),
        (b"id,name,price\n1,Soup", "ends in the middle of row 2"),
        ("id,name\n1,Crè".encode()[:-1], "ends inside a character"),
    ],
)
def test_half_a_file_is_still_being_written(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ExportUnreadable, match=words) as caught:
        read(tmp_path, content)
    assert caught.value.passing
    assert caught.value.fix


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"id,name\n1,\xff\xfe\xfd\n", {"encoding": "utf-8"}, "not written in utf-8"),
        (b'id,name\n1,"So"up\n', {}, "not a table from line 2"),
    ],
)
def test_a_file_that_is_wrong_says_what_to_do(
    tmp_path: Path, content: bytes, options: dict[str, object], words: str
) -> None:
    with pytest.raises(ExportUnreadable, match=words) as caught:
        read(tmp_path, content, **options)
    assert not caught.value.passing
    assert caught.value.fix


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExportUnreadable, match="is not there"):
        CsvExport(tmp_path / "items.csv").read()
