"""Finding the items a refusal is about."""

from tests.support.catalogues import dishes
from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.narrowing import divide, ids_of, lacking_in, named_in
from tillbridge.menu.plan import PatchItem, PushBatch, PushFull
from tillbridge.model.catalogue import Menu

ITEMS = tuple(dishes(8).items.values())
BATCH = PushBatch(add=ITEMS[:4], update=ITEMS[4:7], delete=("p8",))
FULL = PushFull((Menu("menu", "Menu"),), ITEMS, Parts(dishes(8).categories))


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
    rest, one = divide(FULL, {"p3"})
    assert ids_of(one) == {"p3"}
    assert ids_of(rest) == ids_of(FULL) - {"p3"}


def test_without_names_halves_are_sent_until_one_item_is_left() -> None:
    parts = [BATCH]
    while len(parts) < 8:
        parts = [smaller for each in parts for smaller in (divide(each, frozenset()) or (each,))]  # type: ignore[misc]
    assert sorted(next(iter(ids_of(each))) for each in parts) == [f"p{n}" for n in range(1, 9)]
    assert divide(parts[0], frozenset()) == ()


def test_a_part_brings_the_categories_it_needs() -> None:
    first, _second = divide(FULL, frozenset())
    assert isinstance(first, PushFull)
    assert first.parts.categories.keys() == {"Mains"}


def test_a_part_that_was_told_before_and_is_named_is_lacking() -> None:
    refusal = "update[0].categories[0]: 'Mains' is not a category of this or an earlier push"
    assert lacking_in(refusal, BATCH) == {"Mains"}
    patch = PatchItem(ITEMS[0], ITEMS[0], frozenset({"categories"}))
    assert lacking_in(refusal, patch) == {"Mains"}
    assert not lacking_in("update[0].price: must be an integer", BATCH)
    told = PushBatch(update=ITEMS, parts=Parts(dishes(8).categories))
    assert not lacking_in(refusal, told), "it stands in the very call"
    assert not lacking_in(refusal, FULL), "a full push tells everything"
