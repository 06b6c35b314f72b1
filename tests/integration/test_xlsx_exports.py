"""Workbooks as they come: whatever they claim, they take neither the bridge nor its memory."""

import re
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.adapter.xlsx_export import XlsxExport

ROWS = [["id", "name"], ["1", "Soup"]]
SHEET = "xl/worksheets/sheet1.xml"
STRAY = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row>'


def workbook(folder: Path) -> Path:
    path = folder / "items.xlsx"
    write_workbook(path, {"Items": ROWS})
    return path


def changed(path: Path, change: Callable[[str, bytes], tuple[str, bytes]]) -> Path:
    """Rewrite the members of an archive, each by its name and its content."""
    with zipfile.ZipFile(path) as archive:
        parts = [change(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return path


def with_a_row(path: Path, row: str) -> Path:
    """Add a row to the sheet as it stands."""
    end = b"</sheetData>"
    return changed(path, lambda name, part: (name, part.replace(end, row.encode() + end)))


def unreadable(path: Path) -> ExportUnreadable:
    with pytest.raises(ExportUnreadable) as told:
        XlsxExport(path).read()
    assert told.value.place == path.name
    assert told.value.fix
    return told.value


@pytest.mark.parametrize(
    "row",
    [
        STRAY,
        STRAY.replace('"', "'"),
        STRAY.replace(" r=", "\nr=", 1),
        STRAY.replace(" r=", " r = "),
        STRAY.replace("</row>", "</row >"),
        STRAY.replace("XFD1048576", "xfd1048576"),
        STRAY.replace("</row>", '<c r="A1048576"><v>1</v></c></row>'),
        STRAY.replace("1048576", "20000").replace("XFD", "ZZZ"),
    ],
)
def test_a_cell_far_away_costs_one_reading_and_no_more(row: str, tmp_path: Path) -> None:
    told = unreadable(with_a_row(workbook(tmp_path), row))
    assert "is no workbook" in told.text or (
        told.text == "items.xlsx needs more than 320 MB of memory to be read."
        and "Delete all rows below the table" in told.fix
    )
    assert not told.passing


def test_a_cell_far_away_in_a_sheet_of_another_folder_is_no_different(tmp_path: Path) -> None:
    path = changed(
        with_a_row(workbook(tmp_path), STRAY),
        lambda name, part: (
            name.replace("worksheets", "sheets"),
            part.replace(b"worksheets/", b"sheets/"),
        ),
    )
    assert "needs more than 320 MB" in unreadable(path).text


@pytest.mark.parametrize("cell", ["C40", "AB2000", "D20000"])
def test_a_stray_blank_nearby_changes_nothing(cell: str, tmp_path: Path) -> None:
    row = re.sub(r"[A-Z]+", "", cell)
    stray = f'<row r="{row}"><c r="{cell}" t="inlineStr"><is><t> </t></is></c></row>'
    sheet = XlsxExport(with_a_row(workbook(tmp_path), stray)).read()["Items"]
    assert [(number, [each for each in cells if each]) for number, cells in sheet.rows] == [
        (number, cells) for number, cells in enumerate(ROWS, 1)
    ]


def test_a_part_that_unpacks_to_more_than_it_says_is_damaged(tmp_path: Path) -> None:
    path = with_a_row(workbook(tmp_path), "<row>" + " " * (200 << 20) + "</row>")
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\1\2", content.rindex(SHEET.encode()) - 46)
    struct.pack_into("<I", content, directory + 24, 1000)
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert unreadable(path).text.startswith("items.xlsx is damaged: ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_a_part_that_unpacks_to_far_too_much_is_not_unpacked(tmp_path: Path) -> None:
    path = with_a_row(workbook(tmp_path), " " * (257 << 20))
    assert "unpacks to more than 256 MB" in unreadable(path).text


def test_a_byte_that_was_changed_on_the_way_never_becomes_another_id(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    path.write_bytes(path.read_bytes().replace(b">Soup<", b">Soap<"))
    told = unreadable(path)
    assert told.text == f"items.xlsx is damaged: Bad CRC-32 for file '{SHEET}'."
    assert not told.passing


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"id,name\r\n1,Soup\r\n", "is text, such as CSV, under another name"),
        ("id;name\n1;Süß\n".encode("cp1252"), "is text, such as CSV, under another name"),
        ("id\tname\n".encode("utf-16"), "is text, such as CSV, under another name"),
        (b"<html><table><tr><td>1</td></tr></table>", "is a web page or XML under another name"),
        (b'\xef\xbb\xbf\n <?xml version="1.0"?><Workbook/>', "is a web page or XML under"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000), "is a workbook of Excel 97 to 2003"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "is protected by a password",
        ),
        (b"\x00\x01\x02 no text at all", "it is neither an archive nor text"),
    ],
)
def test_what_is_only_called_a_workbook_is_told_as_what_it_is(
    content: bytes, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "items.xlsx"
    path.write_bytes(content)
    told = unreadable(path)
    assert text in told.text
    assert not told.passing


def test_a_workbook_that_is_cut_short_is_still_being_written(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    told = unreadable(path)
    assert "is no complete workbook; it is probably still being written" in told.text
    assert told.passing


def test_an_archive_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "items.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no workbook")
    assert "is no workbook that can be read" in unreadable(path).text


def test_a_workbook_without_a_sheet_is_told(tmp_path: Path) -> None:
    path = changed(
        workbook(tmp_path),
        lambda name, part: (name, re.sub(rb"<sheets>.*</sheets>", b"<sheets></sheets>", part)),
    )
    assert "it has no sheet" in unreadable(path).text


@given(data=st.data())
def test_a_workbook_with_other_bytes_is_read_or_unreadable(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = workbook(tmp_path_factory.mktemp("mutated"))

    def mutated(content: bytes) -> bytes:
        found = bytearray(content)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(found) - 1))
            found[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        return bytes(found)

    inside = data.draw(st.sampled_from([None, SHEET, "xl/workbook.xml", "[Content_Types].xml"]))
    if inside is None:
        path.write_bytes(mutated(path.read_bytes()))
    else:
        changed(path, lambda name, part: (name, mutated(part) if name == inside else part))
    assert all(result(path))


def result(path: Path) -> tuple[object, ...]:
    """What a person gets: sheets, or a text and a remedy."""
    try:
        return (XlsxExport(path).read(),)
    except ExportUnreadable as failure:
        return failure.text, failure.fix, failure.place


def merging(path: Path, *ranges: str) -> Path:
    """Merge cells of the sheet."""
    cells = "".join(f'<mergeCell ref="{each}"/>' for each in ranges)
    end, merged = b"</sheetData>", f'<mergeCells count="{len(ranges)}">{cells}</mergeCells>'
    return changed(path, lambda name, part: (name, part.replace(end, end + merged.encode())))


def test_a_cell_merged_over_rows_stands_in_each_of_them(tmp_path: Path) -> None:
    path = tmp_path / "items.xlsx"
    rows = [["Menu", "", ""], ["group", "id", "name"]]
    rows += [["Starters", "1", "Soup"], ["", "2", "Salad"], ["", "", ""], ["", "4", "Tea"]]
    write_workbook(path, {"Items": rows})
    (sheet,) = XlsxExport(merging(path, "A1:C1", "A3:A5", "ZZ1:ZZ9", "A9:A1048576")).read().values()
    assert [list(row) for _number, row in sheet.rows] == [
        ["Menu", "", ""],
        ["group", "id", "name"],
        ["Starters", "1", "Soup"],
        ["Starters", "2", "Salad"],
        ["", "4", "Tea"],
    ]
