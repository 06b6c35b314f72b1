"""An item library read as its difference says the same as the library read whole."""

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.conformance.changes import Told
from tillbridge_square.adapter import SquareAdapter
from tillbridge_square.options import SquareOptions

HEADER = (
    "Token,Item Name,Variation Name,Description,Categories,Option Value 1,Price,Archived,Sellable,"
    "Square Online Item Visibility,Enabled Bar,Current Quantity Bar,Price Bar,"
    "Modifier Set - Milk,Tax - VAT (8%)"
).split(",")
PRICE, QUANTITY = 6, 11
SOUP = ["T1", "Soup", "", "", "Hot", "", "4.50", "N", "Y", "visible", "Y", "3", "", "Y", "Y"]
TEA = ["T2", "Tea", "", "", "Hot", "", "3", "N", "Y", "visible", "Y", "3", "", "Y", "Y"]

YES_OR_NO = st.sampled_from(["Y", "N", ""])
ROW = st.tuples(
    st.sampled_from(["T1", "T2", "T3", "T4", ""]),
    st.sampled_from(["Soup", "Tea", " Tea", ""]),
    st.sampled_from(["", "Small", "Large"]),
    st.just(""),
    st.sampled_from(["Hot", "Cold, Hot", ""]),
    st.sampled_from(["", "Red"]),
    st.sampled_from(["1.00", "2", "variable", "?"]),
    YES_OR_NO,
    YES_OR_NO,
    st.sampled_from(["visible", "unavailable"]),
    YES_OR_NO,
    st.sampled_from(["", "7"]),
    st.sampled_from(["", "", "5"]),
    YES_OR_NO,
    YES_OR_NO,
).map(list)
ROWS = st.lists(ROW, max_size=7)


def export(folder: Path, rows: list[list[str]], header: list[str] = HEADER) -> None:
    with (folder / "library.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def modifiers(folder: Path, options: str) -> None:
    (folder / "modifiers.csv").write_text(f"modifier,option,price\n{options}", "utf-8")


def till(folder: Path, **options: object) -> SquareAdapter:
    context = AdapterContext("bar", str(options.pop("currency", "EUR")), "loc", folder)
    said = {"export": "library.csv", "modifiers": "modifiers.csv", **options}
    return SquareAdapter(SquareOptions.model_validate(said), context)


@settings(deadline=None)  # files take their time on a machine that is busy
@given(
    exports=st.lists(ROWS, min_size=2, max_size=4), visibility=st.sampled_from(["follow", "ignore"])
)
def test_any_sequence_of_exports_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory, exports: list[list[list[str]]], visibility: str
) -> None:
    folder = tmp_path_factory.mktemp("till")
    modifiers(folder, "Milk,Oat,0.60\n")
    told = Told()
    for rows in exports:
        export(folder, rows)
        told.follow(till(folder, visibility=visibility))


def test_a_variation_without_a_name_among_others_has_that_of_its_item(tmp_path: Path) -> None:
    modifiers(tmp_path, "Milk,Oat,0.60\n")
    large = [*SOUP]
    large[0], large[2] = "T9", "Large"
    export(tmp_path, [SOUP, large])
    (soup,) = till(tmp_path).read_catalogue().items.values()
    assert [each.variant_name for each in soup.variants] == ["Soup", "Large"]


def test_what_is_in_stock_makes_no_record_new(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [SOUP, TEA])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    sold = [*SOUP]
    sold[QUANTITY] = "2"
    export(tmp_path, [sold, TEA])
    changes = pos.read_changes(told.known)
    assert not changes.fresh.items
    assert not changes.unseen
    assert changes.items_read == 2


def test_a_second_variation_makes_the_item_another(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [SOUP, TEA])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    large = ["T3", "Soup", "Large", *SOUP[3:]]
    export(tmp_path, [SOUP, TEA, large])
    told.follow(pos)
    assert told.records.keys() == {"item-T1", "T2"}


def test_what_a_modifier_file_or_a_header_says_makes_all_rows_new(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [SOUP])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    modifiers(tmp_path, "Milk,Oat,0.60\n")
    told.follow(pos)
    assert told.records["T1"][1].addon_groups == ("Milk",)
    export(tmp_path, [SOUP], [*HEADER[:-1], "Tax - VAT (9%)"])
    told.follow(pos)
    tax = told.records["T1"][1].tax
    assert tax is not None
    assert [part.rate for part in tax.components] == ["9"]


def test_another_currency_makes_all_rows_new(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [TEA])
    told = Told()
    told.follow(till(tmp_path))
    told.follow(till(tmp_path, currency="JPY"))
    assert told.records["T2"][1].price == 3


def test_of_a_category_within_another_the_lowest_counts(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [[*SOUP[:4], "Drinks > Hot, Bar > Hot > Soups", *SOUP[5:]]])
    assert till(tmp_path).read_catalogue().items["T1"].categories == ("Hot", "Soups")
