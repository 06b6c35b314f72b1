"""A menu read as its difference says the same as the menu read whole."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.conformance.changes import Told
from tillbridge_loyverse.adapter import LoyverseAdapter
from tillbridge_loyverse.options import LoyverseOptions

HEADER = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar],In stock [Bar],"
    'Low stock [Bar],"Modifier - ""Milk""","Tax - ""VAT"" (8%)"'
)
SKU, PRICE, IN_STOCK = 1, 18, 19
SOUP = ("soup", "1", "Soup", "Starters", "", "", "Y", "4.50", "3", "Y", "Y")

# Handle, SKU, name, category, option, part of a composite, for sale, price, stock, modifier, tax
ROW = st.tuples(
    st.sampled_from(["a", "b", "c", "d", " a", ""]),
    st.sampled_from(["", "1", "2", "3"]),
    st.sampled_from(["Soup", "Tea", "", ""]),
    st.sampled_from(["Hot", "Cold", ""]),
    st.sampled_from(["", "", "S", "L"]),
    st.sampled_from(["", "", "", "9"]),
    st.sampled_from(["Y", "N"]),
    st.sampled_from(["1.00", "2", "variable", "?"]),
    st.sampled_from(["", "7", "8"]),
    st.sampled_from(["Y", "N"]),
    st.sampled_from(["Y", "N"]),
)
ROWS = st.lists(ROW, max_size=7)


def line(row: tuple[str, ...]) -> list[str]:
    """The fields of a row; one of stock 8 has lost its last."""
    handle, sku, name, category, option, part, sold, price, stock, milk, vat = row
    fields = [handle, sku, name, category, "", "N", "", option, "", "", "", "", "0.00", "", part]
    fields += ["", "N", sold, price, stock, "", milk, vat]
    return fields[:-1] if stock == "8" else fields


def export(folder: Path, rows: list[tuple[str, ...]], header: str = HEADER) -> None:
    with (folder / "items.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([next(csv.reader([header])), *map(line, rows)])


def modifiers(folder: Path, options: str) -> None:
    (folder / "modifiers.csv").write_text(f"modifier,option,price\n{options}", "utf-8")


def till(folder: Path, **options: object) -> LoyverseAdapter:
    context = AdapterContext("bar", str(options.pop("currency", "EUR")), "loc", folder)
    names = {"export": "items.csv", "modifiers": "modifiers.csv", **options}
    return LoyverseAdapter(LoyverseOptions.model_validate(names), context)


@given(exports=st.lists(ROWS, min_size=2, max_size=4), identity=st.sampled_from(["handle", "sku"]))
def test_any_sequence_of_exports_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory, exports: list[list[tuple[str, ...]]], identity: str
) -> None:
    folder = tmp_path_factory.mktemp("till")
    modifiers(folder, "Milk,Oat,0.60\n")
    told = Told()
    for rows in exports:
        export(folder, rows)
        told.follow(till(folder, identity=identity))


def test_what_is_in_stock_makes_no_record_new(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [SOUP])
    before = till(tmp_path).read_catalogue()
    export(tmp_path, [(*SOUP[:8], "2", *SOUP[9:])])
    told = till(tmp_path).read_changes(frozenset(before.fingerprints.values()))
    assert not told.fresh.items
    assert not told.unseen
    assert told.items_read == 1


@pytest.mark.parametrize(
    "options", [{"currency": "JPY"}, {"identity": "sku"}], ids=["currency", "identity"]
)
def test_another_meaning_of_the_rows_makes_all_of_them_new(
    tmp_path: Path, options: dict[str, object]
) -> None:
    modifiers(tmp_path, "")
    tea = ("tea", "2", "Tea", "Hot", "", "", "Y", "3", "3", "Y", "Y")
    export(tmp_path, [tea])
    before = till(tmp_path).read_catalogue()
    told = till(tmp_path, **options).read_changes(frozenset(before.fingerprints.values()))
    assert len(told.fresh.items) == 1
    assert told.unseen == set(before.fingerprints.values())


def test_a_group_that_a_modifier_gets_or_loses_makes_all_rows_new(tmp_path: Path) -> None:
    export(tmp_path, [SOUP])
    modifiers(tmp_path, "")
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    assert not told.records["soup"][1].addon_groups
    modifiers(tmp_path, "Milk,Oat,0.60\n")
    told.follow(pos)
    assert told.records["soup"][1].addon_groups == ("Milk",)


def test_columns_that_move_make_all_rows_new(tmp_path: Path) -> None:
    modifiers(tmp_path, "")
    export(tmp_path, [SOUP])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [SOUP], HEADER.replace("(8%)", "(9%)"))
    told.follow(pos)
    tax = told.records["soup"][1].tax
    assert tax is not None
    assert [part.rate for part in tax.components] == ["9"]
