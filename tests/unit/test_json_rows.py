"""A record that is wrong costs itself alone, and says what is wrong with it."""

from decimal import Decimal
from typing import Any

from tillbridge.adapter import BadRow
from tillbridge.adapter.json_rows import RowReader, read_rows
from tillbridge.model.money import to_minor


def test_each_row_that_is_wrong_becomes_a_bad_row_with_its_place() -> None:
    rows: list[Any] = [
        {"id": 1, "price": "4.50"},
        {"id": 2},
        {"id": 3, "price": "ask\nus"},
        {"id": 4, "price": None},
        "no row",
        {"id": 6, "price": "4.5O", "of": Decimal},
        {"id": 7, "price": "4.50", "of": lambda text: text.amount},
    ]
    bad_rows: list[BadRow] = []
    made = read_rows(
        rows,
        lambda row: to_minor(row.get("of", str)(row["price"]), "EUR"),
        bad_rows,
        place="GET /menu, product",
        fix="Correct it in the till.",
    )
    assert made == [450]
    assert [(each.place, each.external_id) for each in bad_rows] == [
        ("GET /menu, product 2", "2"),
        ("GET /menu, product 3", "3"),
        ("GET /menu, product 4", "4"),
        ("GET /menu, product 5", ""),
        ("GET /menu, product 6", "6"),
        ("GET /menu, product 7", "7"),
    ]
    assert bad_rows[0].text == "It has no 'price'."
    assert bad_rows[4].text == "An amount in it is no number."
    assert {each.fix for each in bad_rows} == {"Correct it in the till."}
    assert all("\n" not in each.text for each in bad_rows)


def test_the_parts_of_a_menu_share_their_bad_rows() -> None:
    read = RowReader("Correct it in the till.", id_field="plu")
    assert read("products", [{"plu": 1, "price": 4}, {"plu": 2}], lambda row: row["price"]) == [4]
    assert read("extras", [{"plu": 3}], lambda row: row["price"]) == []
    assert [(each.place, each.external_id, each.fix) for each in read.bad_rows] == [
        ("products 2", "2", "Correct it in the till."),
        ("extras 1", "3", "Correct it in the till."),
    ]
