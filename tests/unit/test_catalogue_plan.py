"""From a difference to calls: the cheapest that are right, and what they bring about."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogues import catalogues, dishes, without
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.diff import apply, diff
from tillbridge.menu.guard import Rules
from tillbridge.menu.plan import Kind, Plan, choose, menus_of, plan
from tillbridge.model.catalogue import Catalogue, Category, ItemTax, Menu, TaxComponent

LIMITS = Rules(MenuSettings(), AssumptionSettings(), "USD")


def in_batches_of(count: int) -> Rules:
    return replace(LIMITS, assumptions=AssumptionSettings(batch_max_items=count))


def planned(before: Catalogue, after: Catalogue, rules: Rules = LIMITS) -> Plan:
    changes = diff(before, after)
    kind = choose(changes, acknowledged=len(before.items), menus=len(after.menus), rules=rules)
    return plan(kind, changes, apply(changes, before), rules)


def played(plan: Plan, before: Catalogue) -> Catalogue:
    """Return what a service that has `before` has after the plan."""
    items = dict(before.items)
    parts = [Parts(before.categories, before.add_ons, before.addon_groups)]
    for step in plan.steps:
        match step.kind:
            case "full":
                items.update((each.external_id, each) for each in step.items)
            case "batch":
                items.update((each.external_id, each) for each in (*step.add, *step.update))
                for external_id in step.delete:
                    del items[external_id]
            case "patch":
                (item,) = step.items
                fields: Any = {name: getattr(item, name) for name in step.fields}
                items[item.external_id] = replace(items[item.external_id], **fields)
            case "availability":
                for each in step.items:
                    items[each.external_id] = replace(
                        items[each.external_id],
                        available=each.available,
                        snooze_until=each.snooze_until,
                    )
        if step.kind in {"full", "batch"}:
            parts.append(step.parts)
    return Catalogue(
        items,
        {key: part for each in parts for key, part in each.categories.items()},
        {key: part for each in parts for key, part in each.add_ons.items()},
        {key: part for each in parts for key, part in each.addon_groups.items()},
    )


def test_an_unchanged_export_costs_nothing() -> None:
    assert planned(dishes(5), dishes(5)) == Plan("nothing")


def test_availability_alone_is_one_call() -> None:
    after = dishes(5, p1={"available": False}, p2={"available": False, "snooze_until": 7})
    (step,) = planned(dishes(5), after).steps
    assert step.kind == "availability"
    assert [each.external_id for each in step.items] == ["p1", "p2"]


def test_one_items_fields_are_one_patch() -> None:
    (step,) = planned(dishes(5), dishes(5, p3={"price": 1, "available": False})).steps
    assert step.kind == "patch"
    assert step.fields == {"price", "available"}


def test_a_lost_tax_is_not_patched() -> None:
    tax = ItemTax("VAT", (TaxComponent("State", "8.25"),))
    with_tax = dishes(5, p3={"tax": tax})
    (step,) = planned(with_tax, dishes(5)).steps
    assert step.kind == "batch"
    (step,) = planned(dishes(5), with_tax).steps
    assert step.kind == "patch"


def test_a_patch_of_a_snoozed_item_is_followed_by_its_end() -> None:
    after = dishes(5, p3={"price": 1, "available": False, "snooze_until": 99})
    patch, snooze = planned(dishes(5), after).steps
    assert patch.kind == "patch"
    assert snooze.kind == "availability"
    assert snooze.items[0].snooze_until == 99


def test_several_changes_are_one_batch() -> None:
    before = dishes(6)
    after = without(dishes(7, p1={"price": 1}), "p2")
    (step,) = planned(before, after).steps
    assert step.kind == "batch"
    assert [each.external_id for each in step.add] == ["p7"]
    assert "p1" in {each.external_id for each in step.update}
    assert step.delete == ("p2",)


def test_a_batch_brings_the_new_category_along() -> None:
    after = dishes(5, p3={"categories": ("New",)})
    after = replace(after, categories={**after.categories, "New": Category("New", "New")})
    (step,) = planned(dishes(5), after).steps
    assert step.kind == "batch"
    assert step.parts.categories.keys() == {"New"}


def test_the_first_push_is_whole() -> None:
    assert planned(Catalogue(), dishes(1)).kind == "full"


def test_most_of_a_large_menu_is_pushed_whole_and_most_of_a_small_one_is_not() -> None:
    assert planned(*_with_other_names(300)).kind == "full"
    assert planned(*_with_other_names(90)).kind == "batch"


def _with_other_names(count: int) -> tuple[Catalogue, Catalogue]:
    names = {f"p{number}": {"name": "new"} for number in range(1, count + 1)}
    return dishes(count), dishes(count, **names)


def test_who_is_on_which_menu_takes_a_full_push() -> None:
    two = replace(dishes(4), menus={key: Menu(key, key) for key in ("menu", "late")})
    moved = replace(two, items={**two.items, "p1": replace(two.items["p1"], menus=("late",))})
    (step,) = planned(two, moved).steps
    assert step.kind == "full"
    on = {
        menu.external_id: [each.external_id for each in items] for menu, items, _ in menus_of(step)
    }
    assert on == {"menu": ["p2", "p3", "p4"], "late": ["p1"]}


def test_a_full_push_is_followed_by_deletes() -> None:
    before = dishes(3)
    changes = diff(before, without(before, "p3"))
    full, rest = plan("full", changes, apply(changes, before), LIMITS).steps
    assert full.kind == "full"
    assert rest.kind == "batch"
    assert rest.delete == ("p3",)


def test_long_lists_are_split() -> None:
    steps = planned(dishes(60), dishes(85, p1={"price": 1}), in_batches_of(10)).steps
    assert all(each.kind == "batch" for each in steps)
    sizes = [len(each.add) + len(each.update) for each in steps]
    assert max(sizes) <= 10
    assert sum(sizes) >= 26


@pytest.mark.parametrize("kind", ["batch", "full"])
@given(before=catalogues(min_size=1), after=catalogues())
def test_a_plan_brings_about_the_new_catalogue(
    kind: Kind, before: Catalogue, after: Catalogue
) -> None:
    changes = diff(before, after)
    made = plan(kind, changes, apply(changes, before), LIMITS)
    assert dict(played(made, before).items) == dict(after.items)


@given(before=catalogues(), after=catalogues(), batch=st.integers(1, 4))
def test_the_chosen_plan_brings_about_the_new_catalogue(
    before: Catalogue, after: Catalogue, batch: int
) -> None:
    made = planned(before, after, in_batches_of(batch))
    service = played(made, before)
    assert dict(service.items) == dict(after.items)
    for kind in ("categories", "add_ons", "addon_groups"):
        assert getattr(after, kind).items() <= getattr(service, kind).items()
