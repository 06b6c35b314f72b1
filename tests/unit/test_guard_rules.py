"""What a guest would notice: every way of losing it is held above the limit, and passes below."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogues import catalogues
from tests.support.full_menus import LOSSES, doubled, full_menu, mutated, tax, totals_of
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import (
    ALL,
    FEW,
    FEW_ADDED,
    ITEMS,
    Finding,
    Rules,
    Source,
    findings,
    is_mass,
    tax_rate,
)
from tillbridge.menu.guard import RULES as TABLE
from tillbridge.model.catalogue import Catalogue, Item
from tillbridge.model.export_facts import FileEncoding

RULES = Rules(MenuSettings(), AssumptionSettings(), "USD")


def found(before: Catalogue, after: Catalogue, **source: Source) -> dict[str, Finding]:
    changes = diff(before, after)
    made = findings(changes, totals_of(before, changes, **source), RULES)
    return {each.code: each for each in made}


@pytest.mark.parametrize("code", LOSSES)
@given(size=st.integers(3, 60), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_loss_is_held_above_the_limit_and_passes_below(
    code: str, size: int, share: float, seed: int
) -> None:
    before = full_menu(size)
    ids = Random(seed).sample(sorted(before.items), round(size * share))
    codes = found(before, mutated(before, LOSSES[code], ids))
    hits = len(ids)
    above = (hits > FEW and hits * 100 > 20 * size) or hits == size
    assert (code in codes) == above
    if above:
        assert set(codes[code].items) == set(ids)
    elif code != "headings_lost":  # a heading may be emptied by few
        assert not codes


def test_every_rule_of_the_table_has_a_case() -> None:
    assert LOSSES.keys() == {rule.code for rule in TABLE if rule.kind == ITEMS}
    assert {rule.code for rule in TABLE if rule.kind != ITEMS} == PART_LOSSES.keys()


def _groups(catalogue: Catalogue, count: int, **fields: object) -> Catalogue:
    keys = list(catalogue.addon_groups)[:count]
    changed = {key: replace(catalogue.addon_groups[key], **fields) for key in keys}  # type: ignore[arg-type]
    return replace(catalogue, addon_groups={**catalogue.addon_groups, **changed})


def _add_ons(catalogue: Catalogue, count: int, **fields: object) -> Catalogue:
    keys = list(catalogue.add_ons)[:count]
    changed = {key: replace(catalogue.add_ons[key], **fields) for key in keys}  # type: ignore[arg-type]
    return replace(catalogue, add_ons={**catalogue.add_ons, **changed})


def _headings(catalogue: Catalogue, count: int) -> Catalogue:
    keys = list(catalogue.categories)[:count]
    changed = {key: replace(catalogue.categories[key], name="X") for key in keys}
    return replace(catalogue, categories={**catalogue.categories, **changed})


PART_LOSSES = {
    "options_lost": lambda menu: _groups(menu, 4, add_ons=("a1",)),
    "required_lost": lambda menu: _groups(menu, 4, required=False, min_select=0),
    "groups_renamed": lambda menu: _groups(menu, 4, name="X"),
    "options_free": lambda menu: _add_ons(menu, 12, price=0),
    "options_renamed": lambda menu: _add_ons(menu, 12, name="X"),
    "headings_renamed": lambda menu: _headings(menu, 4),
}


@pytest.mark.parametrize("code", PART_LOSSES)
def test_choices_options_and_headings_are_held_too(code: str) -> None:
    before = full_menu(40)
    assert found(before, PART_LOSSES[code](before)).keys() == {code}


def test_one_choice_that_changes_passes() -> None:
    before = full_menu(40)
    assert not found(before, _groups(before, 1, add_ons=("a1",), required=False, min_select=0))
    assert not found(before, _headings(before, 2))


def test_headings_that_lose_their_items_to_another_are_held() -> None:
    before = full_menu(40)
    moved = mutated(before, lambda item: replace(item, categories=("c0",)), list(before.items))
    finding = found(before, moved)["headings_emptied"]
    assert finding.text == (
        "9 of 10 categories left empty (Heading 1, Heading 2, Heading 3 and 6 more)"
    )
    one = [key for key, item in before.items.items() if item.categories == ("c1",)]
    assert not found(before, mutated(before, lambda i: replace(i, categories=("c0",)), one))


@given(size=st.integers(3, 60), count=st.integers(0, 60))
def test_the_same_dishes_under_new_ids_are_held(size: int, count: int) -> None:
    before = full_menu(size)
    ids = sorted(before.items)[: min(size, count)]
    codes = found(before, doubled(before, ids))
    above = len(ids) > FEW and len(ids) * 100 > 20 * size
    assert ("doubled" in codes) == above


@given(size=st.integers(1, 60), count=st.integers(0, 80))
def test_a_menu_that_grows_by_half_is_held(size: int, count: int) -> None:
    before = full_menu(size)
    fresh = {f"n{n}": Item(f"n{n}", f"New {n}", 900) for n in range(count)}
    codes = found(before, replace(before, items={**before.items, **fresh}))
    assert ("added" in codes) == (count > FEW_ADDED and count * 100 > 50 * size)


def test_new_items_at_zero_are_held_unless_a_choice_has_the_price() -> None:
    before = full_menu(100)
    free = {f"n{n}": Item(f"n{n}", f"New {n}", 0) for n in range(8)}
    assert found(before, replace(before, items={**before.items, **free})).keys() == {"free"}
    chosen = {key: replace(item, addon_groups=("g1",)) for key, item in free.items()}
    assert not found(before, replace(before, items={**before.items, **chosen}))


def test_a_first_menu_is_held_for_a_person_who_wants_to_see_it() -> None:
    menu = full_menu(30)
    changes = diff(Catalogue(), menu)
    totals = totals_of(Catalogue(), changes)
    assert findings(changes, totals, RULES) == ()
    asks_first = replace(RULES, menu=MenuSettings(approve_first=True))
    (finding,) = findings(changes, totals, asks_first)
    assert finding.text == "the first menu of this storefront: 30 items to check"
    later = diff(menu, mutated(menu, LOSSES["renamed"], ["p1"]))
    assert not findings(later, totals_of(menu, later), asks_first)


def test_a_file_that_lost_its_line_end_is_held_if_anything_changes() -> None:
    before = full_menu(30)
    fewer = replace(before, items={k: v for k, v in before.items.items() if k != "p29"})
    ended, cut = Source(ends_with_newline=True), Source(ends_with_newline=False)
    finding = found(before, fewer, accepted_from=ended, read_from=cut)["cut_off"]
    assert finding.text == ("the export looks cut off: its last line does not end (Dish 29)")
    assert not found(before, before, accepted_from=ended, read_from=cut)
    assert not found(before, fewer, accepted_from=cut, read_from=cut)
    assert not found(before, fewer, accepted_from=ended, read_from=ended)
    assert not found(before, fewer, accepted_from=Source(), read_from=cut)


def test_a_file_that_is_no_utf_8_any_more_is_held() -> None:
    before = full_menu(30)
    after = mutated(before, LOSSES["renamed"], ["p1"])
    western = FileEncoding("cp1252", bad_byte=412, bad_line=17)
    utf = Source(encodings={"menu.csv": FileEncoding("utf-8")})
    latin = Source(encodings={"menu.csv": western})
    finding = found(before, after, accepted_from=utf, read_from=latin)["encoding"]
    assert finding.text == (
        "menu.csv used to be UTF-8 and is now read as cp1252: line 17, byte 412 does not fit"
    )
    named = Source(encodings={"menu.csv": replace(western, chosen=True)})
    assert not found(before, after, accepted_from=utf, read_from=named)
    twice = Source(encodings={"menu.csv": FileEncoding("utf-8", encoded_twice=True)})
    finding = found(before, after, accepted_from=utf, read_from=twice)["encoding"]
    assert finding.text == "menu.csv used to be UTF-8 and has since been encoded a second time"
    assert not found(before, after, accepted_from=twice, read_from=twice)
    assert not found(before, after, accepted_from=latin, read_from=latin)
    assert not found(before, after, accepted_from=latin, read_from=utf)
    plain = Source(encodings={"menu.csv": FileEncoding("ascii")})
    assert not found(before, after, accepted_from=utf, read_from=plain)
    assert plain.after(utf, sent=True) == utf


@pytest.mark.parametrize(
    ("was", "is_now", "held"),
    [("3", "30", True), ("8.25", "8.5", False), ("19", "16", False), ("5", "10", True)],
)
def test_a_tax_rate_moves_wildly_or_as_a_law_does(was: str, is_now: str, held: bool) -> None:
    before = full_menu(20, rate=was)
    after = mutated(before, lambda item: replace(item, tax=tax(is_now)), list(before.items))
    assert ("taxes_moved" in found(before, after)) is held


def test_a_rate_that_is_no_number_holds_and_ends_nothing() -> None:
    before = full_menu(20)
    after = mutated(before, lambda item: replace(item, tax=tax("x")), list(before.items))
    assert tax_rate(tax("x")) is None
    assert "taxes_moved" in found(before, after)


def test_the_worst_of_wild_prices_is_named_first() -> None:
    before = full_menu(20)
    prices = {f"p{n}": 2000 + n * 100 for n in range(10)}
    items = {
        key: replace(item, price=prices.get(key, item.price), variants=())
        for key, item in before.items.items()
    }
    finding = found(replace(before, items=items), replace(before, items=items))
    assert not finding
    plain_before = mutated(before, lambda item: replace(item, variants=()), list(before.items))
    finding = found(plain_before, replace(before, items=items))
    assert finding["prices_moved"].items[0] == "p9"


@given(catalogues(), catalogues())
def test_the_guard_answers_for_any_two_menus(before: Catalogue, after: Catalogue) -> None:
    changes = diff(before, after)
    totals = totals_of(before, changes)
    made = findings(changes, totals, RULES)
    assert made == findings(changes, totals, RULES)
    touched = changes.added.keys() | changes.changed.keys() | changes.removed.keys()
    assert all(set(each.items) <= touched for each in made)


def test_all_of_a_few_is_more_than_a_days_work() -> None:
    assert is_mass(ALL, ALL, 20)
    assert not is_mass(ALL - 1, ALL - 1, 20)
    assert not is_mass(FEW, FEW + 1, 20)
    assert is_mass(FEW + 1, 29, 20)
    assert not is_mass(FEW + 1, 30, 20)
