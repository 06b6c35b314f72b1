import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folder_till import menu_till
from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    Catalogue,
    Category,
    ExportUnreadable,
    Item,
    ItemTax,
    Menu,
    TaxComponent,
    Variant,
)
from tillbridge.model.numbers import parse_json_float
from tillbridge.pos.folder import json_pieces


def read(folder: Path, body: object, **options: object) -> Catalogue:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return menu_till(folder, content, menu="menu.json", **options).read_catalogue()


def item(**fields: object) -> dict[str, object]:
    return {"external_id": "1", "name": "Soup", "price": 450, **fields}


def test_menus_are_read_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    catalogue = read(
        tmp_path,
        {
            "menus": [
                {
                    "external_id": "m1",
                    "name": "Lunch",
                    "description": "Till three",
                    "categories": [{"external_id": "c1", "name": "Soups"}],
                    "items": [
                        item(
                            description="Hot",
                            image_url="https://x.example/1.jpg",
                            available=False,
                            categories=["c1"],
                            addon_groups=["g1"],
                            variant_type="stand_alone",
                            variants=[{"external_id": "1s", "variant_name": "Small", "price": 350}],
                            tax={"name": "VAT", "components": [{"agency": "State", "rate": 8.25}]},
                        )
                    ],
                }
            ],
            "add_ons": [{"external_id": "a1", "name": "Bread", "price": 100}],
            "addon_groups": [
                {
                    "external_id": "g1",
                    "name": "Sides",
                    "min_select": 0,
                    "max_select": 2,
                    "required": False,
                    "add_ons": ["a1"],
                }
            ],
        },
    )
    assert catalogue.bad_rows == ()
    assert dict(catalogue.menus) == {"m1": Menu("m1", "Lunch", "Till three")}
    assert dict(catalogue.categories) == {"c1": Category("c1", "Soups")}
    assert dict(catalogue.add_ons) == {"a1": AddOn("a1", "Bread", 100)}
    assert dict(catalogue.addon_groups) == {
        "g1": AddOnGroup("g1", "Sides", 0, 2, required=False, add_ons=("a1",))
    }
    assert dict(catalogue.items) == {
        "1": Item(
            "1",
            "Soup",
            450,
            description="Hot",
            image_url="https://x.example/1.jpg",
            available=False,
            categories=("c1",),
            addon_groups=("g1",),
            variants=(Variant("1s", "Small", 350),),
            variant_type="stand_alone",
            tax=ItemTax("VAT", (TaxComponent("State", "8.25"),)),
            menus=("m1",),
        )
    }


def test_the_flat_shape_is_one_menu(tmp_path: Path) -> None:
    catalogue = read(tmp_path, {"menu_name": "Dinner", "items": [item()]})
    assert dict(catalogue.menus) == {"menu": Menu("menu", "Dinner")}
    assert catalogue.items["1"].menus == ("menu",)
    assert read(tmp_path, {"items": []}, menu_name="All day").menus["menu"].name == "All day"


def test_an_item_on_two_menus_is_one_item(tmp_path: Path) -> None:
    menus = [{"external_id": each, "name": each, "items": [item()]} for each in ("m1", "m2")]
    catalogue = read(tmp_path, {"menus": menus})
    assert catalogue.items["1"].menus == ("m1", "m2")
    assert catalogue.bad_rows == ()


def test_two_items_with_one_id_are_told_and_the_first_counts(tmp_path: Path) -> None:
    catalogue = read(tmp_path, {"items": [item(), item(name="Stew")]})
    assert catalogue.items["1"].name == "Soup"
    (only,) = catalogue.bad_rows
    assert only.place == "menu.json, item 2"
    assert only.external_id == ""


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"price": 4.5}, "price"),
        ({"price": "450"}, "price"),
        ({"price": True}, "price"),
        ({"price": None}, "price"),
        ({"price": -1}, "price"),
        ({"price": 10**15}, "price"),
        ({"name": ""}, "name"),
        ({"name": 7}, "name"),
        ({"name": "half \ud800"}, "name"),
        ({"available": "no"}, "available"),
        ({"categories": "c1"}, "categories"),
        ({"variants": [{"external_id": "s"}]}, "variant_name"),
        ({"variants": {}}, "variants"),
        ({"tax": {"name": "VAT", "components": [{"agency": "A", "rate": "x"}]}}, "rate"),
    ],
)
def test_a_bad_item_is_told_and_the_others_are_read(
    tmp_path: Path, fields: dict[str, object], field: str
) -> None:
    catalogue = read(tmp_path, {"items": [item(**fields), item(external_id="2")]})
    assert set(catalogue.items) == {"2"}
    (only,) = catalogue.bad_rows
    assert (only.place, only.external_id, only.field) == ("menu.json, item 1", "1", field)
    assert only.fix


def test_an_item_that_is_no_object_is_told(tmp_path: Path) -> None:
    catalogue = read(tmp_path, {"items": ["1", item(external_id="2")]})
    assert set(catalogue.items) == {"2"}
    assert len(catalogue.bad_rows) == 1


