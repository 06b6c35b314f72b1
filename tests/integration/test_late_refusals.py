"""What an adapter lets through and the bridge refuses names file, row, column, value and remedy."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tillbridge.adapter import (
    AdapterContext,
    Catalogue,
    Item,
    ReadsAvailability,
    ReadsCatalogue,
    ReadsTables,
)
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.adapter.registration import closing
from tillbridge.model.money import MAX_PRICE
from tillbridge.pos.kit import find_kit
from tillbridge.pos.loader import find_adapter
from tillbridge.pos.validation import valid_availability, valid_catalogue, valid_tables

TOO_MUCH = MAX_PRICE + 100
LONG = "x" * 30_000
LONG_ID = "x" * 600
CLOVER = ("Clover ID", "Name", "Price", "Price Type", "Hidden?")
LOYVERSE = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar]\n"
)
FOLDER = "external_id,name,price,description\n"
SQUARE = "Reference Handle,Token,Item Name,Variation Name,Description,Price\n"


def read(name: str, options: Mapping[str, Any], folder: Path) -> Catalogue:
    """Return what the bridge goes on with, of an adapter on the files in a folder."""
    adapter = find_adapter(name)
    context = AdapterContext(store="s", currency="EUR", location_id="l", base_dir=folder)
    pos = adapter.open(adapter.options.model_validate(options), context)
    with closing(pos):
        assert isinstance(pos, ReadsCatalogue)
        return valid_catalogue(pos.read_catalogue())


@pytest.mark.parametrize(
    ("name", "place", "column"),
    [
        ("aloha", "ITM.DBF, record 2", "PRICE"),
        ("odoo", 'Odoo, product.template 2 "Soup"', "list_price"),
    ],
)
def test_a_price_beyond_all_prices(name: str, place: str, column: str, tmp_path: Path) -> None:
    kind = find_kit(name).rig
    assert kind is not None
    rig = kind(tmp_path)
    try:
        rig.sell([Item("a", "Tea", 200), Item("b", "Soup", TOO_MUCH)], "EUR")
        pos = rig.open()
        assert isinstance(pos, ReadsCatalogue)
        found = valid_catalogue(pos.read_catalogue())
    finally:
        rig.close_opened()
        rig.close()
    assert [item.name for item in found.items.values()] == ["Tea"]
    [row] = found.bad_rows
    assert (row.place, row.field, row.value) == (place, column, str(TOO_MUCH))
    assert row.text.startswith(f"{column} ({TOO_MUCH}) ")
    assert row.fix


def database(*extra: str) -> Callable[[Path], dict[str, Any]]:
    """Return what makes a database with a soup, and says how it is asked."""

    def make(folder: Path) -> dict[str, Any]:
        with sqlite3.connect(folder / "till.db") as till:
            till.execute("CREATE TABLE soup (price, size, salt)")
            till.execute("INSERT INTO soup VALUES (?, ?, ?)", (1, 1, 1))
        queries = (
            "-- name: items\nSELECT 't' AS external_id, 'Tea' AS name, 2 AS price FROM soup"
            " UNION ALL SELECT 's', 'Soup', {0} FROM soup;\n"
            "-- name: variants\nSELECT 's' AS item_id, 'large' AS external_id,"
            " 'Large' AS variant_name, {1} AS price FROM soup;\n"
            "-- name: item_addon_groups\nSELECT 't' AS item_id, 'g' AS group_id FROM soup;\n"
            "-- name: addon_groups\nSELECT 'g' AS external_id, 'Extras' AS name FROM soup;\n"
            "-- name: addons\nSELECT 'salt' AS external_id, 'Salt' AS name, {2} AS price,"
            " 'g' AS group_id FROM soup;\n"
        )
        (folder / "q.sql").write_text(queries.format(*extra))
        return {"url": "sqlite:///till.db", "queries": "q.sql"}

    return make


def clover(folder: Path) -> dict[str, Any]:
    rows = [CLOVER, ["t", "Tea", "2", "Fixed", "No"], [LONG_ID, "Soup", "2", "Fixed", "No"]]
    write_workbook(folder / "menu.xlsx", {"Items": rows})
    return {"export": "menu.xlsx"}


def export(name: str, text: str, option: str = "export") -> Callable[[Path], dict[str, Any]]:
    """Return what writes the file, and the option that names it."""

    def make(folder: Path) -> dict[str, Any]:
        (folder / name).write_text(text, "utf-8")
        return {option: name}

    return make


def square(identity: str, **data: object) -> Mapping[str, Any]:
    """Return an item of a Square catalog."""
    variation = {
        "id": f"{identity}-v",
        "type": "ITEM_VARIATION",
        "item_variation_data": {"price_money": {"amount": data.pop("amount", 200)}},
    }
    return {
        "id": identity,
        "type": "ITEM",
        "item_data": {"name": identity, "variations": [variation], **data},
    }


EXTRAS = {
    "id": "L",
    "type": "MODIFIER_LIST",
    "modifier_list_data": {
        "name": "Extras",
        "modifiers": [
            {"id": "M", "modifier_data": {"name": "Salt", "price_money": {"amount": TOO_MUCH}}}
        ],
    },
}
TEA = {"external_id": "t", "name": "Tea", "price": 200}


@pytest.mark.parametrize(
    ("name", "till", "place", "column"),
    [
        ("sql", database(str(10**13), "1", "1"), "items, row 2", "price"),
        ("sql", database("1", str(10**13), "1"), "variants, row 1", "price"),
        ("sql", database("1", "1", str(10**13)), "addons, row 1", "price"),
        ("clover", clover, "menu.xlsx, sheet Items, row 3", "Clover ID"),
        (
            "loyverse",
            export(
                "menu.csv", f"{LOYVERSE}t,1,Tea{',' * 14},Y,2\n{LONG_ID},2,Soup{',' * 14},Y,2\n"
            ),
            "menu.csv, row 3",
            "Handle",
        ),
        (
            "square",
            export("library.csv", f"{SQUARE},t,Tea,,,2\n,s,Soup,,{LONG},2\n"),
            "library.csv, row 3",
            "Description",
        ),
        (
            "square",
            export("c.json", json.dumps({"objects": [square("t"), square("s", amount=TOO_MUCH)]})),
            "c.json, item 2 (s)",
            "price_money.amount",
        ),
        (
            "square",
            export(
                "c.json",
                json.dumps(
                    {
                        "objects": [
                            EXTRAS,
                            square("t"),
                            square("s", modifier_list_info=[{"modifier_list_id": "L"}]),
                        ]
                    }
                ),
            ),
            "c.json, modifier list 1 (L)",
            "modifier_data.price_money.amount",
        ),
        (
            "folder",
            export(
                "menu.csv",
                f"{FOLDER}t,Tea,2,\ns,Soup,2,{LONG}\n",
                "menu",
            ),
            "menu.csv, row 3",
            "description",
        ),
        (
            "folder",
            export(
                "menu.json",
                json.dumps(
                    {
                        "menu_name": "M",
                        "items": [TEA, {**TEA, "external_id": "s", "description": LONG}],
                    }
                ),
                "menu",
            ),
            "menu.json, item 2",
            "description",
        ),
    ],
)
def test_what_only_the_bridge_refuses(
    name: str,
    till: Callable[[Path], dict[str, Any]],
    place: str,
    column: str,
    tmp_path: Path,
) -> None:
    found = read(name, till(tmp_path), tmp_path)
    row = found.bad_rows[0]
    assert (row.place, row.field) == (place, column)
    assert row.text.startswith(f"{column} (")
    assert row.value
    assert row.fix


def test_seats_and_ends_that_only_the_bridge_refuses(tmp_path: Path) -> None:
    text = "external_id,name,Plätze\nt1,One,4\nt2,Two,99999\n"
    (tmp_path / "tables.csv").write_text(text, "utf-8")
    context = AdapterContext(store="s", currency="EUR", location_id="l", base_dir=tmp_path)
    options = {"tables": "tables.csv", "columns": {"seats": "Plätze"}}
    folder = find_adapter("folder")
    with closing(pos := folder.open(folder.options.model_validate(options), context)):
        assert isinstance(pos, ReadsTables)
        [row] = valid_tables(pos.read_tables()).bad_rows
    assert (row.place, row.field, row.value) == ("tables.csv, row 3", "Plätze", "99999")
    queries = (
        "-- name: availability\n"
        "SELECT 's' AS external_id, 0 AS available, '1999-01-01' AS snooze_until"
    )
    (tmp_path / "q.sql").write_text(queries)
    sql = find_adapter("sql")
    options = {"url": "sqlite:///till.db", "queries": "q.sql"}
    sqlite3.connect(tmp_path / "till.db").close()
    with closing(pos := sql.open(sql.options.model_validate(options), context)):
        assert isinstance(pos, ReadsAvailability)
        [row] = valid_availability(pos.read_availability()).bad_rows
    assert (row.place, row.field) == ("availability, row 1", "snooze_until")
