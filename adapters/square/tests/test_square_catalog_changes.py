"""A catalog read as its difference says the same as the catalog read whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.conformance.changes import Told
from tillbridge_square.adapter import SquareAdapter
from tillbridge_square.options import SquareOptions

Json = dict[str, Any]


def thing(kind: str, external_id: str, **data: object) -> Json:
    return {"type": kind, "id": external_id, f"{kind.lower()}_data": data}


def variation(external_id: str, amount: object, name: str = "Regular") -> Json:
    money = {"amount": amount, "currency": "EUR"}
    return thing("ITEM_VARIATION", external_id, name=name, price_money=money)


def item(external_id: str = "I1", amount: object = 450, **data: object) -> Json:
    said: Json = {"name": "Soup", "variations": [variation(f"{external_id}-v", amount)], **data}
    return thing("ITEM", external_id, **said)


ITEM = st.builds(
    item,
    st.sampled_from(["I1", "I2", "I3"]),
    st.sampled_from([100, 200, None]),
    name=st.sampled_from(["Soup", "Tea", ""]),
    is_archived=st.booleans(),
    category_id=st.sampled_from(["C1", "C2", ""]),
    tax_ids=st.sampled_from([[], ["T1"]]),
    image_ids=st.sampled_from([[], ["P1"]]),
    modifier_list_info=st.lists(
        st.fixed_dictionaries(
            {"modifier_list_id": st.just("M1"), "min_selected_modifiers": st.sampled_from([-1, 1])}
        ),
        max_size=1,
    ),
)
OTHER = st.one_of(
    st.sampled_from(["Hot", "Warm"]).map(lambda name: thing("CATEGORY", "C1", name=name)),
    st.sampled_from(["8", "9"]).map(lambda rate: thing("TAX", "T1", name="VAT", percentage=rate)),
    st.sampled_from(["a", "b"]).map(lambda name: thing("IMAGE", "P1", url=f"https://x/{name}")),
    st.sampled_from([50, 60]).map(
        lambda amount: thing(
            "MODIFIER_LIST",
            "M1",
            name="Milk",
            modifiers=[thing("MODIFIER", "m", name="Oat", price_money={"amount": amount})],
        )
    ),
)


def till(folder: Path, objects: list[Json]) -> SquareAdapter:
    (folder / "catalog.json").write_text(json.dumps({"objects": objects}), "utf-8")
    context = AdapterContext("bar", "EUR", "loc", folder)
    return SquareAdapter(SquareOptions(export=Path("catalog.json")), context)


@settings(deadline=None)  # files take their time on a machine that is busy
@given(
    catalogs=st.lists(
        st.tuples(st.lists(ITEM, max_size=4), st.lists(OTHER, max_size=4)), min_size=2, max_size=4
    )
)
def test_any_sequence_of_catalogs_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory, catalogs: list[tuple[list[Json], list[Json]]]
) -> None:
    folder = tmp_path_factory.mktemp("till")
    told = Told()
    for items, others in catalogs:
        told.follow(till(folder, [*items, *others]))


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        (thing("IMAGE", "P1", url="a"), thing("IMAGE", "P1", url="b"), {"I1"}),
        (thing("CATEGORY", "C1", name="Hot"), thing("CATEGORY", "C1", name="Warm"), set()),
        (
            thing("TAX", "T1", name="VAT", percentage="8"),
            thing("TAX", "T1", name="VAT", percentage="9"),
            {"I1", "I2"},
        ),
    ],
    ids=["an image", "a category's name", "a tax"],
)
def test_an_item_is_new_with_what_it_is_made_of(
    tmp_path: Path, before: Json, after: Json, new: set[str]
) -> None:
    items = [item("I1", image_ids=["P1"], category_id="C1", tax_ids=["T1"]), item("I2")]
    told = Told()
    told.follow(till(tmp_path, [*items, before]))
    changes = till(tmp_path, [*items, after]).read_changes(told.known)
    assert changes.fresh.items.keys() == new
    told.follow(till(tmp_path, [*items, after]))
