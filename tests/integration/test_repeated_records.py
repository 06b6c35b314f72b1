"""A record that an export has twice is one; two that differ and share an id are none of one."""

import csv
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tillbridge.adapter import AdapterContext, Catalogue, ReadsCatalogue
from tillbridge.adapter.conformance.changes import Told
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.adapter.registration import closing
from tillbridge.pos.loader import find_adapter
from tillbridge_aloha.dbf_writing import write_dbf
from tillbridge_aloha.rig import CAT, CIT, ITM

Row = Sequence[str]

CLOVER = ["Clover ID", "Name", "Price", "Variant Option", "Hidden?"]
LOYVERSE = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar]"
).split(",")
SQUARE = ["Reference Handle", "Token", "Item Name", "Variation Name", "Price"]
FOLDER = ["external_id", "name", "price", "parent_id"]
SQL = """-- name: items
SELECT id AS external_id, name, price FROM t WHERE parent = '' ORDER BY rowid
-- name: variants
SELECT parent AS item_id, id AS external_id, name AS variant_name, price
FROM t WHERE parent <> '' ORDER BY rowid
"""


def clover(folder: Path, rows: Sequence[Row]) -> Mapping[str, Any]:
    write_workbook(folder / "menu.xlsx", {"Items": [CLOVER, *rows]})
    return {"export": "menu.xlsx"}


def of_csv(header: Row, option: str) -> Callable[[Path, Sequence[Row]], Mapping[str, Any]]:
    def make(folder: Path, rows: Sequence[Row]) -> Mapping[str, Any]:
        with (folder / "menu.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return {option: "menu.csv"}

    return make


def database(folder: Path, rows: Sequence[Row]) -> Mapping[str, Any]:
    values = ", ".join(str(tuple(row)) for row in rows)
    text = f"CREATE TABLE t (id, name, price, parent); INSERT INTO t VALUES {values}"
    (folder / "dump.sql").write_text(text)
    (folder / "q.sql").write_text(SQL)
    return {"url": "sqlite://", "dump": "dump.sql", "queries": "q.sql"}


def aloha(folder: Path, rows: Sequence[Row]) -> Mapping[str, Any]:
    items = [{"ID": row[0], "LONGNAME": row[1], "PRICE": Decimal(row[2])} for row in rows]
    write_dbf(folder / "ITM.DBF", ITM, items)
    write_dbf(folder / "CAT.DBF", CAT, [])
    write_dbf(folder / "CIT.DBF", CIT, [])
    return {"folder": "."}


def loyverse(handle: str, sku: str, name: str, size: str = "", price: str = "2") -> Row:
    row = [""] * len(LOYVERSE)
    row[:3], row[6:8], row[-2:] = [handle, sku, name], ["Size" if size else "", size], ["Y", price]
    return row


TILLS: Mapping[str, tuple[Callable[[Path, Sequence[Row]], Mapping[str, Any]], Sequence[Row]]] = {
    "aloha": (aloha, [("1", "Tea", "2"), ("2", "Soup", "5")]),
    "clover": (
        clover,
        [
            ("T", "Tea", "2", "", ""),
            ("S", "Soup", "5", "Small", ""),
            ("L", "Soup", "7", "Large", ""),
        ],
    ),
    "folder": (
        of_csv(FOLDER, "menu"),
        [("t", "Tea", "2", ""), ("s", "Soup", "", ""), ("l", "Large", "7", "s")],
    ),
    "loyverse": (
        of_csv(LOYVERSE, "export"),
        [
            loyverse("tea", "1", "Tea"),
            loyverse("soup", "2", "Soup", "Small"),
            loyverse("soup", "3", "", "Large", "7"),
        ],
    ),
    "sql": (database, [("t", "Tea", "2", ""), ("s", "Soup", "5", ""), ("l", "Large", "7", "s")]),
    "square": (
        of_csv(SQUARE, "export"),
        [
            ("", "T", "Tea", "", "2"),
            ("", "S", "Soup", "Small", "5"),
            ("", "L", "Soup", "Large", "7"),
        ],
    ),
}
PRICE_AT = {"aloha": 2, "clover": 2, "folder": 2, "loyverse": -1, "sql": 2, "square": -1}


def read(name: str, rows: Sequence[Row], folder: Path, told: Told | None = None) -> Catalogue:
    adapter = find_adapter(name)
    options = adapter.options.model_validate(TILLS[name][0](folder, rows))
    context = AdapterContext(store="s", currency="EUR", location_id="l", base_dir=folder)
    pos = adapter.open(options, context)
    with closing(pos):
        assert isinstance(pos, ReadsCatalogue)
        if told is not None:
            told.follow(pos)
        return pos.read_catalogue()


@pytest.mark.parametrize("name", TILLS)
def test_a_record_that_stands_there_twice_is_one(name: str, tmp_path: Path) -> None:
    rows = list(TILLS[name][1])
    told = Told()
    once = read(name, rows, tmp_path, told)
    assert once.bad_rows == ()
    for place in range(len(rows)):
        again = read(name, [*rows, rows[place]], tmp_path, told)
        assert (again.items, again.bad_rows) == (once.items, ()), rows[place]
    twice = read(name, [row for row in rows for _ in range(2)], tmp_path, told)
    assert (twice.items, twice.bad_rows) == (once.items, ())


@pytest.mark.parametrize("name", TILLS)
def test_two_records_with_one_id_that_differ_are_told(name: str, tmp_path: Path) -> None:
    rows = [list(row) for row in TILLS[name][1]]
    for row in rows[:]:
        other = list(row)
        other[PRICE_AT[name]] = "9"
        found = read(name, [*rows, other], tmp_path)
        assert found.bad_rows, other
        assert all(bad.place and bad.fix for bad in found.bad_rows)
