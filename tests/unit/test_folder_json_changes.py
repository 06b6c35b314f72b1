"""A JSON menu read as its difference says the same as the menu read whole."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folder_till import menu_till
from tillbridge.adapter.conformance.changes import Told
from tillbridge.pos.folder.adapter import FolderAdapter

Json = dict[str, Any]


def item(external_id: object = "1", **fields: object) -> Json:
    return {"external_id": external_id, "name": "Soup", "price": 450, **fields}


def menu(external_id: str, *items: object) -> Json:
    return {"external_id": external_id, "name": external_id, "items": list(items)}


def till(folder: Path, body: object) -> FolderAdapter:
    content = body if isinstance(body, str) else json.dumps(body)
    return menu_till(folder, content, menu="menu.json")


def followed(folder: Path, *bodies: object) -> Told:
    """What a bridge has that followed these exports."""
    told = Told()
    for body in bodies:
        told.follow(till(folder, body))
    return told


ITEM = st.fixed_dictionaries(
    {
        "external_id": st.sampled_from(["a", "b", "c", " a", 1, "1", ""]),
        "name": st.sampled_from(["Soup", "Tea", "}", "{[", '"'])
        | st.text(alphabet='ab{}[]",: \\é', max_size=4),
        "price": st.sampled_from([100, 200, "?"]),
    },
    optional={
        "variants": st.lists(
            st.fixed_dictionaries(
                {
                    "external_id": st.sampled_from(["v", "w"]),
                    "variant_name": st.just("S"),
                    "price": st.sampled_from([1, 2]),
                }
            ),
            max_size=2,
        ),
        "pricee": st.just(1),
    },
)
OAT = st.sampled_from([100, 200]).map(lambda price: item("oat", price=price, product_type="addon"))
MENU = st.fixed_dictionaries(
    {
        "external_id": st.sampled_from(["m", "n"]),
        "name": st.just("Menu"),
        "items": st.lists(ITEM | OAT, max_size=5),
    },
    optional={
        "addon_groups": st.just([{"external_id": "g", "name": "Milk", "add_ons": ["oat"]}]),
    },
)
BODY = st.fixed_dictionaries({"menus": st.lists(MENU, max_size=2)}) | st.fixed_dictionaries(
    {"items": st.lists(ITEM, max_size=5)}
)


@st.composite
def sequences(draw: st.DrawFn) -> Sequence[object]:
    """Exports of which each has much of the one before."""
    bodies = [draw(BODY)]
    for _ in range(draw(st.integers(1, 3))):
        body = json.loads(json.dumps(bodies[-1]))
        for each in body.get("menus", [body]):
            items = each["items"]
            for _ in range(draw(st.integers(0, 2))):
                place = draw(st.integers(0, len(items)))
                new = draw(ITEM | st.sampled_from(items)) if items else draw(ITEM)
                items[place : place + draw(st.integers(0, 1))] = [new]
        if "menus" in body and draw(st.booleans()):
            body["menus"] = [*body["menus"], draw(MENU)][::-1]
        bodies.append(body)
    return bodies


@given(bodies=sequences())
def test_any_sequence_of_exports_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory, bodies: Sequence[object]
) -> None:
    followed(tmp_path_factory.mktemp("till"), *bodies)


def test_a_known_item_that_comes_onto_another_menu_is_on_both(tmp_path: Path) -> None:
    told = followed(
        tmp_path,
        {"menus": [menu("m", item("1"), item("2")), menu("n", item("3"))]},
        {"menus": [menu("m", item("1"), item("2")), menu("n", item("3"), item("2"))]},
    )
    assert told.records["2"][1].menus == ("m", "n")


def test_a_group_may_offer_known_items(tmp_path: Path) -> None:
    oat = item("oat", product_type="addon")
    groups = [{"external_id": "g", "name": "Milk", "add_ons": ["oat"]}]
    first = {"addon_groups": groups, "items": [item(), oat]}
    second = {"addon_groups": groups, "items": [item(price=1), oat]}
    told = followed(tmp_path, first)
    changes = till(tmp_path, second).read_changes(told.known)
    assert changes.fresh.addon_groups.keys() == {"g"}
    assert changes.fresh.items.keys() == {"1"}


def test_a_bad_item_below_a_known_one_of_its_id_stands_for_none(tmp_path: Path) -> None:
    body = {"items": [item("1"), item("2"), item("1", price="?")]}
    told = followed(tmp_path, body)
    changes = till(tmp_path, body).read_changes(told.known)
    assert [row.external_id for row in changes.fresh.bad_rows] == [""]
    assert not changes.fresh.items


def test_a_bad_item_above_a_known_one_of_its_id_stands_for_it(tmp_path: Path) -> None:
    body = {"items": [item("2"), item("1", price="?"), item("1")]}
    told = followed(tmp_path, body)
    changes = till(tmp_path, body).read_changes(told.known)
    assert [row.external_id for row in changes.fresh.bad_rows] == ["1"]


@pytest.mark.parametrize("addon_is_first", [True, False])
def test_a_group_is_offered_the_first_item_of_an_id(tmp_path: Path, addon_is_first: bool) -> None:
    """Be it a known one or a new one."""
    groups = [{"external_id": "g", "name": "Milk", "add_ons": ["oat"]}]
    known = item("oat", product_type="addon")
    both = [known, item("oat")] if addon_is_first else [item("oat"), known]
    told = followed(tmp_path, {"addon_groups": groups, "items": [known]})
    changes = till(tmp_path, {"addon_groups": groups, "items": both}).read_changes(told.known)
    assert bool(changes.fresh.addon_groups) == addon_is_first


@pytest.mark.parametrize(
    "odd",
    [
        {"items": [item("1"), item("2"), item("bad", price="?")]},
        {"items": [item("1"), item("2"), item("2", price="?")]},
        {"items": [item("1"), item("2"), item("1")]},
        {
            "addon_groups": [{"external_id": "g", "name": "Milk", "add_ons": ["oat", "gone"]}],
            "items": [item("1"), item("2"), item("oat", product_type="addon")],
        },
    ],
    ids=["a bad item", "a bad item with a known id", "an item twice", "a group of add-on items"],
)
def test_known_items_are_not_read_for_what_stays_odd(tmp_path: Path, odd: Json) -> None:
    told = followed(tmp_path, odd)
    body = {**odd, "items": [*odd["items"], item("new")]}
    changes = till(tmp_path, body).read_changes(told.known)
    assert not changes.unseen
    assert changes.fresh.source.places.keys() == {"new"}


def test_a_misspelt_field_is_told_at_every_reading(tmp_path: Path) -> None:
    body = {"items": [item("1"), item("2", descripton="Hot")]}
    told = followed(tmp_path, body)
    changes = till(tmp_path, body).read_changes(told.known)
    assert [row.field for row in changes.fresh.bad_rows] == ["descripton"]
    assert not changes.fresh.items
    assert not changes.unseen


@pytest.mark.parametrize(
    "body",
    [
        '{"menus": [{"external_id": "m", "name": "m", "items": [%s], "external_id": "n"}]}',
        '{"menus": [{"external_id": "m", "name": "m", "items": [%s], "items": []}]}',
        '{"menus": [{"items": [%s], "external_id": "m", "name": "m"}]}',
        '{"menus": [{"external_id": "m", "name": "m", "menus": [{"items": [%s]}]}]}',
    ],
    ids=["the id twice", "the items twice", "the id below", "a menu within"],
)
def test_odd_shapes_of_a_menu_are_read_as_they_are_whole(tmp_path: Path, body: str) -> None:
    items = ", ".join(json.dumps(item(each)) for each in "12")
    told = followed(tmp_path, {"menus": [menu("m", item("1"), item("2"))]})
    told.follow(till(tmp_path, body % items))
