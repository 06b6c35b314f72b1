"""The difference of two catalogues, and what applying it gives."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogues import IDS, catalogues, content, dishes, without
from tillbridge.menu.diff import ContentDigest, apply, diff
from tillbridge.model.catalogue import AddOn, AddOnGroup, BadRow, Catalogue


@given(catalogues(), catalogues())
def test_applying_the_difference_gives_the_new_catalogue(
    before: Catalogue, after: Catalogue
) -> None:
    assert content(apply(diff(before, after), before)) == content(after)


@given(catalogues())
def test_a_catalogue_does_not_differ_from_itself(catalogue: Catalogue) -> None:
    assert not diff(catalogue, catalogue)


@given(catalogues(), catalogues(), st.sets(st.sampled_from(IDS)))
def test_what_a_bad_row_stands_for_is_neither_changed_nor_removed(
    before: Catalogue, after: Catalogue, bad: set[str]
) -> None:
    rows = tuple(BadRow("menu.csv, row 2", "no price", "give one", each) for each in bad)
    applied = apply(diff(before, replace(after, bad_rows=rows)), before)
    for external_id in IDS:
        expected = (before if external_id in bad else after).items.get(external_id)
        assert applied.items.get(external_id) == expected


@given(catalogues(), catalogues())
def test_a_bad_row_without_an_id_lets_nothing_be_removed(
    before: Catalogue, after: Catalogue
) -> None:
    changes = diff(before, replace(after, bad_rows=(BadRow("row 2", "broken", "mend it"),)))
    assert not changes.removed
    assert before.items.keys() <= apply(changes, before).items.keys()


def test_availability_is_told_apart() -> None:
    before = dishes(4)
    changes = diff(before, dishes(4, p1={"available": False}, p2={"price": 1}))
    assert changes.changed.keys() - changes.content.keys() == {"p1"}
    assert changes.content.keys() == {"p2"}
    assert changes.content["p2"].fields == {"price"}


def test_a_doubtful_item_is_told_again_in_full() -> None:
    changes = diff(dishes(3), dishes(3), doubtful={"p2"})
    assert changes.changed.keys() == {"p2"}
    assert "name" in changes.changed["p2"].fields


@given(catalogues(), catalogues())
def test_the_digest_of_what_is_left_is_that_of_the_difference_that_is_left(
    before: Catalogue, after: Catalogue
) -> None:
    changes = diff(before, after)
    left = ContentDigest(changes)
    taken = {each for each in IDS[:3] if each in changes.added or each in changes.changed}
    if not taken:
        return
    left.accepted(taken)
    told = apply(
        replace(
            diff(before, after),
            added={key: each for key, each in changes.added.items() if key in taken},
            changed={key: each for key, each in changes.changed.items() if key in taken},
            removed={},
        ),
        before,
    )
    assert left.text == ContentDigest(diff(told, after)).text


def test_the_digest_does_not_see_availability() -> None:
    before, after = dishes(4), dishes(4, p1={"price": 5})
    off = dishes(4, p1={"price": 5, "available": False}, p2={"available": False})
    assert ContentDigest(diff(before, after)).text == ContentDigest(diff(before, off)).text
    other = without(after, "p4")
    assert ContentDigest(diff(before, other)).text != ContentDigest(diff(before, after)).text


def test_an_add_on_group_that_a_bad_row_stands_for_stays_with_its_add_ons() -> None:
    before = Catalogue.of(
        add_ons=[AddOn("Milk/Oat", "Oat", 60), AddOn("Tea/Mint", "Mint", 10)],
        addon_groups=[
            AddOnGroup("Milk", "Milk", 1, 1, required=True, add_ons=("Milk/Oat",)),
            AddOnGroup("Tea", "Tea", add_ons=("Tea/Mint",)),
        ],
    )
    bad = BadRow("modifiers.csv, row 2", "no price", "give one", "Milk")
    changes = diff(before, Catalogue.of(bad_rows=[bad]))
    assert changes.add_ons.gone == {"Tea/Mint"}
    assert changes.addon_groups.gone == {"Tea"}
    assert list(apply(changes, before).addon_groups) == ["Milk"]
