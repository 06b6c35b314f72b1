"""What of a till's tables is sold online, and what is told of the rest."""

from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, Catalogue
from tillbridge_aloha.adapter import AlohaAdapter
from tillbridge_aloha.dbf_writing import Field, write_dbf
from tillbridge_aloha.options import AlohaOptions

ITM: list[Field] = [
    *(("ID", "N", 10, 0), ("LONGNAME", "C", 20, 0), ("PRICE", "N", 9, 3), ("MOD1", "N", 10, 0))
]
MOD: list[Field] = [
    *(("ID", "N", 10, 0), ("NAME", "C", 20, 0), ("MINIMUM", "N", 3, 0), ("MAXIMUM", "N", 3, 0)),
    *(("ITEM01", "N", 10, 0), ("ITEM02", "N", 10, 0)),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    items = [
        {"ID": 1, "LONGNAME": "Burger", "PRICE": 9, "MOD1": 7},
        {"ID": 2, "LONGNAME": "Rare", "PRICE": 0},
        {"ID": 3, "LONGNAME": "Well done", "PRICE": 0},
        {"ID": 4, "LONGNAME": "Napkins", "PRICE": 1},
    ]
    write_dbf(tmp_path / "ITM.DBF", ITM, items)
    write_dbf(
        tmp_path / "CAT.DBF",
        [("ID", "N", 10, 0), ("NAME", "C", 20, 0)],
        [{"ID": 5, "NAME": "Food"}, {"ID": 6, "NAME": "Packaging"}],
    )
    write_dbf(
        tmp_path / "CIT.DBF",
        [("CATEGORY", "N", 10, 0), ("ITEMID", "N", 10, 0)],
        [{"CATEGORY": 5, "ITEMID": 1}, {"CATEGORY": 6, "ITEMID": 4}],
    )
    choose(tmp_path, 1, 1)
    return tmp_path


def choose(folder: Path, least: int, most: int) -> None:
    group = {"ID": 7, "NAME": "Cooking", "ITEM01": 2, "ITEM02": 3}
    write_dbf(folder / "MOD.DBF", MOD, [{**group, "MINIMUM": least, "MAXIMUM": most}])


def read(folder: Path, **options: object) -> Catalogue:
    said = AlohaOptions.model_validate({"folder": folder, **options})
    return AlohaAdapter(said, AdapterContext("main", "USD", "loc", folder)).read_catalogue()


def names(catalogue: Catalogue) -> list[str]:
    return [item.name for item in catalogue.items.values()]


def test_words_to_the_kitchen_are_left_out_and_named(folder: Path) -> None:
    found = read(folder)
    assert names(found) == ["Burger", "Napkins"]
    assert [(each.name, each.reason, each.place) for each in found.facts.left_out] == [
        ("Rare", "zero_price", "ITM.DBF, record 2"),
        ("Well done", "zero_price", "ITM.DBF, record 3"),
    ]
    assert [each.name for each in found.add_ons.values()] == ["Rare", "Well done"]


def test_items_without_a_price_can_be_refused(folder: Path) -> None:
    found = read(folder, zero_prices="refuse")
    assert [(row.place, row.external_id) for row in found.bad_rows] == [
        ("ITM.DBF, record 2", "2"),
        ("ITM.DBF, record 3", "3"),
    ]


def test_a_category_can_be_left_out(folder: Path) -> None:
    found = read(folder, leave_out_categories=["packaging", "Merch"])
    assert names(found) == ["Burger"]
    assert [each.name for each in found.categories.values()] == ["Food"]
    assert [each.text for each in found.facts.warnings] == [
        'No item is in a category "Merch", which the option leave_out_categories names.'
    ]


@pytest.mark.parametrize(("least", "most"), [(3, 3), (2, 1)])
def test_an_item_with_a_choice_that_nobody_can_make_is_refused(
    least: int, most: int, folder: Path
) -> None:
    choose(folder, least, most)
    found = read(folder)
    assert names(found) == ["Napkins"]
    (row,) = found.bad_rows
    assert (row.place, row.external_id) == ("ITM.DBF, record 1", "1")
    assert row.text == (
        f'"Burger" cannot be ordered: its modifier group "Cooking" wants {least}, '
        f"allows {most} and offers 2."
    )
