"""DBF files as they come: they are read, or refused, and never cost more than they weigh."""

import random
import re
import shutil
import struct
import tracemalloc
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import dbfread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext, Catalogue, ExportUnreadable
from tillbridge_aloha.adapter import AlohaAdapter
from tillbridge_aloha.dbf import Table
from tillbridge_aloha.dbf_writing import Field, write_dbf
from tillbridge_aloha.options import AlohaOptions

CASES = Path(__file__).with_name("cases")
ALL = re.compile(".*")
FIELDS: list[Field] = [("ID", "N", 10, 0), ("LONGNAME", "C", 20, 0), ("PRICE", "N", 9, 3)]
TEXTS = st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=20)


def header(columns: int, length: int, record_size: int) -> bytes:
    """A header of columns that are all alike."""
    described = b"".join(
        struct.pack("<11sc4xBB14x", f"ITEM{number}".encode(), b"C", length, 0)
        for number in range(columns)
    )
    size = 32 + len(described) + 1
    return struct.pack("<4BIHH20x", 3, 126, 1, 2, 0, size, record_size) + described + b"\r"


@settings(deadline=None)  # files take their time on a machine that is busy
@given(
    st.lists(
        st.tuples(st.integers(0, 10**10 - 1), TEXTS, st.decimals(0, 9999, places=3)), max_size=5
    )
)
def test_a_table_is_read_as_another_reader_reads_it(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[int, str, Decimal]]
) -> None:
    path = tmp_path_factory.mktemp("dbf") / "ITM.DBF"
    rows: list[Mapping[str, object]] = [
        {"ID": number, "LONGNAME": name, "PRICE": price, "*": number % 2}
        for number, name, price in records
    ]
    write_dbf(path, FIELDS, rows, encoding="cp1252")
    theirs = [
        (str(row["ID"]), row["LONGNAME"], row["PRICE"])
        for row in dbfread.DBF(str(path), encoding="cp1252")
    ]
    ours = [
        (row["id"], row.get("longname", ""), float(row["price"]))
        for row in Table.of("ITM.DBF", path.read_bytes(), ALL).rows("cp1252")
    ]
    assert ours == theirs


def test_columns_that_do_not_add_up_to_a_record_are_refused() -> None:
    content = header(2000, 255, 2) + b" " * 70_000  # every second byte would be 510,000
    tracemalloc.start()
    with pytest.raises(ExportUnreadable, match=r"510001 bytes wide, and its records 2\.") as told:
        Table.of("ITM.DBF", content, ALL)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert not told.value.passing


def test_a_table_with_more_cells_than_any_till_has_is_refused() -> None:
    content = header(2000, 1, 2001) + b" " * (2001 * 1001)
    with pytest.raises(ExportUnreadable, match="it has 1001 records, more than any menu"):
        Table.of("MOD.DBF", content, ALL)


@pytest.mark.parametrize("cut", [10, 40, 300])
def test_a_file_that_is_cut_short_is_still_being_written(cut: int, tmp_path: Path) -> None:
    write_dbf(tmp_path / "ITM.DBF", FIELDS, [{"ID": 1, "LONGNAME": "Soup", "PRICE": 4}] * 9)
    with pytest.raises(ExportUnreadable, match="still being written") as told:
        Table.of("ITM.DBF", (tmp_path / "ITM.DBF").read_bytes()[:cut], ALL)
    assert told.value.passing


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        ("L", b"T", "Y"),
        ("L", b"?", ""),
        ("I", struct.pack("<i", -7), "-7"),
        ("Y", struct.pack("<q", 45000), "4.5000"),
        ("B", struct.pack("<d", 4.5), "4.5"),
        ("D", b"20260101", "20260101"),
        ("N", b" 4,50 ", "4.50"),
        ("N", b"*****", "*****"),
        ("?", b"xyz", "xyz"),
    ],
)
def test_a_cell_of_any_kind_is_a_text(kind: str, cell: bytes, text: str) -> None:
    described = struct.pack("<11sc4xBB14x", b"PRICE", kind.encode(), len(cell), 0)
    head = struct.pack("<4BIHH20x", 3, 126, 1, 2, 1, 65, 1 + len(cell))
    (row,) = Table.of("ITM.DBF", head + described + b"\r" + b" " + cell, ALL).rows("cp1252")
    assert row.get("price", "") == text


@settings(deadline=None)  # files take their time on a machine that is busy
@given(st.randoms(use_true_random=False), st.sampled_from(["declared_modifiers", "cyrillic"]))
def test_a_folder_with_other_bytes_is_read_or_unreadable(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, case: str
) -> None:
    folder = tmp_path_factory.mktemp("mutated") / "DATA"
    shutil.copytree(CASES / case, folder)
    for path in chance.sample([*folder.glob("*.[dD][bB][fF]")], 2):
        content = bytearray(path.read_bytes())
        # Half of the time in what says how the rest is to be read.
        end = chance.choice([min(300, len(content)), len(content)])
        for _ in range(chance.randint(1, 6)):
            content[chance.randrange(end)] = chance.choice([0, 0x0D, 0x20, 0xFF, 0x43, 0x44, 0x4E])
        path.write_bytes(content)
    found: Catalogue | ExportUnreadable
    try:
        found = AlohaAdapter(
            AlohaOptions(folder=Path()), AdapterContext("main", "USD", "loc", folder)
        ).read_catalogue()
    except ExportUnreadable as failure:
        found = failure
    assert isinstance(found, Catalogue) or found.fix
