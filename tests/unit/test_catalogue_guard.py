"""When a plan waits for a person."""

from hypothesis import given

from tests.support.catalogues import catalogues, dishes, without
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import FEW, SLIP_FACTOR, Rules, Totals, findings
from tillbridge.model.catalogue import Catalogue

RULES = Rules(MenuSettings(), AssumptionSettings(), "USD")


def reasons(before: Catalogue, after: Catalogue) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for item in before.items.values():
        for category in item.categories:
            counts[category] = counts.get(category, 0) + 1
    names = {key: each.name for key, each in before.categories.items()}
    found = findings(diff(before, after), Totals(len(before.items), counts, names), RULES)
    return tuple(each.text for each in found)


def test_a_days_work_passes() -> None:
    before = dishes(80)
    after = without(dishes(80, p1={"price": 120}, p3={"name": "New"}), "p70", "p71")
    assert reasons(before, after) == ()


def test_too_many_removals_wait() -> None:
    before = dishes(80)
    gone = [f"p{number}" for number in range(1, 41)]
    (reason,) = reasons(before, without(before, *gone))
    assert reason == "40 of 80 items removed, including all of Mains"


def test_a_few_removals_pass_whatever_the_percentage() -> None:
    before = dishes(12)
    assert reasons(before, without(before, "p1", "p2", "p7", "p8", "p9")) == ()
    assert reasons(before, without(before, "p1", "p2", "p7", "p8", "p9", "p10")) != ()


def test_a_category_that_vanishes_waits() -> None:
    before = dishes(8)
    assert reasons(before, without(before, "p1", "p2", "p3", "p4")) == (
        "every item of Mains removed",
    )


def test_a_category_whose_items_are_replaced_does_not_vanish() -> None:
    before = dishes(8)
    after = Catalogue.of(
        [
            *without(before, "p1", "p2", "p3", "p4").items.values(),
            *dishes(1, p1={"external_id": "q1", "categories": ("Mains",)}).items.values(),
        ],
        categories=before.categories.values(),
        menus=before.menus.values(),
    )
    assert reasons(before, after) == ()


def test_an_empty_export_waits() -> None:
    assert reasons(dishes(2), Catalogue()) == ("the export has no items; the storefront has 2",)
    assert reasons(Catalogue(), Catalogue()) == ()


def test_a_price_that_becomes_zero_waits() -> None:
    assert reasons(dishes(9), dishes(9, p2={"price": 0})) == ("now free: Dish 2",)


def test_a_first_push_with_many_free_items_waits() -> None:
    assert reasons(Catalogue(), dishes(9, p1={"price": 0})) == ()
    free = {f"p{number}": {"price": 0} for number in range(1, 4)}
    assert reasons(Catalogue(), dishes(9, **free)) != ()
    assert reasons(Catalogue(), dishes(1, p1={"price": 0})) != ()


def test_prices_that_move_wildly_wait() -> None:
    moved = {f"p{number}": {"price": 200 * number} for number in range(1, 4)}
    assert reasons(dishes(15), dishes(15, **moved)) == ()
    moved["p4"] = {"price": 1000}
    (reason,) = reasons(dishes(15), dishes(15, **moved))
    assert reason.startswith("4 of 15 prices changed by more than 50 %")


def test_a_decimal_point_that_slipped_waits() -> None:
    (reason,) = reasons(dishes(40), dishes(40, p5={"price": 50_000}))
    assert reason == "prices that look wrong: Dish 5 from 5.00 to 500.00"


@given(catalogues(), catalogues())
def test_a_plan_that_passes_is_within_the_limits(before: Catalogue, after: Catalogue) -> None:
    if reasons(before, after):
        return
    known = before.items.keys() & after.items.keys()
    removed = len(before.items) - len(known)
    assert removed <= max(FEW, RULES.menu.max_removed_percent * len(before.items) / 100)
    assert after.items or not before.items
    wild = 0
    for external_id in known:
        old, new = before.items[external_id].price, after.items[external_id].price
        assert new > 0 or old == 0
        assert not old or max(old, new) < SLIP_FACTOR * min(old, new)
        wild += abs(new - old) * 100 > RULES.menu.max_price_change_percent * old > 0
    assert wild * 5 <= len(known)
