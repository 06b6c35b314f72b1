from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.sandbox.catalogue import (
    apply_push,
    delete_item,
    find_sellable,
    is_available,
    is_orderable,
    live_variants,
    read_push,
    set_available,
    version,
    wake,
)
from tillbridge.sandbox.state import Catalogue

keys = st.sampled_from("abcde")
variants = st.lists(
    st.fixed_dictionaries(
        {
            "external_id": st.sampled_from(["v", "w"]),
            "variant_name": st.just("V"),
            "price": st.integers(0, 9),
        }
    ),
    unique_by=lambda entry: str(entry["external_id"]),
    max_size=2,
)
items = st.lists(
    st.fixed_dictionaries(
        {"external_id": keys, "name": st.text(min_size=1), "price": st.integers(0, 999)},
        optional={"available": st.booleans(), "variants": variants},
    ),
    unique_by=lambda entry: str(entry["external_id"]),
)


def push(catalogue: Catalogue, *records: dict[str, Any]) -> None:
    apply_push(catalogue, read_push({"menu_name": "M", "items": list(records)}), {})


@given(items, items)
def test_a_push_is_an_upsert(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    catalogue = Catalogue()
    push(catalogue, *first)
    push(catalogue, *second)
    assert catalogue.items.keys() == {entry["external_id"] for entry in first + second}
    for record in second:
        item = catalogue.items[record["external_id"]]
        assert (item.name, item.price) == (record["name"], record["price"])
        sent = {entry["external_id"] for entry in record.get("variants", ())}
        assert {variant.external_id for variant in live_variants(item)} == sent


@given(items)
def test_pushing_twice_is_pushing_once(records: list[dict[str, Any]]) -> None:
    catalogue = Catalogue()
    push(catalogue, *records)
    before = {key: (item.product_id, item.fields) for key, item in catalogue.items.items()}
    push(catalogue, *records)
    assert {key: (item.product_id, item.fields) for key, item in catalogue.items.items()} == before


def snoozed(until_ms: int) -> Catalogue:
    catalogue = Catalogue()
    push(catalogue, {"external_id": "a", "name": "A", "price": 1})
    set_available(catalogue, catalogue.items["a"], available=False, snooze_until_ms=until_ms)
    return catalogue


def test_a_snooze_ends_at_its_instant_and_the_version_tells() -> None:
    catalogue = snoozed(1000)
    item = catalogue.items["a"]
    assert (is_available(item, 999), is_available(item, 1000)) == (False, True)
    assert version(catalogue, 999) != version(catalogue, 1000)


def test_waking_settles_only_what_is_over() -> None:
    catalogue = snoozed(1000)
    wake(catalogue, 999)
    assert catalogue.snoozed == {"a"}
    wake(catalogue, 1000)
    assert catalogue.snoozed == set()
    assert catalogue.items["a"].available


def test_a_deleted_item_leaves_no_snooze_behind() -> None:
    catalogue = snoozed(1000)
    assert delete_item(catalogue, "a")
    assert not delete_item(catalogue, "a")
    assert find_sellable(catalogue, "a") is None
    assert version(catalogue, 2000)
    wake(catalogue, 2000)
    assert catalogue.snoozed == set()


def test_an_item_whose_variants_are_all_sold_out_is_not_orderable() -> None:
    catalogue = Catalogue()
    variant = {"external_id": "v", "variant_name": "V", "price": 1, "available": False}
    push(catalogue, {"external_id": "a", "name": "A", "price": 1, "variants": [variant]})
    assert not is_orderable(catalogue.items["a"], 0)


def test_a_re_created_item_is_not_snoozed() -> None:
    catalogue = snoozed(1000)
    delete_item(catalogue, "a")
    push(catalogue, {"external_id": "a", "name": "A", "price": 1})
    assert is_available(catalogue.items["a"], 0)