def test_a_group_of_unknown_add_ons_is_told(tmp_path: Path) -> None:
    groups = [
        {"external_id": "g1", "name": "Sides", "add_ons": ["nowhere"]},
        {"external_id": "g2", "name": "Sauces", "add_ons": ["9"]},
    ]
    items = [item(external_id="9", product_type="addon")]
    catalogue = read(tmp_path, {"items": items, "addon_groups": groups})
    assert set(catalogue.addon_groups) == {"g2"}
    assert "nowhere" in catalogue.bad_rows[0].text


def test_a_field_that_is_surely_misspelt_is_told_once(tmp_path: Path) -> None:
    items = [item(external_id=str(number), availabel=False, pos_colour="red") for number in (1, 2)]
    (only,) = read(tmp_path, {"items": items}).bad_rows
    assert only.field == "availabel"
    assert "available" in only.fix


@pytest.mark.parametrize(
    "rate",
    [("8.250", "8.250"), ("7", "7"), ("1e1", "10"), ("0.1", "0.1")],
)
def test_rates_are_decimal_text_and_pass_through_no_float(
    tmp_path: Path, rate: tuple[str, str]
) -> None:
    body = json.dumps(
        {"items": [item(tax={"name": "T", "components": [{"agency": "A", "rate": "RATE"}]})]}
    ).replace('"RATE"', rate[0])
    tax = read(tmp_path, body).items["1"].tax
    assert tax is not None
    assert tax.components[0].rate == rate[1]


@pytest.mark.parametrize("body", ["", "{", '{"items": [', '{"items": []', '{"items": [] } x'])
def test_half_a_file_is_still_being_written(tmp_path: Path, body: str) -> None:
    with pytest.raises(ExportUnreadable) as caught:
        read(tmp_path, body)
    assert caught.value.passing


def test_what_is_wrong_is_told_by_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ExportUnreadable) as caught:
        read(tmp_path, '{"items": [\n{"external_id" 1}]}')
    assert caught.value.place == "menu.json, line 2, column 16"


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"menus": {}},
        {"menus": [{"name": "no id", "items": []}]},
        {"menus": [], "items": []},
        {"items": {"1": {}}},
    ],
)
def test_something_else_than_a_menu_is_unreadable(tmp_path: Path, body: object) -> None:
    with pytest.raises(ExportUnreadable) as caught:
        read(tmp_path, body)
    assert not caught.value.passing
    assert caught.value.fix


@pytest.mark.parametrize("body", ["[" * 100_000, '{"items": [NaN]}'])
def test_json_beyond_all_reason_is_unreadable(tmp_path: Path, body: str) -> None:
    with pytest.raises(ExportUnreadable):
        read(tmp_path, body)


@pytest.mark.parametrize(
    ("field", "number"),
    [("price", "9" * 5000), ("price", "1e99999999999999999999"), ("price", "1e999999999")],
)
def test_a_number_beyond_all_reason_is_one_bad_row(tmp_path: Path, field: str, number: str) -> None:
    good = json.dumps(item(external_id="2"))
    bad = json.dumps(item(**{field: 12345})).replace("12345", number)
    catalogue = read(tmp_path, f'{{"items": [{bad}, {good}]}}')
    assert list(catalogue.items) == ["2"]
    [row] = catalogue.bad_rows
    assert (row.external_id, row.field) == ("1", field)
    assert len(row.text) < 300


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_the_usual_encodings_are_understood(tmp_path: Path, encoding: str) -> None:
    body = json.dumps({"items": [item(name="Crème")]}, ensure_ascii=False)
    assert read(tmp_path, body.encode(encoding)).items["1"].name == "Crème"


def test_the_difference_is_told_by_item(tmp_path: Path) -> None:
    before = read(tmp_path, {"items": [item(), item(external_id="2"), item(external_id="3")]})
    after = {"items": [item(external_id="2"), item(price=500), item(external_id="4")]}
    till = menu_till(tmp_path, json.dumps(after), menu="menu.json")
    told = till.read_changes(frozenset(before.fingerprints.values()))
    assert set(told.fresh.items) == set(told.fresh.fingerprints) == {"1", "4"}
    assert told.unseen == {before.fingerprints["1"], before.fingerprints["3"]}
    assert told.items_read == 3


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False).map(float)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["menus", "items", "add_ons", "x", "é"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(value=JSON, indent=st.none() | st.integers(0, 2))
def test_json_taken_apart_in_pieces_is_the_same_json(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert json_pieces.parse(text) == json.loads(text, parse_float=parse_json_float)


def plain_parse(text: str) -> object:
    return json.loads(text, parse_float=parse_json_float)


def outcome(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except json.JSONDecodeError as failure:
        return failure.pos


@given(value=JSON, cut=st.integers(1, 20))
def test_json_cut_short_is_refused_as_json_is(value: object, cut: int) -> None:
    text = json.dumps(value)[:-cut]
    assert outcome(json_pieces.parse, text) == outcome(plain_parse, text)
