"""The printable sheet and the single files: safe, readable by a scanner, and well laid out."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import zxingcpp
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core.errors import BridgeError
from tillbridge.qr_sheets import (
    MARGIN,
    PADDING,
    Paper,
    QrTable,
    code_of,
    cut_marks,
    file_stems,
    grid_for,
    in_order,
    make_sheet,
    modules_across,
    name_size,
    png_file,
    printable,
    sheet_name,
    single_files,
    write_files,
)

NASTY = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7*7 }}{% raw %}",
    "<!-- -->",
    "</svg><svg onload=alert(1)>",
    "&lt;b&gt;&amp;",
    "\u202etxt.exe",
    "a\x00b\x1b[31mc\r\nd",
    "\ud800",
    "../../etc/passwd",
    "javascript:alert(1)",
    "W" * 300,
]


def table(number: int, name: str = "", zone: str = "", url: str = "") -> QrTable:
    address = url or f"https://order.example.net/store/st_main?table=qrt_{number:032x}"
    return QrTable(f"t{number}", name or f"Table {number}", zone, address)


def scanned(matrix: list[bytes]) -> list[zxingcpp.Barcode]:
    """What a scanner reads in grey pixels."""
    height, width = len(matrix), len(matrix[0])
    view = memoryview(b"".join(matrix)).cast("B", shape=[height, width])
    return zxingcpp.read_barcodes(view)


class Seen(HTMLParser):
    """The elements and attributes that a browser sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _value in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


PLAIN = Seen(make_sheet([table(1, zone="z")], "Store", size=Paper.A4, per_page=6).html)


@pytest.mark.parametrize("nasty", NASTY)
def test_whatever_the_till_calls_a_table_it_is_only_text(nasty: str) -> None:
    sheet = make_sheet(
        [QrTable(nasty, nasty, nasty, "https://x.example/" + nasty.replace("\ud800", ""))],
        nasty,
        size=Paper.A4,
        per_page=6,
    )
    seen = Seen(sheet.html)
    assert set(seen.tags) == set(PLAIN.tags)
    assert seen.attributes <= PLAIN.attributes
    assert printable(nasty)[:40] in seen.text
    sheet.html.encode("utf-8")


def test_the_sheet_loads_and_runs_nothing() -> None:
    html = make_sheet([table(1)], "Store", size=Paper.A4, per_page=6).html
    assert "<script" not in html
    assert "default-src 'none'" in html
    assert not re.search(r"\b(src|href)\s*=|url\(|@import", html)


@pytest.mark.parametrize("length", [1, 40, 80, 300, 1500])
def test_a_scanner_reads_the_address_back(length: int) -> None:
    url = "https://o.example/?t=" + "qR7_" * (length // 4 + 1)
    code = code_of("Table 1", url)
    rows = [bytes(0 if dark else 255 for dark in row) for row in code.matrix_iter(6, 4)]
    (found,) = scanned(rows)
    assert found.text == url
    assert found.ec_level in {"M", "Q", "H"}


def test_an_address_beyond_ascii_reads_alike_on_every_phone() -> None:
    code = code_of("Table 1", "https://o.example/café?t=a%20b&n=窓")
    rows = [bytes(0 if dark else 255 for dark in row) for row in code.matrix_iter(6, 4)]
    (found,) = scanned(rows)
    assert found.text == "https://o.example/caf%C3%A9?t=a%20b&n=%E7%AA%93"


def test_addresses_that_are_none_are_refused() -> None:
    for url in ("javascript:alert(1)", "", "order.example.net", "https://x.example/\ud800"):
        with pytest.raises(BridgeError, match="not a web address"):
            code_of("Table 1", url)
    with pytest.raises(BridgeError, match="too long"):
        code_of("Table 1", "https://o.example/" + "x" * 4000)


@given(per_page=st.integers(1, 30), size=st.sampled_from(Paper))
def test_what_is_on_a_page_fits_on_it(per_page: int, size: Paper) -> None:
    grid = grid_for(size, per_page)
    width, height = size.size
    assert grid.columns * grid.rows >= per_page
    assert grid.columns * grid.card_width <= width - 2 * MARGIN + 0.1
    assert grid.rows * grid.card_height < height - 2 * MARGIN
    assert 20 <= grid.code <= min(grid.card_width, grid.card_height) - 2 * PADDING
    assert len(cut_marks(grid, grid.columns * grid.rows)) == (grid.columns + 1) * (grid.rows + 1)


@given(name=st.text(max_size=400), per_page=st.integers(1, 30))
def test_a_name_always_has_a_readable_size(name: str, per_page: int) -> None:
    assert 2 < name_size(name, grid_for(Paper.A4, per_page)) <= 16


def test_zones_begin_pages_and_tables_stand_as_people_count() -> None:
    tables = [table(n, zone="Hall") for n in (10, 2, 1)] + [table(3, zone="Bar")]
    assert [each.name for each in in_order(tables)] == ["Table 3", "Table 1", "Table 2", "Table 10"]
    sheet = make_sheet(tables, "Store", size=Paper.LETTER, per_page=2)
    assert sheet.pages == 3
    assert re.findall(r'<h1 dir="auto">(.*?)</h1>', sheet.html) == ["Bar", "Hall", "Hall"]
    assert "size: letter" in sheet.html


def test_codes_too_fine_for_phones_are_told() -> None:
    long = table(1, url="https://o.example/" + "x" * 1200)
    assert make_sheet([long], "", size=Paper.A4, per_page=30).hard_to_scan
    assert not make_sheet([table(1)], "", size=Paper.A4, per_page=30).hard_to_scan


@given(st.lists(st.tuples(st.sampled_from([*NASTY, "Bar", "bar", "BAR", "窓", ""]), st.text())))
def test_file_names_are_safe_and_differ(named: list[tuple[str, str]]) -> None:
    stems = file_stems("main", named)
    assert len({stem.casefold() for stem in stems}) == len(named)
    for stem in stems:
        assert re.fullmatch(r"main-[a-z0-9-]{1,100}", stem)


def test_single_files_are_codes(tmp_path: Path) -> None:
    tables = [table(1, name) for name in ("Bar & 'co'", "<b>")]
    svg = single_files(tables, "main", "Store <1>", kind="svg")
    paths = write_files(tmp_path / "new" / "folder", svg)
    assert [path.name for path in paths] == ["main-b.svg", "main-bar-co.svg"]
    root = ET.fromstring(paths[1].read_bytes())
    assert root.findtext("{*}title") == "Bar & 'co', Store <1>"
    png = single_files(tables[:1], "main", "", kind="png")
    assert list(png) == ["main-bar-co.png"]
    assert png["main-bar-co.png"].startswith(b"\x89PNG")
    assert modules_across(code_of("x", tables[0].url)) * 20 == int.from_bytes(
        png_file(code_of("x", tables[0].url))[16:20]
    )


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BridgeError, match="cannot be written"):
        write_files(tmp_path / "file", {"a.html": b""})


def test_a_new_print_replaces_the_old_one(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.html": b"old"})
    write_files(tmp_path, {"a.html": b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_bytes() == b"new"
    assert sheet_name("main", None) == "tables-main.html"
    assert sheet_name("main", "../Garten & Co") == "tables-main-garten-co.html"
