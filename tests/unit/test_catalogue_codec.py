"""Menus as bodies of the service's calls, and as the ledger's text."""

import json

from hypothesis import given

from tests.support.catalogues import catalogues, items
from tillbridge.ledger.menu_codec import AcceptedItem, Parts, PushContent, item_from, item_text
from tillbridge.menu import plan as codec
from tillbridge.menu.compare import fingerprint
from tillbridge.model.catalogue import AddOnGroup, Catalogue, Item, ItemTax, TaxComponent, Variant
from tillbridge.sandbox import bodies

SOUP = Item(
    "soup",
    "Soup",
    450,
    description="hot",
    categories=("starters",),
    variants=(Variant("soup-s", "small", 300),),
    tax=ItemTax("VAT", (TaxComponent("State", "8.25"), TaxComponent("City", "2"))),
)


def test_an_item_is_sent_with_the_fields_that_say_something() -> None:
    assert codec.item_body(Item("tea", "Tea", 200)) == {
        "external_id": "tea",
        "name": "Tea",
        "price": 200,
        "available": True,
    }


def test_what_an_item_has_no_more_is_sent_empty() -> None:
    body = codec.item_body(Item("soup", "Soup", 450), SOUP)
    assert (body["description"], body["categories"], body["variants"]) == ("", [], [])
    assert "tax" not in body


def test_a_patch_holds_the_id_and_what_changed() -> None:
    before = {"soup": Item("soup", "Broth", 450)}
    step = codec.Step("patch", (SOUP,), before=before, fields=frozenset({"name"}))
    assert step.body() == {"external_id": "soup", "name": "Soup"}


def test_a_tax_rate_is_a_number_of_the_same_digits() -> None:
    rates = ["8.25", "2", "0.1", "19.000", "6.125"]
    assert json.dumps([codec.json_number(each) for each in rates]) == "[8.25, 2, 0.1, 19, 6.125]"


def test_availability_carries_the_end_of_a_snooze_only_while_off() -> None:
    off = Item("a", "A", 1, available=False, snooze_until=1_700_000_000_000)
    assert codec.availability_bodies([off, Item("b", "B", 1)]) == [
        {"external_id": "a", "available": False, "snooze_until": "2023-11-14T22:13:20.000Z"},
        {"external_id": "b", "available": True},
    ]


@given(catalogues())
def test_prices_stay_integers(catalogue: Catalogue) -> None:
    body = codec.batch_body(catalogue.items.values(), {}, [], Parts(add_ons=catalogue.add_ons))
    text = json.dumps(body)
    assert json.loads(text, parse_float=lambda found: float(found) if found == "8.25" else 1 / 0)


def test_a_group_without_a_limit_is_sent_with_as_many_as_it_has() -> None:
    groups = [
        AddOnGroup("g", "Extras", add_ons=("a", "b")),
        AddOnGroup("h", "Size", 1, 1, required=True, add_ons=("a", "b")),
    ]
    body = codec.batch_body(
        [], {}, [], Parts(addon_groups={each.external_id: each for each in groups})
    )
    assert [each["max_select"] for each in body["addon_groups"]] == [2, 1]


def test_the_sandbox_accepts_a_batch_with_everything() -> None:
    bodies.Batch.model_validate(
        codec.batch_body([Item("tea", "Tea", 1), SOUP], {"soup": SOUP}, ["x"], Parts())
    )


@given(items("x"))
def test_an_item_survives_the_ledger(item: Item) -> None:
    assert item_from(json.loads(item_text(item))) == item
    assert -(1 << 63) <= fingerprint(item) < 1 << 63


@given(catalogues())
def test_what_a_job_carries_survives_a_restart(catalogue: Catalogue) -> None:
    pending = PushContent(
        ("gone",),
        tuple(AcceptedItem.of(each, each, 7) for each in catalogue.items.values()),
        Parts(catalogue.categories, catalogue.add_ons, catalogue.addon_groups, catalogue.menus),
    )
    assert PushContent.of_text(pending.text()) == pending
