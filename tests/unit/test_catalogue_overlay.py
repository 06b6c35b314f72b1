"""Availability laid over the export: the POS's words, staff overrides, and their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogues import items
from tillbridge.menu.compare import Overlay, apply_overlay, next_change
from tillbridge.model.catalogue import Availability, Item, Variant

NOW = 1000
OFF = Availability(available=False)
ON = Availability(available=True)


def soup(**fields: object) -> Item:
    return Item("soup", "Soup", 450, **fields)  # type: ignore[arg-type] # fields of Item


def test_without_words_the_export_counts() -> None:
    assert apply_overlay(soup(), Overlay(NOW)) == soup()
    assert apply_overlay(soup(available=False), Overlay(NOW)) == soup(available=False)


def test_a_word_counts_over_the_export_either_way() -> None:
    assert not apply_overlay(soup(), Overlay(NOW, {"soup": OFF})).available
    assert apply_overlay(soup(available=False), Overlay(NOW, {"soup": ON})).available


@pytest.mark.parametrize("word", [OFF, ON])
def test_an_override_lies_over_what_the_pos_says(word: Availability) -> None:
    overlay = Overlay(NOW, {"soup": word}, {"soup": None})
    assert not apply_overlay(soup(), overlay).available


def test_a_snooze_ends_by_itself() -> None:
    word = Availability(available=False, until=2000)
    assert apply_overlay(soup(), Overlay(NOW, {"soup": word})) == soup(
        available=False, snooze_until=2000
    )
    assert apply_overlay(soup(), Overlay(2000, {"soup": word})) == soup()
    assert apply_overlay(soup(available=False, snooze_until=NOW), Overlay(NOW)) == soup()


def test_of_two_ends_the_later_one_counts() -> None:
    overlay = Overlay(NOW, {"soup": Availability(available=False, until=2000)}, {"soup": 3000})
    assert apply_overlay(soup(), overlay).snooze_until == 3000
    assert (
        apply_overlay(soup(available=False), Overlay(NOW, {}, {"soup": 3000})).snooze_until is None
    )


def test_a_word_may_name_a_variant() -> None:
    sized = soup(variants=(Variant("soup-s", "small", 1), Variant("soup-l", "large", 2)))
    laid = apply_overlay(sized, Overlay(NOW, {"soup-l": OFF}))
    assert [each.available for each in laid.variants] == [True, False]
    assert laid.available


def test_nothing_comes_back_while_the_words_are_not_known() -> None:
    told = soup(available=False, snooze_until=5000)
    assert apply_overlay(soup(), Overlay(NOW, None), at_service=told) == told
    assert apply_overlay(soup(), Overlay(6000, None), at_service=told) == soup()
    assert apply_overlay(soup(), Overlay(NOW, {}), at_service=told) == soup()


def test_the_next_change_is_the_next_end() -> None:
    overlay = Overlay(NOW, {"a": Availability(available=False, until=900)}, {"b": 4000, "c": None})
    assert next_change(overlay, [3000]) == 3000
    assert next_change(overlay, []) == 4000
    assert next_change(Overlay(NOW), [None]) is None


@given(items("soup"), st.sampled_from([None, 500, 1500]))
def test_an_override_in_force_always_takes_off(item: Item, until: int | None) -> None:
    laid = apply_overlay(item, Overlay(NOW, {"soup": ON}, {"soup": until}))
    assert laid.available == (until == 500)
