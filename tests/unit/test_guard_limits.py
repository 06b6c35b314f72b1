"""The guard's limits as numbers, and what lies just on either side of each."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.support.catalogues import dishes, without
from tests.support.full_menus import full_menu, mutated, tax, totals_of
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu import guard
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import Rules, Source, must_be_chosen, plain, wanted_counts
from tillbridge.model.catalogue import AddOnGroup, Catalogue, Item, ItemTax
from tillbridge.model.export_facts import FileEncoding

RULES = Rules(MenuSettings(), AssumptionSettings(), "USD")
MENU = full_menu(12)


def codes(before: Catalogue, after: Catalogue) -> set[str]:
    changes = diff(before, after)
    return {each.code for each in guard.findings(changes, totals_of(before, changes), RULES)}


def test_the_limits_are_those_of_the_documents() -> None:
    assert (guard.FEW, guard.FEW_PARTS, guard.FEW_ADDED, guard.ALL) == (5, 2, 20, 3)
    assert (guard.SLIP_FACTOR, guard.TAX_FACTOR) == (50, 2)
    assert Decimal(5) == guard.TAX_POINTS


@pytest.mark.parametrize(
    ("rate", "later", "is_held"),
    [
        ("10", "15", False),
        ("10", "15.01", True),
        ("1", "2", True),
        ("1", "1.99", False),
        ("0", "3", False),
        ("0", "5.5", True),
        ("10", "10", False),
        ("10", "ten", True),
    ],
)
def test_a_tax_moves_by_points_or_by_half(rate: str, later: str, is_held: bool) -> None:
    before = mutated(MENU, lambda item: replace(item, tax=tax(rate)), list(MENU.items))
    after = mutated(MENU, lambda item: replace(item, tax=tax(later)), list(MENU.items))
    assert ("taxes_moved" in codes(before, after)) is is_held


def all_changed(**fields: object) -> Catalogue:
    return mutated(MENU, lambda item: replace(item, **fields), list(MENU.items))  # type: ignore[arg-type]


def test_to_get_a_tax_or_a_text_or_another_one_is_no_loss() -> None:
    none: ItemTax | None = None
    assert codes(all_changed(tax=none), MENU) == set()
    assert codes(all_changed(description=""), MENU) == set()
    assert codes(all_changed(description="Another"), MENU) == set()
    assert codes(all_changed(image_url="https://example.net/x.png"), MENU) == set()


def test_sizes_that_keep_their_names_lose_none() -> None:
    def dearer(item: Item) -> Item:
        sizes = tuple(replace(each, price=each.price + 1) for each in item.variants)
        return replace(item, variants=sizes)

    def unnamed(item: Item) -> Item:
        return replace(item, variants=tuple(replace(e, variant_name="") for e in item.variants))

    ids = list(MENU.items)
    assert codes(MENU, mutated(MENU, dearer, ids)) == set()
    nameless = mutated(MENU, unnamed, ids)
    assert codes(nameless, mutated(nameless, dearer, ids)) == set()
    assert codes(MENU, nameless) == {"size_names_lost"}


def test_options_that_were_free_do_not_become_free() -> None:
    free = {key: replace(each, price=0) for key, each in MENU.add_ons.items()}
    before = replace(MENU, add_ons=free)
    named = {key: replace(each, name=f"New {key}") for key, each in free.items()}
    assert codes(before, replace(before, add_ons=named)) == {"options_renamed"}
    assert "options_free" in codes(MENU, before)


@pytest.mark.parametrize(
    ("required", "least", "must"),
    [(True, 0, True), (False, 1, True), (True, 1, True), (False, 0, False)],
)
def test_a_choice_is_a_must_by_either(required: bool, least: int, must: bool) -> None:
    assert must_be_chosen(AddOnGroup("g", "G", least, 2, required, ())) is must


def test_names_are_compared_without_case_and_blanks() -> None:
    assert plain(" Crème  BRÛLÉE ") == "crème brûlée"


def test_what_is_remembered_of_an_export() -> None:
    utf, ascii_only = FileEncoding("utf-8"), FileEncoding("ascii")
    whole, cut = Source(ends_with_newline=True), Source(ends_with_newline=False)
    assert cut.after(whole, sent=False) is whole
    assert cut.after(whole, sent=True).ends_with_newline is False
    assert whole.after(cut, sent=False).ends_with_newline is True
    assert Source().after(whole, sent=False).ends_with_newline is None
    known = Source(encodings={"a": utf, "b": utf})
    later = Source(encodings={"a": ascii_only, "c": utf})
    assert later.after(known, sent=True).encodings == {"a": utf, "b": utf, "c": utf}


def test_only_what_a_rule_may_hold_is_counted() -> None:
    def counted(after: Catalogue) -> tuple[set[str], set[str]]:
        fields, kinds = wanted_counts(diff(MENU, after))
        return set(fields), set(kinds)

    ids = list(MENU.items)
    assert counted(MENU) == (set(), set())

    def plainly(item: Item) -> Item:
        return replace(item, description="")

    assert counted(mutated(MENU, plainly, ids[:2])) == (set(), set())
    assert counted(mutated(MENU, plainly, ids[:3])) == ({"description"}, set())
    assert counted(mutated(MENU, lambda item: replace(item, price=1), ids)) == (set(), set())
    assert counted(mutated(MENU, lambda item: replace(item, name="X"), ids)) == (set(), set())
    moved = mutated(MENU, lambda item: replace(item, categories=("c0",)), ids[1:2])
    assert counted(moved) == (set(), {"categories"})
    fewer = {key: each for key, each in MENU.items.items() if key != ids[0]}
    assert counted(replace(MENU, items=fewer)) == (set(), {"categories"})
    free = {key: replace(each, price=0) for key, each in MENU.add_ons.items()}
    assert counted(replace(MENU, add_ons=free)) == (set(), {"add_ons"})


def added(count: int, *, known: int = 10, price: int = 500) -> Catalogue:
    """A menu of `known` dishes, and as many new ones."""
    before = full_menu(known)
    new = [Item(f"n{number}", f"New {number}", price) for number in range(count)]
    return replace(before, items={**before.items, **{each.external_id: each for each in new}})


@pytest.mark.parametrize(
    ("known", "count", "percent", "is_held"),
    [
        (10, 20, 100, False),  # a day's work
        (10, 21, 100, True),
        (21, 21, 100, False),  # just the limit
        (21, 22, 100, True),
        (100, 30, 30, False),
        (100, 31, 30, True),
    ],
)
def test_more_than_twenty_new_items_over_the_limit_wait(
    known: int, count: int, percent: int, is_held: bool
) -> None:
    rules = Rules(MenuSettings(max_added_percent=percent), AssumptionSettings(), "USD")
    before, after = full_menu(known), added(count, known=known)
    changes = diff(before, after)
    found = guard.findings(changes, totals_of(before, changes), rules)
    assert ({each.code for each in found} == {"added"}) is is_held
    assert bool(found) is is_held


def test_the_cheapest_price_is_a_price() -> None:
    before = full_menu(0)
    assert codes(before, added(8, known=0, price=1)) == set()
    assert codes(before, added(8, known=0, price=0)) == {"free"}


def test_the_twins_are_the_items_that_a_finding_names() -> None:
    before = full_menu(12)
    twins = {
        f"t{n}": replace(each, external_id=f"t{n}") for n, each in enumerate(MENU.items.values())
    }
    after = replace(before, items={**before.items, **twins, "new": Item("new", "Something new", 5)})
    changes = diff(before, after)
    (found,) = guard.findings(changes, totals_of(before, changes), RULES)
    assert found.code == "doubled"
    assert set(found.items) == set(twins)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (1, 50, "price_slipped"),  # as wrong as from one to fifty
        (1, 49, ""),
        (50, 1, "price_slipped"),
        (1, 0, "free"),
        (0, 0, ""),
        (0, 900, ""),
    ],
)
def test_a_price_slips_by_fifty_and_is_free_only_if_it_was_not(
    before: int, after: int, code: str
) -> None:
    def priced(amount: int, name: str) -> Catalogue:
        one = replace(MENU.items["p1"], price=amount, name=name, variants=())
        return replace(MENU, items={**MENU.items, "p1": one})

    found = codes(priced(before, "A"), priced(after, "B"))
    assert found == ({code} if code else set())


def test_the_price_that_moved_most_is_named_first() -> None:
    def priced(**amounts: int) -> Catalogue:
        dishes = {
            key: replace(MENU.items[key], price=amount, variants=())
            for key, amount in amounts.items()
        }
        return replace(MENU, items={**MENU.items, **dishes})

    changes = diff(priced(p1=100, p2=1), priced(p1=5_000, p2=60))
    found = guard.findings(changes, totals_of(priced(p1=100, p2=1), changes), RULES)
    assert [each.items for each in found if each.code == "price_slipped"] == [("p2", "p1")]


@pytest.mark.parametrize(
    ("known", "gone", "is_held"), [(60, 6, False), (59, 6, True), (10, 5, False), (700, 70, False)]
)
def test_a_tenth_may_be_removed_and_no_more(known: int, gone: int, is_held: bool) -> None:
    before = full_menu(known)
    left = dict(list(before.items.items())[gone:])
    assert ("removed" in codes(before, replace(before, items=left))) is is_held


@pytest.mark.parametrize(("price", "is_held"), [(150, False), (151, True), (50, False), (49, True)])
def test_half_of_a_price_may_move(price: int, is_held: bool) -> None:
    def priced(amount: int) -> Catalogue:
        return all_changed(price=amount, variants=())

    assert ("prices_moved" in codes(priced(100), priced(price))) is is_held


def kept_dishes(count: int, *new: Item) -> Catalogue:
    """A menu of nine dishes, of which the first `count` are left, and `new` ones."""
    menu = dishes(9)
    left = [each for key, each in menu.items.items() if int(key[1:]) <= count]
    return replace(menu, items={each.external_id: each for each in (*left, *new)})


def test_a_menu_is_empty_only_without_any_dish() -> None:
    assert "empty" in codes(kept_dishes(9), kept_dishes(0))
    assert "empty" not in codes(kept_dishes(9), kept_dishes(1))
    assert "empty" not in codes(kept_dishes(9), kept_dishes(0, Item("q1", "New", 500)))


def test_a_category_of_two_is_gone_with_both_and_not_if_others_were_moved() -> None:
    one = {"categories": ("Few",)}
    before = dishes(9, p1=one, p2=one)
    assert codes(before, without(before, "p1")) == set()
    assert codes(before, without(before, "p1", "p2")) == {"removed"}
    moved = dishes(9, p1=one, p2={"categories": ("Sides",)})
    assert codes(before, without(moved, "p1")) == set()


def test_free_dishes_that_replace_a_menu_wait() -> None:
    free = [Item(f"q{number}", f"New {number}", 0) for number in range(2)]
    assert "free" in codes(kept_dishes(2), kept_dishes(0, *free))
    assert "free" not in codes(kept_dishes(2), kept_dishes(0, *free, Item("q2", "New 2", 1)))


@pytest.mark.parametrize(
    ("known", "free", "priced", "is_held"),
    [
        (9, 5, 0, False),  # a day's work
        (9, 6, 0, True),
        (9, 6, 30, False),  # a sixth
        (0, 1, 1, False),  # on a first menu one may be free
        (0, 2, 7, True),
        (0, 2, 8, False),  # a fifth, and no more
    ],
)
def test_more_than_a_fifth_of_new_dishes_without_a_price_waits(
    known: int, free: int, priced: int, is_held: bool
) -> None:
    new = [Item(f"q{n}", f"New {n}", 0 if n < free else 500) for n in range(free + priced)]
    before = kept_dishes(known) if known else Catalogue()
    after = kept_dishes(known, *new)
    assert ("free" in codes(before, after)) is is_held


def test_every_file_of_an_export_is_looked_at() -> None:
    utf = FileEncoding("utf-8")
    before = Source(encodings={"a": FileEncoding("cp1252"), "b": utf, "c": utf, "d": utf})
    broken = FileEncoding("cp1252", bad_byte=4, bad_line=1)
    after = Source(encodings={"new": broken, "a": broken, "b": utf, "c": broken, "d": broken})
    changes = diff(MENU, all_changed(price=501))
    totals = totals_of(MENU, changes, accepted_from=before, read_from=after)
    found = [each.text for each in guard.findings(changes, totals, RULES)]
    assert [each[:1] for each in found if "used to be" in each] == ["c", "d"]


def test_wild_prices_are_told_by_how_many_times_they_moved() -> None:
    def ids(percent: float, before: dict[str, int], after: dict[str, int]) -> tuple[str, ...]:
        rules = Rules(MenuSettings(max_price_change_percent=percent), AssumptionSettings(), "USD")
        was, is_now = (
            dishes(4, **{key: {"price": price} for key, price in prices.items()})
            for prices in (before, after)
        )
        changes = diff(was, is_now)
        (found,) = guard.findings(changes, totals_of(was, changes), rules)
        return found.items

    assert ids(50, {"p1": 1000, "p2": 100}, {"p1": 1800, "p2": 200}) == ("p2", "p1")
    assert ids(0, {"p1": 1000, "p2": 1000}, {"p1": 1005, "p2": 1008}) == ("p2", "p1")
