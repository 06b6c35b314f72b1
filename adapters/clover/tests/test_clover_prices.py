"""Prices of a workbook that are text, as people type them in half of the world."""

from collections.abc import Sequence
from pathlib import Path

from tillbridge.adapter import AdapterContext, Catalogue
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge_clover.adapter import CloverAdapter
from tillbridge_clover.options import CloverOptions

HEADER = ["Clover ID", "Name", "Price"]


def read(folder: Path, prices: Sequence[str | int], **options: object) -> Catalogue:
    rows = [[f"C{at}", f"Dish {at}", price] for at, price in enumerate(prices)]
    write_workbook(folder / "inventory.xlsx", {"Items": [HEADER, *rows]})
    said = CloverOptions.model_validate({"export": "inventory.xlsx", **options})
    return CloverAdapter(said, AdapterContext("bar", "USD", "loc", folder)).read_catalogue()


def test_a_price_that_can_be_read_in_two_ways_is_refused_with_its_column(tmp_path: Path) -> None:
    found = read(tmp_path, ["1,500", "$ 4", "€ 4"])
    assert [item.price for item in found.items.values()] == [400]
    assert [(row.external_id, row.field, row.value) for row in found.bad_rows] == [
        ("C0", "Price", "1,500"),
        ("C2", "Price", "€ 4"),
    ]
    assert "the option decimal" in found.bad_rows[0].fix


def test_the_other_prices_or_the_option_say_what_a_comma_means(tmp_path: Path) -> None:
    by_others = read(tmp_path, ["1,500", "4.50"])
    assert [item.price for item in by_others.items.values()] == [150000, 450]
    by_option = read(tmp_path, ["1,500"], decimal=",")
    assert [item.price for item in by_option.items.values()] == [150]


def test_a_size_with_a_variable_price_is_left_out_and_the_others_are_sold(tmp_path: Path) -> None:
    header = ["Clover ID", "Name", "Price", "Price Type", "Variant Option"]
    rows = [
        ["S", "Wine", "5", "Fixed", "Glass"],
        ["L", "Wine", "", "Variable", "Bottle"],
        ["F", "Fish", "", "Variable", ""],
    ]
    write_workbook(tmp_path / "inventory.xlsx", {"Items": [header, *rows]})
    said = CloverOptions.model_validate({"export": "inventory.xlsx"})
    found = CloverAdapter(said, AdapterContext("bar", "USD", "loc", tmp_path)).read_catalogue()
    (wine,) = found.items.values()
    assert [(each.external_id, each.price) for each in wine.variants] == [("S", 500)]
    (left_out,) = found.facts.left_out
    assert (left_out.name, left_out.reason) == ("Wine (Bottle)", "variable_price")
    assert left_out.place == "inventory.xlsx, sheet Items, row 3"
    assert [(row.external_id, row.field) for row in found.bad_rows] == [("F", "Price")]
