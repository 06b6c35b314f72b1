"""An inventory read as its difference says the same as the inventory read whole."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.conformance.changes import Told
from tillbridge.adapter.conformance.workbook import Cell, write_workbook
from tillbridge_clover.adapter import CloverAdapter
from tillbridge_clover.options import CloverOptions

HEADER = (
    "Clover ID,Name,Price,Price Type,Hidden?,Categories,Modifier Groups,Tax Rates,Variant Option,"
    "Quantity"
).split(",")
QUANTITY = 9
SOUP: list[Cell] = ["C1", "Soup", "4.50", "Fixed", "No", "Hot", "Milk", "VAT", "", "3"]
TEA: list[Cell] = ["C2", "Tea", "3", "Fixed", "No", "", "", "", "", "3"]
MILK = [
    ["Modifier Group ID", "Modifier Group Name", "Modifier", "Price"],
    ["G1", "Milk", "Oat", "0.60"],
]
VAT = [["Name", "Tax Rate", "Default"], ["VAT", "0.08", "No"]]

ROW = st.tuples(
    st.sampled_from(["C1", "C2", "C3", "C4", ""]),
    st.sampled_from(["Soup", "Tea", "Coffee", ""]),
    st.sampled_from(["1.00", "2", "0", "?", ""]),
    st.sampled_from(["Fixed", "Variable"]),
    st.sampled_from(["Yes", "No"]),
    st.sampled_from(["", "Hot", "HOT", "Hot, Cold"]),
    st.sampled_from(["", "Milk", "Sugar"]),
    st.sampled_from(["", "VAT", "Default"]),
    st.sampled_from(["", "", "Small", "Large"]),
    st.sampled_from(["", "7"]),
).map(list)
CATEGORIES = st.lists(
    st.sampled_from([["K1", "Hot", "Tea"], ["K2", "Cold", "Soup"], ["K3", "hot", "Soup"]]),
    max_size=3,
)


GROUPS = st.lists(
    st.sampled_from([["G2", "Milk", "Soy", "0.70"], ["G3", "Sugar", "White", "0"]]), max_size=2
)


def export(
    folder: Path,
    rows: Sequence[Sequence[Cell]],
    categories: Sequence[Sequence[Cell]] = (),
    groups: Sequence[Sequence[Cell]] = (),
    taxes: Sequence[Sequence[Cell]] = VAT,
) -> None:
    sheets: dict[str, Sequence[Sequence[Cell]]] = {
        "Items": [HEADER, *rows],
        "Modifier Groups": [*MILK, *groups],
        "Tax Rates": taxes,
    }
    if categories:
        names = ["Category ID", "Category Name", "Items in Category"]
        sheets["Categories"] = [names, *categories]
    write_workbook(folder / "inventory.xlsx", sheets)


def till(folder: Path, hidden: str = "sold_out", **options: object) -> CloverAdapter:
    context = AdapterContext("bar", "EUR", "loc", folder)
    said = {"export": "inventory.xlsx", "hidden": hidden, **options}
    return CloverAdapter(CloverOptions.model_validate(said), context)


@settings(deadline=None)  # workbooks take their time on a machine that is busy
@given(
    exports=st.lists(
        st.tuples(st.lists(ROW, max_size=6), CATEGORIES, GROUPS), min_size=2, max_size=4
    ),
    hidden=st.sampled_from(["leave_out", "sold_out"]),
    left_out=st.sampled_from([(), ("hot",)]),
)
def test_any_sequence_of_exports_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory,
    exports: list[tuple[list[list[str]], list[list[str]], list[list[str]]]],
    hidden: str,
    left_out: Sequence[str],
) -> None:
    folder = tmp_path_factory.mktemp("till")
    told = Told()
    for rows, categories, groups in exports:
        export(folder, rows, categories, groups)
        told.follow(till(folder, hidden, leave_out_categories=left_out, zero_prices="leave_out"))


def test_what_is_in_stock_makes_no_record_new(tmp_path: Path) -> None:
    export(tmp_path, [SOUP, TEA])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [[*SOUP[:QUANTITY], "2"], TEA])
    changes = pos.read_changes(told.known)
    assert not changes.fresh.items
    assert not changes.unseen
    assert changes.items_read == 2


def test_a_category_that_takes_in_an_item_makes_it_new_and_no_other(tmp_path: Path) -> None:
    export(tmp_path, [SOUP, TEA])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [SOUP, TEA], [["K1", "Drinks", "Tea"]])
    changes = pos.read_changes(told.known)
    assert changes.fresh.items.keys() == {"C2"}
    told.follow(pos)
    assert told.records["C2"][1].categories == ("K1",)


def test_a_category_of_another_name_is_told_while_its_items_are_known(tmp_path: Path) -> None:
    export(tmp_path, [SOUP, TEA], [["K1", "Drinks", "Tea"]])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [SOUP, TEA], [["K1", "Hot drinks", "Tea"]])
    changes = pos.read_changes(told.known)
    assert changes.fresh.categories["K1"].name == "Hot drinks"
    assert not changes.fresh.items


def test_another_rate_of_a_tax_makes_all_rows_new(tmp_path: Path) -> None:
    export(tmp_path, [SOUP, TEA])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [SOUP, TEA], taxes=[VAT[0], ["VAT", "0.09", "No"]])
    told.follow(pos)
    tax = told.records["C1"][1].tax
    assert tax is not None
    assert [part.rate for part in tax.components] == ["9"]
