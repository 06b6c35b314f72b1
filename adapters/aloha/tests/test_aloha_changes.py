"""A folder of tables read as its difference says the same as the folder read whole."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.conformance.changes import Told
from tillbridge_aloha.adapter import AlohaAdapter
from tillbridge_aloha.dbf_writing import write_dbf
from tillbridge_aloha.options import AlohaOptions
from tillbridge_aloha.rig import CAT, CIT, ITM

SALES = (("ITEM", "N", 10, 0), ("PARENT", "N", 10, 0))
IDS = st.integers(1, 5)
ITEMS = st.lists(
    st.tuples(
        IDS,
        st.sampled_from(["Soup", "Tea", ""]),
        st.sampled_from(["Y", "N", "N"]),
        st.sampled_from(["1.00", "2.50", "0", "-1", "1.005"]),
    ),
    max_size=5,
)
CATEGORIES = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["Hot", "Cold", "Stop"])))
LINKS = st.lists(st.tuples(st.integers(1, 4), IDS), max_size=5)
SOLD = st.lists(st.tuples(IDS, IDS), max_size=4)

Item = tuple[int, str, str, str]
Pair = tuple[int, int]


def export(
    folder: Path,
    items: Sequence[Item],
    categories: Sequence[tuple[int, str]] = (),
    links: Sequence[Pair] = (),
    sold: Sequence[Pair] = (),
) -> None:
    rows = [
        {"ID": number, "LONGNAME": name, "ASKPRICE": ask, "PRICE": Decimal(price)}
        for number, name, ask, price in items
    ]
    write_dbf(folder / "ITM.DBF", ITM, rows)
    named = [{"ID": number, "NAME": name} for number, name in categories]
    write_dbf(folder / "CAT.DBF", CAT, named)
    linked = [{"CATEGORY": category, "ITEMID": item} for category, item in links]
    write_dbf(folder / "CIT.DBF", CIT, linked)
    below = [{"ITEM": item, "PARENT": parent} for item, parent in sold]
    write_dbf(folder / "GNDITEM.DBF", SALES, below)


def till(folder: Path, zero_prices: str = "sell", left_out: Sequence[str] = ()) -> AlohaAdapter:
    said = {
        "folder": ".",
        "zero_prices": zero_prices,
        "stop_list": "stop",
        "leave_out_categories": left_out,
    }
    context = AdapterContext("bar", "EUR", "loc", folder)
    return AlohaAdapter(AlohaOptions.model_validate(said), context)


@settings(deadline=None)  # four files for each export take their time on a machine that is busy
@given(
    exports=st.lists(st.tuples(ITEMS, CATEGORIES, LINKS, SOLD), min_size=2, max_size=4),
    zero_prices=st.sampled_from(["leave_out", "sell", "refuse"]),
    left_out=st.sampled_from([(), ("hot",)]),
)
def test_any_sequence_of_exports_is_followed_by_its_changes(
    tmp_path_factory: pytest.TempPathFactory,
    exports: list[tuple[list[Item], list[tuple[int, str]], list[Pair], list[Pair]]],
    zero_prices: str,
    left_out: Sequence[str],
) -> None:
    folder = tmp_path_factory.mktemp("till")
    told = Told()
    for each in exports:
        export(folder, *each)
        told.follow(till(folder, zero_prices, left_out))


def test_a_category_of_another_name_is_told_while_its_items_are_known(tmp_path: Path) -> None:
    export(tmp_path, [(1, "Soup", "N", "4.50")], [(1, "Hot")], [(1, 1)])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, [(1, "Soup", "N", "4.50")], [(1, "Warm")], [(1, 1)])
    changes = pos.read_changes(told.known)
    assert [each.name for each in changes.fresh.categories.values()] == ["Warm"]
    assert not changes.fresh.items


def test_what_goes_onto_the_stop_list_is_new_and_no_other(tmp_path: Path) -> None:
    items = [(1, "Soup", "N", "4.50"), (2, "Tea", "N", "3.00")]
    export(tmp_path, items, [(9, "Stop")])
    pos, told = till(tmp_path), Told()
    told.follow(pos)
    export(tmp_path, items, [(9, "Stop")], [(9, 2)])
    changes = pos.read_changes(told.known)
    assert {key: item.available for key, item in changes.fresh.items.items()} == {"2": False}
