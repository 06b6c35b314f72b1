"""Modifier groups, which items refer to by name: the right one, or none at all."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext, Catalogue
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge_clover.adapter import CloverAdapter
from tillbridge_clover.options import CloverOptions

ITEMS = ["Clover ID", "Name", "Price", "Categories", "Modifier Groups"]
# The first layout: groups have no ids.
GROUPS = ["Modifier Group Name", "Modifier", "Price", "Required Quantity", "Max Quantity"]
Row = Sequence[str]


def read(folder: Path, items: Sequence[Row], groups: Sequence[Row], **options: object) -> Catalogue:
    write_workbook(
        folder / "inventory.xlsx", {"Items": [ITEMS, *items], "Modifier Groups": [GROUPS, *groups]}
    )
    said = CloverOptions.model_validate({"export": "inventory.xlsx", **options})
    return CloverAdapter(said, AdapterContext("bar", "USD", "loc", folder)).read_catalogue()


def burger(*groups: str) -> Row:
    return ["B1", "Burger", "9.00", "Food", ", ".join(groups)]


def test_two_groups_of_one_name_that_differ_are_none_of_them(tmp_path: Path) -> None:
    groups = [
        ["Size", "Single", "0", "1", "1"],
        ["", "Double", "3", "", ""],
        ["Size", "Small coffee", "0", "", ""],
        ["", "Single", "99", "", ""],
    ]
    found = read(tmp_path, [burger("Size"), ["T1", "Tea", "2", "", ""]], groups)
    assert list(found.items) == ["T1"]
    assert not found.addon_groups
    (row,) = found.bad_rows
    sheet = "inventory.xlsx, sheet Modifier Groups"
    assert row.text == (
        '"Burger" has the modifier group "Size", and groups of that name differ: '
        f"{sheet}, row 2 and {sheet}, row 4."
    )
    assert (row.place, row.field, row.value) == (
        "inventory.xlsx, sheet Items, row 2",
        "Modifier Groups",
        "Size",
    )


def test_two_groups_of_one_name_that_are_alike_are_one(tmp_path: Path) -> None:
    groups = [["Size", "Single", "0", "", ""], ["SIZE", "Single", "0", "", ""]]
    found = read(tmp_path, [burger("size")], groups)
    assert found.items["B1"].addon_groups == ("Size",)
    assert list(found.addon_groups) == ["Size"]
    assert not found.bad_rows


def test_groups_that_no_item_uses_are_neither_pushed_nor_told(tmp_path: Path) -> None:
    groups = [
        *(["Base Choice", "Rice", str(number), "", ""] for number in range(49)),
        ["Odd", "Free", "?", "", ""],
        ["Sauce", "Mayo", "0.50", "", ""],
    ]
    found = read(tmp_path, [burger("Sauce")], groups)
    assert list(found.addon_groups) == ["Sauce"]
    assert list(found.add_ons) == ["Sauce/Mayo"]
    assert not found.bad_rows


def test_modifiers_that_are_switched_off_are_not_offered(tmp_path: Path) -> None:
    groups = [
        ["Size", "Large", "3", "1", "1"],
        ["", "Small (12oz) (Disabled)", "0", "", ""],
        ["Extras", "Syrup (Disabled)", "0.20", "", ""],
    ]
    found = read(tmp_path, [burger("Size", "Extras")], groups)
    assert list(found.add_ons) == ["Size/Large"]
    assert found.addon_groups["Size"].add_ons == ("Size/Large",)
    assert found.items["B1"].addon_groups == ("Size",), "what offers nothing is no choice"
    assert not found.bad_rows


def test_what_is_wrong_with_a_group_that_an_item_uses_is_told(tmp_path: Path) -> None:
    groups = [["Sauce", "Mayo", "0.50", "", ""], ["", "Mayo", "0.70", "", ""]]
    found = read(tmp_path, [burger("Sauce")], groups)
    assert [row.text for row in found.bad_rows] == [
        'The modifier group "Sauce" cannot be read: it offers "Mayo" twice, for different prices.',
        '"Burger" has the modifier group "Sauce", which cannot be read.',
    ]


def test_of_several_groups_in_a_cell_the_one_that_is_wrong_is_named(tmp_path: Path) -> None:
    groups = [["Sauce", "Mayo", "0.50", "", ""], ["Bread", "Rye", "0", "3", "1"]]
    found = read(tmp_path, [burger("Sauce", "Bread")], groups)
    assert found.bad_rows[1].text == (
        '"Burger" has the modifier group "Bread", which cannot be read.'
    )


NAMES = st.sampled_from(["Size", "size", "Sauce", "Bread"])
PARTS = st.tuples(
    NAMES,
    st.sampled_from(["Single", "Double"]),
    st.sampled_from(["0", "1", "?"]),
    st.sampled_from(["", "1", "2"]),
    st.sampled_from(["", "1"]),
)


@given(
    groups=st.lists(PARTS, max_size=5),
    named=st.lists(st.lists(NAMES, max_size=2), min_size=1, max_size=3),
)
def test_an_item_has_the_only_group_of_that_name_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, groups: list[tuple[str, ...]], named: list[list[str]]
) -> None:
    items = [
        [f"I{number}", f"Item {number}", "1", "", ", ".join(each)]
        for number, each in enumerate(named)
    ]
    found = read(tmp_path_factory.mktemp("till"), items, groups)
    for number, each in enumerate(named):
        # Each offers one thing: at most one of it is as many as there are.
        meant = [
            {(*row[1:-1], row[-1] or "1") for row in groups if row[0].casefold() == name.casefold()}
            for name in each
        ]
        item = found.items.get(f"I{number}")
        if item is None:
            assert any(row.external_id == f"I{number}" for row in found.bad_rows)
            continue
        assert all(len(rows) == 1 for rows in meant)
        had = [found.addon_groups[group] for group in item.addon_groups]
        assert {group.name.casefold() for group in had} == {name.casefold() for name in each}
        assert all(name in found.add_ons for group in had for name in group.add_ons)


def test_what_costs_nothing_is_left_out_where_the_options_say_so(tmp_path: Path) -> None:
    items = [
        *(burger(), ["F1", "Fork", "0", "Food", ""], ["W1", "Wine box", "30", "Merch", ""]),
        ["P1", "Pizza", "0", "Food", "Size"],
    ]
    groups = [["Size", "Small", "8", "1", "1"]]
    found = read(tmp_path, items, groups, zero_prices="leave_out", leave_out_categories=["merch"])
    assert list(found.items) == ["B1", "P1"]  # the pizza's price is in its size
    assert [(each.name, each.reason) for each in found.facts.left_out] == [
        ("Fork", "zero_price"),
        ("Wine box", "category"),
    ]
    refused = read(tmp_path, items, groups, zero_prices="refuse")
    assert [row.external_id for row in refused.bad_rows] == ["F1"]
