"""What of a catalog is pushed, and what its bytes tell."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tillbridge.adapter import AdapterContext, ExportUnreadable
from tillbridge.adapter.conformance.changes import Told
from tillbridge_square.adapter import SquareAdapter
from tillbridge_square.options import SquareOptions

Json = dict[str, Any]


def item(identity: str, name: str, *infos: Json, **data: object) -> Json:
    money = {"amount": 900, "currency": "USD"}
    variation = {"id": f"{identity}-v", "item_variation_data": {"price_money": money}}
    said = {"name": name, "variations": [variation], "modifier_list_info": list(infos), **data}
    return {"type": "ITEM", "id": identity, "item_data": said}


def choice(identity: str, name: str = "Milk") -> Json:
    offered = [{"id": f"{identity}-m", "modifier_data": {"name": "Oat"}}]
    data = {"name": name, "modifiers": offered}
    return {"type": "MODIFIER_LIST", "id": identity, "modifier_list_data": data}


def has(group: str, **numbers: int) -> Json:
    return {"modifier_list_id": group, **numbers}


def adapter(folder: Path) -> SquareAdapter:
    options = SquareOptions(export=Path("catalog.json"))
    return SquareAdapter(options, AdapterContext("bar", "USD", "loc", folder))


def write(folder: Path, *objects: Json, encoding: str = "utf-8") -> SquareAdapter:
    text = json.dumps({"objects": objects}, ensure_ascii=False)
    (folder / "catalog.json").write_bytes(text.encode(encoding))
    return adapter(folder)


def test_a_choice_that_no_item_has_is_left_out(tmp_path: Path) -> None:
    bare = has("C", min_selected_modifiers=1)
    objects = [choice("A"), choice("B"), choice("C"), item("1", "Latte", has("A"), bare)]
    found = write(tmp_path, *objects).read_catalogue()
    assert set(found.addon_groups) == {"A", "C/1"}
    assert set(found.add_ons) == {"A-m", "C-m"}


def test_choices_of_items_that_are_known_or_bad_stay(tmp_path: Path) -> None:
    told = Told()
    choices = [choice("A"), choice("B"), choice("C")]
    told.follow(write(tmp_path, *choices, item("1", "Latte", has("A"))))
    told.follow(write(tmp_path, *choices, item("1", "Latte", has("A")), item("2", "Tea", has("B"))))
    impossible = has("C", min_selected_modifiers=9)
    found = write(tmp_path, *choices, item("3", "Mocha", impossible)).read_catalogue()
    assert (list(found.items), list(found.addon_groups)) == ([], ["C"])
    assert [row.external_id for row in found.bad_rows] == ["3"]


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("cp1252", "cp1252"),
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_a_catalog_says_how_it_is_encoded(encoding: str, said: str, tmp_path: Path) -> None:
    found = write(tmp_path, item("1", "Café crème"), encoding=encoding).read_catalogue()
    assert found.items["1"].name == "Café crème"
    assert found.facts.encodings["catalog.json"].encoding == said


def test_a_catalog_that_was_encoded_twice_is_warned_of(tmp_path: Path) -> None:
    garbled = "Café crème".encode().decode("cp1252")
    found = write(tmp_path, item("1", garbled)).read_catalogue()
    assert "encoded twice" in found.facts.warnings[0].text


def test_one_bad_byte_costs_one_item(tmp_path: Path) -> None:
    objects = [item("1", "Café"), item("2", "Th@"), item("3", "Crème"), item("4", "Tea")]
    pos = write(tmp_path, *objects)
    path = tmp_path / "catalog.json"
    path.write_bytes(path.read_bytes().replace(b"Th@", b"Th\xe9"))
    found = pos.read_catalogue()
    assert [each.name for each in found.items.values()] == ["Café", "Crème", "Tea"]
    (row,) = found.bad_rows
    assert (row.place, row.external_id) == ("catalog.json, item 2 (2)", "2")
    assert (row.field, row.value) == ("item_data.name", "Th\ufffd")
    assert row.text.startswith("item_data.name holds a character")
    assert found.facts.encodings["catalog.json"].bad_byte is not None


def test_an_item_stays_whose_choice_holds_a_bad_byte(tmp_path: Path) -> None:
    objects = [choice("A", "M\ufffdlk"), item("1", "Latte", has("A")), item("2", "Tea")]
    found = write(tmp_path, *objects).read_catalogue()
    assert list(found.items) == ["2"]
    assert [row.external_id for row in found.bad_rows] == ["1"]


def test_a_catalog_that_stays_cut_names_the_place(tmp_path: Path) -> None:
    pos = write(tmp_path, item("1", "Tea"))
    path = tmp_path / "catalog.json"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ExportUnreadable) as cut:
        pos.read_catalogue()
    assert cut.value.passing
    long_ago = time.time() - 600
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(ExportUnreadable, match="no whole JSON document") as left:
        pos.read_catalogue()
    assert not left.value.passing
    assert left.value.place.startswith("catalog.json, line 1, column ")
