"""What a location has: its taxes and modifier lists, choices to be made, ids of one thing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tillbridge.adapter import AdapterContext, Catalogue
from tillbridge_square.adapter import SquareAdapter
from tillbridge_square.options import SquareOptions

Json = dict[str, Any]
HERE, ELSEWHERE = "L1", "L2"
ABSENT: Json = {"absent_at_location_ids": [HERE]}
PRESENT: Json = {"present_at_all_locations": False, "present_at_location_ids": [HERE]}
NOT_PRESENT: Json = {"present_at_all_locations": False, "present_at_location_ids": [ELSEWHERE]}


def variation(identity: str, name: str = "", price: int = 900) -> Json:
    money = {"amount": price, "currency": "USD"}
    data = {"name": name, "price_money": money}
    return {"type": "ITEM_VARIATION", "id": identity, "item_variation_data": data}


def item(identity: str, *variations: Json, **data: object) -> Json:
    said = {"name": f"Item {identity}", "variations": list(variations), **data}
    return {"type": "ITEM", "id": identity, "item_data": said}


def tax(percentage: object = "8.6", **more: object) -> Json:
    data = {"name": "City", "percentage": percentage, "enabled": True}
    return {"type": "TAX", "id": "T1", "tax_data": data, **more}


def modifiers(price: int = 50, **more: object) -> Json:
    offered = [
        {
            "type": "MODIFIER",
            "id": f"M{number}",
            "modifier_data": {"name": f"Option {number}", "price_money": {"amount": price}},
        }
        for number in (1, 2)
    ]
    data = {"name": "Milk", "modifiers": offered}
    return {"type": "MODIFIER_LIST", "id": "ML", "modifier_list_data": data, **more}


def read(folder: Path, *objects: Json) -> Catalogue:
    (folder / "catalog.json").write_text(json.dumps({"objects": objects}), "utf-8")
    options = SquareOptions(export=Path("catalog.json"), location=HERE)
    return SquareAdapter(options, AdapterContext("bar", "USD", "loc", folder)).read_catalogue()


@pytest.mark.parametrize(
    ("where", "is_charged"), [({}, True), (PRESENT, True), (ABSENT, False), (NOT_PRESENT, False)]
)
def test_a_tax_is_charged_where_it_is(where: Json, is_charged: bool, tmp_path: Path) -> None:  # noqa: FBT001 -- a case
    found = read(tmp_path, tax(**where), item("I1", variation("V1"), tax_ids=["T1"]))
    assert (found.items["I1"].tax is not None) == is_charged


@pytest.mark.parametrize(
    ("where", "is_offered"), [({}, True), (PRESENT, True), (ABSENT, False), (NOT_PRESENT, False)]
)
def test_a_modifier_list_is_offered_where_it_is(
    where: Json,
    is_offered: bool,  # noqa: FBT001 -- a case
    tmp_path: Path,
) -> None:
    info = [{"modifier_list_id": "ML"}]
    found = read(tmp_path, modifiers(**where), item("I1", variation("V1"), modifier_list_info=info))
    assert found.items["I1"].addon_groups == (("ML",) if is_offered else ())
    assert bool(found.addon_groups) == is_offered


def test_an_item_with_a_choice_that_nobody_can_make_is_refused(tmp_path: Path) -> None:
    info = [{"modifier_list_id": "ML", "min_selected_modifiers": 3}]
    found = read(tmp_path, modifiers(), item("I1", variation("V1"), modifier_list_info=info))
    assert not found.items
    (row,) = found.bad_rows
    assert row.text == (
        'Nobody can choose from its modifier list "Milk": it wants 3, allows 2 and offers 2.'
    )


def test_an_item_with_an_option_below_zero_is_refused(tmp_path: Path) -> None:
    info = [{"modifier_list_id": "ML"}]
    found = read(tmp_path, modifiers(-50), item("I1", variation("V1"), modifier_list_info=info))
    (row,) = found.bad_rows
    assert (row.external_id, row.field) == ("I1", "modifier_list_info")
    assert '"Option 1" has a price that is none, or below zero' in row.text


@pytest.mark.parametrize("percentage", ["x", "-1", "1e999999", "8,6"])
def test_an_item_with_a_tax_that_is_no_number_is_refused(percentage: str, tmp_path: Path) -> None:
    found = read(tmp_path, tax(percentage), item("I1", variation("V1"), tax_ids=["T1"]))
    (row,) = found.bad_rows
    assert row.text == (f"Its tax \"City\" has the rate '{percentage}', which is no percentage.")


@pytest.mark.parametrize(
    "objects",
    [
        [item("I1", variation("V1", "Small"), variation("V1", "Large"))],
        [item("I1", variation("V1")), item("I2", variation("V1"))],
        [item("I1", variation("V1")), item("V1", variation("V2"))],
    ],
)
def test_an_id_is_that_of_one_thing_alone(objects: list[Json], tmp_path: Path) -> None:
    found = read(tmp_path, *objects)
    (row,) = found.bad_rows
    assert (row.external_id, row.field, row.value) == (objects[-1]["id"], "id", "V1")
    assert list(found.items) == [each["id"] for each in objects[:-1]]


@pytest.mark.parametrize(
    ("rows", "sold", "row"),
    [
        ([("T1", "Soup", "Small"), ("T1", "Soup", "Large")], [], 3),
        ([("T1", "Soup", ""), ("T1", "Tea", "")], ["T1"], 3),
        ([("T1", "Soup", ""), ("T2", "Tea", "Small"), ("T1", "Tea", "Large")], ["T1"], 4),
        ([("T1", "Soup", ""), ("T1", "Soup", "")], ["T1"], 0),  # the same row again
    ],
)
def test_a_token_is_that_of_one_row_alone(
    rows: list[tuple[str, str, str]], sold: list[str], row: int, tmp_path: Path
) -> None:
    with (tmp_path / "library.csv").open("w", encoding="utf-8", newline="") as file:
        header = ("Token", "Item Name", "Variation Name", "Price")
        csv.writer(file).writerows([header, *[(*each, "4.50") for each in rows]])
    context = AdapterContext("bar", "USD", "loc", tmp_path)
    found = SquareAdapter(SquareOptions(export=Path("library.csv")), context).read_catalogue()
    assert list(found.items) == sold
    assert [each.place for each in found.bad_rows] == ([f"library.csv, row {row}"] if row else [])
    assert all(each.field == "Token" and each.value == "T1" for each in found.bad_rows)
