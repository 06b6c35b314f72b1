"""What was told since a plan was made is what its calls say."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogues import IDS, catalogues
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import Rules
from tillbridge.menu.plan import Kind, plan
from tillbridge.model.catalogue import Availability, Catalogue

LIMITS = Rules(
    MenuSettings(full_push_percent=60),
    AssumptionSettings(background_threshold=3, batch_max_items=2),
    "USD",
)
words = st.just(Availability(available=True)) | st.builds(
    Availability, st.just(value=False), st.none() | st.integers(1, 10_000)
)


@given(
    catalogues(),
    catalogues(),
    st.dictionaries(st.sampled_from(IDS), words),
    st.sampled_from(["availability", "batch", "full"]),
)
def test_each_call_says_what_was_told_and_is_about_the_same_items(
    before: Catalogue, after: Catalogue, told: dict[str, Availability], kind: Kind
) -> None:
    for step in plan(kind, diff(before, after), after, LIMITS).steps:
        now = step.with_availability(told)
        assert now.ids == step.ids
        assert now.kind == step.kind
        was = step.availability
        for external_id, word in now.availability.items():
            if external_id not in told or was[external_id] is None:
                assert word == was[external_id]
            elif step.kind == "availability":
                assert word == told[external_id]
            else:  # an item object cannot carry the end of a snooze
                assert word == Availability(told[external_id].available)


@given(catalogues(min_size=1))
def test_a_price_alone_says_nothing_of_availability(menu: Catalogue) -> None:
    dearer = Catalogue.of([replace(item, price=6000) for item in list(menu.items.values())[:1]])
    changes = diff(Catalogue.of(list(menu.items.values())[:1]), dearer)
    (step,) = plan("patch", changes, Catalogue(), LIMITS).steps[:1]
    assert step.availability == {}
