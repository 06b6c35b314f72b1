"""Finding the items a refusal is about."""

from tests.support.catalogues import dishes
from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.plan import Step
from tillbridge.menu.verdict import Sent, divide, lacking_in, named_in
from tillbridge.model.catalogue import Menu

ITEMS = tuple(dishes(8).items.values())
KNOWN = {each.external_id: each for each in ITEMS}
BATCH = Step(
    "batch", ITEMS[:7], delete=("p8",), before={each.external_id: each for each in ITEMS[4:]}
)
FULL = Step("full", ITEMS, parts=Parts(dishes(8).categories), menus=(Menu("menu", "Menu"),))
REFUSED = Sent("failed")


def test_items_are_named_by_id() -> None:
    assert named_in("item 'p3' has no picture", BATCH) == {"p3"}
    assert named_in("rejected: p2, p8.", BATCH) == {"p2", "p8"}
    assert named_in("p22 is odd", BATCH) == frozenset()


def test_items_are_named_by_place() -> None:
    assert named_in("add[1].image_url: must be a URL", BATCH) == {"p2"}
    assert named_in("update[0].price: must be an integer", BATCH) == {"p5"}
    assert named_in("menus[0].items[5].price: must be an integer", FULL) == {"p6"}
    assert named_in("menus[0].items[99].price: must be an integer", FULL) == frozenset()


def test_named_items_are_sent_singly_after_the_rest() -> None:
    rest, one = divide(FULL, Sent("failed", named=frozenset({"p3"})))
    assert one.ids == ("p3",)
    assert set(rest.ids) == set(FULL.ids) - {"p3"}


def test_what_a_partial_answer_names_is_sent_alone() -> None:
    (one,) = divide(FULL, Sent("partial", named=frozenset({"p3"})))
    assert one.ids == ("p3",)


def test_without_names_halves_are_sent_until_one_item_is_left() -> None:
    parts = [BATCH]
    while len(parts) < 8:
        parts = [smaller for each in parts for smaller in (divide(each, REFUSED) or (each,))]
    assert sorted(each.ids[0] for each in parts) == [f"p{n}" for n in range(1, 9)]
    assert divide(parts[0], REFUSED) == ()


def test_a_part_brings_the_categories_it_needs() -> None:
    first, _second = divide(FULL, REFUSED)
    assert first.kind == "full"
    assert first.parts.categories.keys() == {"Mains"}


def test_a_part_that_was_told_before_and_is_named_is_lacking() -> None:
    refusal = "update[0].categories[0]: 'Mains' is not a category of this or an earlier push"
    assert lacking_in(refusal, BATCH) == {"Mains"}
    patch = Step("patch", ITEMS[:1], before=KNOWN, fields=frozenset({"categories"}))
    assert lacking_in(refusal, patch) == {"Mains"}
    assert not lacking_in("update[0].price: must be an integer", BATCH)
    told = Step("batch", ITEMS, before=KNOWN, parts=Parts(dishes(8).categories))
    assert not lacking_in(refusal, told), "it stands in the very call"
    assert not lacking_in(refusal, FULL), "a full push tells everything"
