"""A reading told as changes leads to the same difference as the whole export."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from tests.support.catalogues import IDS, catalogues, content, dishes, without
from tillbridge.ledger import menu
from tillbridge.ledger.menu import Refusal, refuse_items
from tillbridge.ledger.menu_codec import AcceptedItem, Parts, PushContent
from tillbridge.ledger.models import metadata
from tillbridge.menu.compare import (
    Overlay,
    changes_from,
    compare,
    compare_availability,
    fingerprint,
)
from tillbridge.model.catalogue import (
    Availability,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Item,
    Source,
)

NOW = 5000
words = st.dictionaries(
    st.sampled_from([*IDS, "i1-S", "i2-M"]),
    st.builds(Availability, st.booleans(), st.none() | st.integers(1, 10_000)),
    max_size=3,
)
overrides = st.dictionaries(st.sampled_from(IDS), st.none() | st.integers(1, 10_000), max_size=2)


@contextmanager
def ledger_with(accepted: Catalogue, refused: Mapping[str, int]) -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        items = (AcceptedItem.of(each, each, fingerprint(each)) for each in accepted.items.values())
        parts = Parts(accepted.categories, accepted.add_ons, accepted.addon_groups, accepted.menus)
        content = PushContent(items=tuple(items), parts=parts)
        menu.acknowledge(connection, "main", content, at=1)
        refusals = {key: Refusal(each, "no") for key, each in refused.items()}
        refuse_items(connection, "main", refusals, at=1)
        yield connection
    engine.dispose()


def read(connection: Connection, export: Catalogue) -> CatalogueChanges:
    return changes_from(export, menu.known_fingerprints(connection, "main"))


@given(
    before=catalogues(),
    after=catalogues(),
    laid=st.tuples(words, overrides),
    refused=st.sets(st.sampled_from(IDS), max_size=2),
    data=st.data(),
)
def test_the_changes_lead_to_what_the_whole_leads_to(
    before: Catalogue,
    after: Catalogue,
    laid: tuple[dict[str, Availability], dict[str, int | None]],
    refused: set[str],
    data: st.DataObject,
) -> None:
    kept = data.draw(st.sets(st.sampled_from(IDS)))
    items = {
        key: before.items[key] if key in kept and key in before.items else item
        for key, item in after.items.items()
    }
    export = Catalogue(items, after.categories, after.add_ons, after.addon_groups, after.menus)
    overlay = Overlay(NOW, *laid)
    prints = {key: fingerprint(items[key]) for key in refused & items.keys()}
    # What was refused was never accepted as it is.
    refusals = {
        key: each
        for key, each in prints.items()
        if key not in before.items or fingerprint(before.items[key]) != each
    }
    with ledger_with(before, refusals) as connection:
        whole = compare(connection, "main", export, overlay)
        part = compare(connection, "main", read(connection, export), overlay)
    assert dict(part.changes.added) == dict(whole.changes.added)
    assert dict(part.changes.changed) == dict(whole.changes.changed)
    assert dict(part.changes.removed) == dict(whole.changes.removed)
    for kind in ("categories", "add_ons", "addon_groups", "menus"):
        assert getattr(part.changes, kind).put == getattr(whole.changes, kind).put
    for key in whole.changes.changed:
        assert part.targets[key] == whole.targets[key]


def test_a_second_record_of_an_item_is_a_bad_row_and_changes_nothing() -> None:
    before = dishes(3)
    twin = Item("p1", "Another", 5)
    with ledger_with(before, {}) as connection:
        reading = CatalogueChanges(
            Catalogue(items={"p1": twin}, fingerprints={"p1": 77}), frozenset(), 4
        )
        found = compare(connection, "main", reading, Overlay(NOW))
    assert not found.changes
    assert [row.external_id for row in found.current.bad_rows] == ["p1"]


def test_a_second_record_is_told_where_it_stands_and_by_the_files_own_column() -> None:
    source = Source({"p1": "menu.csv, row 17"}, {"external_id": "Artikel-Nr"})
    fresh = Catalogue({"p1": Item("p1", "Another", 5)}, fingerprints={"p1": 77}, source=source)
    with ledger_with(dishes(3), {}) as connection:
        reading = CatalogueChanges(fresh, frozenset(), 4)
        (only,) = compare(connection, "main", reading, Overlay(NOW)).current.bad_rows
    assert (only.place, only.field) == ("menu.csv, row 17", "Artikel-Nr")
    assert "Artikel-Nr p1" in only.text


def test_a_known_record_that_stands_there_once_more_is_no_alarm() -> None:
    before = dishes(3)
    fresh = Catalogue(items={"p1": before.items["p1"]})
    with ledger_with(before, {}) as connection:
        reading = CatalogueChanges(fresh, frozenset(), 4)
        found = compare(connection, "main", reading, Overlay(NOW))
    assert not found.changes
    assert found.current.bad_rows == ()


def test_a_removed_item_with_a_bad_row_elsewhere_stays() -> None:
    before = dishes(4)
    export = without(before, "p2")
    with ledger_with(before, {}) as connection:
        reading = read(connection, export)
        bad = BadRow("row 9", "broken", "mend it")
        fresh = Catalogue(bad_rows=(bad,))
        reading = CatalogueChanges(fresh, reading.unseen, 3)
        found = compare(connection, "main", reading, Overlay(NOW))
    assert not found.changes


def test_a_refused_item_keeps_its_last_good_state() -> None:
    before = dishes(3)
    worse = dishes(3, p2={"price": 1})
    with ledger_with(before, {"p2": fingerprint(worse.items["p2"])}) as connection:
        found = compare(connection, "main", read(connection, worse), Overlay(NOW))
        assert not found.changes
        gone = without(worse, "p2")
        found = compare(connection, "main", read(connection, gone), Overlay(NOW))
        assert found.changes.removed.keys() == {"p2"}
        assert found.no_longer_refused == ("p2",)


def test_an_unsure_item_is_told_again() -> None:
    with ledger_with(dishes(3), {}) as connection:
        assert not compare_availability(connection, "main", Overlay(NOW)).changes
        found = compare_availability(connection, "main", Overlay(NOW), unconfirmed={"p1"})
    assert found.changes.changed.keys() == {"p1"}


@given(catalogues())
def test_the_ledger_gives_back_what_it_was_given(catalogue: Catalogue) -> None:
    with ledger_with(catalogue, {}) as connection:
        items = menu.all_items(connection, "main")
        parts = menu.parts(connection, "main")
        assert menu.item_count(connection, "main") == len(catalogue.items)
    back = Catalogue(
        {key: each.item for key, each in items.items()},
        parts.categories,
        parts.add_ons,
        parts.addon_groups,
        parts.menus,
    )
    assert content(back) == content(catalogue)
    assert all(each.pos_item == each.item for each in items.values())


def test_items_are_counted_by_category_and_variants_find_their_item() -> None:
    with ledger_with(dishes(9), {}) as connection:
        assert menu.count_in_category(connection, "main", "Mains", at_most=99) == 4
        assert menu.count_in_category(connection, "main", "Mains", at_most=2) == 2
        assert menu.count_in_category(connection, "main", "Nothing", at_most=9) == 0
