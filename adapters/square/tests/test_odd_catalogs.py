"""Catalogs that some program has put together: nulls for what is empty, and worse."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge_square.catalog import Catalog
from tillbridge_square.options import SquareOptions

PAGES = json.loads(Path(__file__).with_name("cases").joinpath("catalog/catalog.json").read_text())


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 -- JSON
    if isinstance(node, dict | list):
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from places(part, (*path, key))


OPTIONS = SquareOptions(export=Path("c.json"))
PLACES = list(places(PAGES))
VALUES = st.sampled_from([None, "x", -1, 2.5, True, [], {}, [None], ["L1"], {"a": None}, 10**30])


def read(document: object) -> None:
    try:
        catalog = Catalog.of(document, "c.json", location="L1", currency="USD", menu="m")
    except ValueError:
        return
    catalog.locations()
    found, _records = catalog.read(frozenset(), OPTIONS)
    assert all(item.price >= 0 for item in found.items.values())


@settings(deadline=None)  # a machine may be busy
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_whatever_stands_in_a_catalog_breaks_nothing(
    changes: list[tuple[tuple[Any, ...], object]],
) -> None:
    document = copy.deepcopy(PAGES)
    for path, value in changes:
        node = document
        try:
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # another change has taken the place away
    read(document)


def test_no_variation_of_several_is_without_a_name() -> None:
    document = copy.deepcopy(PAGES)
    for item in (each for page in document for each in page["objects"] if each["type"] == "ITEM"):
        for variation in item["item_data"].get("variations", ()):
            variation["item_variation_data"].pop("name", None)
    catalog = Catalog.of(document, "c.json", location="L1", currency="USD", menu="m")
    found, _records = catalog.read(frozenset(), OPTIONS)
    named = [
        (each.variant_name, item.name) for item in found.items.values() for each in item.variants
    ]
    assert named
    assert all(variant == name for variant, name in named)


def test_null_is_nothing() -> None:
    document = copy.deepcopy(PAGES)
    for item in (each for page in document for each in page["objects"] if each["type"] == "ITEM"):
        item |= {"absent_at_location_ids": None, "present_at_location_ids": None}
        item["item_data"] |= {"tax_ids": None, "image_ids": None, "modifier_list_info": None}
    read(document)
