"""The calls of a plan, to the letter: which is chosen, what it carries, and who has to look."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.catalogues import dishes, without
from tests.support.full_menus import totals_of
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.ledger.menu_codec import Parts
from tillbridge.ledger.models import Hold
from tillbridge.menu.compare import Comparison
from tillbridge.menu.diff import ContentDigest, ItemChange, diff
from tillbridge.menu.guard import Rules
from tillbridge.menu.plan import (
    DEFAULT_MENU,
    Plan,
    Step,
    availability_alone,
    availability_bodies,
    batch_body,
    choose,
    guard_and_plan,
    item_body,
    json_number,
    menus_of,
    needed,
    plan,
    portions,
    snooze_ended,
    without_snooze,
)
from tillbridge.model.catalogue import (
    AddOn,
    AddOnGroup,
    Availability,
    Catalogue,
    Category,
    Item,
    ItemTax,
    Menu,
    MenuSummary,
    TaxComponent,
    Variant,
)

RULES = Rules(MenuSettings(), AssumptionSettings(), "USD")
NOW = 1_000
PIZZA = Item(
    "p1",
    "Pizza",
    900,
    description="Hot",
    image_url="https://example.net/p.png",
    categories=("mains",),
    addon_groups=("extras",),
    variants=(Variant("p1-s", "Small", 900), Variant("p1-l", "Large", 1200, available=False)),
    variant_type="size",
    tax=ItemTax("VAT", (TaxComponent("State", "8.25"), TaxComponent("City", "1.0"))),
    product_type="food",
)
PIZZA_BODY = {
    "external_id": "p1",
    "name": "Pizza",
    "price": 900,
    "available": True,
    "description": "Hot",
    "image_url": "https://example.net/p.png",
    "categories": ["mains"],
    "addon_groups": ["extras"],
    "variant_type": "size",
    "variants": [
        {"external_id": "p1-s", "variant_name": "Small", "price": 900, "available": True},
        {"external_id": "p1-l", "variant_name": "Large", "price": 1200, "available": False},
    ],
    "tax": {
        "name": "VAT",
        "components": [{"agency": "State", "rate": 8.25}, {"agency": "City", "rate": 1}],
    },
    "product_type": "food",
}
SOUP = Item("p2", "Soup", 500, available=False)
SOUP_BODY = {"external_id": "p2", "name": "Soup", "price": 500, "available": False}
PARTS = Parts(
    {"mains": Category("mains", "Mains"), "rest": Category("rest", "Rest")},
    {"ham": AddOn("ham", "Ham", 100), "egg": AddOn("egg", "Egg", 50)},
    {
        "extras": AddOnGroup("extras", "Extras", 1, 0, True, ("ham",)),
        "other": AddOnGroup("other", "Other", 2, 3, False, ("egg",)),
    },
)
PART_BODIES = {
    "categories": [
        {"external_id": "mains", "name": "Mains"},
        {"external_id": "rest", "name": "Rest"},
    ],
    "add_ons": [
        {"external_id": "ham", "name": "Ham", "price": 100},
        {"external_id": "egg", "name": "Egg", "price": 50},
    ],
    "addon_groups": [
        {
            "external_id": "extras",
            "name": "Extras",
            "min_select": 1,
            "max_select": 1,
            "required": True,
            "add_ons": ["ham"],
        },
        {
            "external_id": "other",
            "name": "Other",
            "min_select": 2,
            "max_select": 3,
            "required": False,
            "add_ons": ["egg"],
        },
    ],
}


# -- bodies


def test_an_item_says_all_it_has_and_nothing_else() -> None:
    assert item_body(PIZZA) == PIZZA_BODY
    assert item_body(SOUP) == SOUP_BODY


def test_what_an_item_has_lost_is_cleared_where_a_way_to_do_so_is_shown() -> None:
    lost = Item("p1", "Pizza", 900)
    bare = {"external_id": "p1", "name": "Pizza", "price": 900, "available": True}
    assert item_body(lost, PIZZA) == bare | {
        "description": "",
        "image_url": "",
        "categories": [],
        "addon_groups": [],
        "variants": [],
        "variant_type": "stand_alone",
    }
    assert item_body(lost, lost) == bare
    assert item_body(PIZZA, lost) == PIZZA_BODY


def test_an_availability_call_says_when_it_ends() -> None:
    until = replace(SOUP, snooze_until=1_750_000_000_000)
    assert availability_bodies([PIZZA, SOUP, until, replace(until, available=True)]) == [
        {"external_id": "p1", "available": True},
        {"external_id": "p2", "available": False},
        {"external_id": "p2", "available": False, "snooze_until": "2025-06-15T15:06:40.000Z"},
        {"external_id": "p2", "available": True},
    ]


def test_a_batch_adds_updates_and_deletes() -> None:
    assert batch_body([PIZZA, SOUP], {"p2": SOUP}, ["p3"], PARTS) == {
        "add": [PIZZA_BODY],
        "update": [SOUP_BODY],
        "delete": ["p3"],
        **PART_BODIES,
    }
    assert batch_body([], {}, [], Parts()) == {"add": [], "update": [], "delete": []}


def test_a_full_push_is_a_list_of_menus() -> None:
    lunch = Menu("lunch", "Lunch", "At noon")
    step = Step("full", (SOUP,), parts=PARTS, menus=(lunch,))
    head = {"external_id": "lunch", "name": "Lunch", "description": "At noon"}
    assert step.body() == {"menus": [head | {"items": [SOUP_BODY]} | PART_BODIES]}
    plain = Step("full", (), menus=(DEFAULT_MENU,)).body()
    none: dict[str, Any] = {"categories": [], "items": [], "add_ons": [], "addon_groups": []}
    assert plain == {"menus": [{"external_id": "menu", "name": "Menu"} | none]}


def test_the_other_calls_carry_their_own() -> None:
    batch = Step("batch", (PIZZA,), ("p3",), before={"p1": PIZZA})
    assert batch.body() == {"add": [], "update": [PIZZA_BODY], "delete": ["p3"]}
    patch = Step("patch", (PIZZA,), before={"p1": PIZZA}, fields=frozenset({"price", "menus"}))
    assert patch.body() == {"external_id": "p1", "price": 900}
    assert Step("availability", (SOUP,)).body() == {
        "items": [{"external_id": "p2", "available": False}]
    }


@pytest.mark.parametrize(
    ("text", "number"), [("8.25", 8.25), ("20", 20), ("20.0", 20), ("0", 0), ("0.5", 0.5)]
)
def test_a_rate_is_a_number_of_the_same_digits(text: str, number: float) -> None:
    assert json_number(text) == number
    assert type(json_number(text)) is type(number)


# -- steps


def test_what_a_step_carries_in_short() -> None:
    batch = Step("batch", (PIZZA, SOUP), ("p3",), before={"p1": PIZZA})
    assert batch.ids == ("p1", "p2", "p3")
    assert (batch.add, batch.update) == ((SOUP,), (PIZZA,))
    assert batch.summary == {"add": 1, "update": 1, "delete": 1}
    full = Step("full", (PIZZA, SOUP), menus=(DEFAULT_MENU,))
    assert full.summary == {"items": 2, "menus": 1}
    patch = Step("patch", (PIZZA,), before={"p1": PIZZA}, fields=frozenset({"price", "name"}))
    assert patch.summary == {"external_id": "p1", "fields": ["name", "price"]}
    assert Step("availability", (PIZZA,)).summary == {"items": 1}


def test_the_availability_that_a_step_carries() -> None:
    on, off = Availability(available=True), Availability(available=False)
    batch = Step("batch", (PIZZA, SOUP), ("p3",))
    assert batch.availability == {"p1": on, "p2": off, "p3": None}
    patch = Step("patch", (SOUP,), before={"p2": SOUP}, fields=frozenset({"price"}))
    assert patch.availability == {}
    assert replace(patch, fields=frozenset({"available"})).availability == {"p2": off}


def test_what_one_call_says_otherwise_than_another() -> None:
    dear = replace(PIZZA, price=PIZZA.price + 1)
    whole = Step("full", (PIZZA, SOUP))
    assert whole.contradicted_by(whole) == set()
    assert whole.contradicted_by(Step("patch", (dear,), fields=frozenset({"price"}))) == {"p1"}
    assert whole.contradicted_by(Step("batch", (dear, SOUP), ("p3",))) == {"p1"}, "p3 is not in it"
    assert Step("batch", delete=("p2", "p3")).contradicted_by(whole) == {"p2"}
    sold = Step("availability", (dear, replace(SOUP, available=True)))
    assert whole.contradicted_by(sold) == {"p2"}, "it says nothing of prices"
    assert sold.contradicted_by(whole) == {"p2"}
    patch = Step("patch", (SOUP,), before={"p2": SOUP}, fields=frozenset({"price"}))
    assert sold.contradicted_by(patch) == set(), "nothing of availability"


def test_what_was_sent_since_is_in_the_step() -> None:
    off = Availability(available=False, until=9)
    batch = Step("batch", (PIZZA, SOUP), ("p3",))
    assert batch.with_availability({"x": off}) is batch
    pizza, soup = batch.with_availability({"p1": off}).items
    assert (pizza.available, pizza.snooze_until, soup) == (False, None, SOUP)
    (alone,) = Step("availability", (PIZZA,)).with_availability({"p1": off}).items
    assert (alone.available, alone.snooze_until) == (False, 9)


def test_a_part_of_a_step_has_the_parts_that_it_needs() -> None:
    step = Step("batch", (PIZZA, SOUP), ("p3", "p4"), PARTS)
    assert step.only({"p1", "p4"}) == Step(
        "batch",
        (PIZZA,),
        ("p4",),
        Parts(
            {"mains": PARTS.categories["mains"]},
            {"ham": PARTS.add_ons["ham"]},
            {"extras": PARTS.addon_groups["extras"]},
        ),
    )
    assert needed([SOUP], PARTS) == Parts()


def test_values_come_in_portions_of_at_most_so_many() -> None:
    assert portions([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert portions([], 2) == []


def test_what_no_item_needs_is_on_the_first_menu() -> None:
    first, late = Menu("m1", "First"), Menu("m2", "Late")
    step = Step(
        "full",
        (replace(PIZZA, menus=("m2", "m3")), replace(SOUP, menus=("m3",))),
        parts=PARTS,
        menus=(first, late),
    )
    (one, ones, its), (two, twos, theirs) = menus_of(step)
    assert (one, two) == (first, late)
    assert [[each.external_id for each in items] for items in (ones, twos)] == [["p2"], ["p1"]]
    assert (set(its.categories), set(theirs.categories)) == ({"rest"}, {"mains"})
    assert (set(its.add_ons), set(theirs.add_ons)) == ({"egg"}, {"ham"})
    assert (set(its.addon_groups), set(theirs.addon_groups)) == ({"other"}, {"extras"})


# -- which kind of plan


def kind_of(before: Catalogue, after: Catalogue, *, known: int = 10, menus: int = 1) -> str:
    rules = Rules(
        MenuSettings(full_push_percent=60), AssumptionSettings(background_threshold=3), "USD"
    )
    return choose(diff(before, after), acknowledged=known, menus=menus, rules=rules)


def renamed(count: int) -> Catalogue:
    return dishes(10, **{f"p{n}": {"name": "X"} for n in range(1, count + 1)})


@pytest.mark.parametrize(
    ("count", "known", "kind"),
    [
        (0, 10, "nothing"),
        (1, 10, "patch"),
        (2, 10, "batch"),
        (6, 10, "batch"),  # sixty percent are not more
        (7, 10, "full"),
        (3, 3, "batch"),  # all, but few
        (4, 3, "full"),
        (1, 0, "full"),  # the service has nothing
    ],
)
def test_most_of_a_large_menu_goes_whole(count: int, known: int, kind: str) -> None:
    assert kind_of(dishes(10), renamed(count), known=known) == kind


def test_what_only_a_full_push_can_say() -> None:
    menu = dishes(4)
    more = replace(menu, menus={**menu.menus, "late": Menu("late", "Late")})
    assert kind_of(menu, more) == "full"
    added = {**dishes(10).items, "n": Item("n", "New", 5, categories=("Mains",))}
    assert kind_of(dishes(10), replace(dishes(10), items=added)) == "batch"
    assert kind_of(dishes(10), replace(dishes(10), items=added), menus=2) == "full"
    assert kind_of(menu, dishes(4, p1={"menus": ("late",)})) == "full"


def test_one_item_alone_is_patched_if_nothing_else_differs() -> None:
    before = dishes(10, p1={"product_type": "food"})
    assert kind_of(before, dishes(10, p1={"product_type": "drink"})) == "patch"
    assert kind_of(before, dishes(10)) == "batch"
    assert kind_of(dishes(10), without(dishes(10), "p10")) == "batch"
    part = {**dishes(10).categories, "new": Category("new", "New")}
    assert kind_of(dishes(10), replace(renamed(1), categories=part)) == "batch"
    assert kind_of(dishes(10), replace(dishes(10), categories=part)) == "batch"
    off = {"available": False}
    assert kind_of(dishes(10), dishes(10, p1=off)) == "availability"
    assert kind_of(dishes(10), dishes(10, p1=off, p2={"name": "X"})) == "batch"


# -- the steps of a plan


def test_the_end_of_a_snooze_goes_by_a_call_of_its_own() -> None:
    off: dict[str, object] = {"available": False, "snooze_until": 9, "name": "X"}
    changes = diff(dishes(3), dishes(3, p1=off, p2={"available": False, "name": "Y"}))
    batch, ends = plan("batch", changes, Catalogue(), RULES).steps
    assert [each.snooze_until for each in batch.items] == [None, None]
    assert (ends.kind, [each.external_id for each in ends.items]) == ("availability", ["p1"])
    assert without_snooze(SOUP) is SOUP


def test_availability_alone_leaves_the_rest_of_a_plan() -> None:
    changed: dict[str, dict[str, object]] = {
        "p1": {"available": False},
        "p2": {"available": False, "price": 1},
        "p3": {"price": 1},
        "p4": {"snooze_until": 5},
    }
    changes = diff(dishes(5), dishes(5, **changed))
    (step,) = availability_alone(changes, RULES).steps
    assert (step.kind, step.ids) == ("availability", ("p1", "p2", "p4"))


def test_parts_go_with_the_first_of_several_batches() -> None:
    rules = Rules(MenuSettings(), AssumptionSettings(batch_max_items=2), "USD")
    part = {**dishes(5).categories, "new": Category("new", "New")}
    after = replace(dishes(5, **{f"p{n}": {"name": "X"} for n in (1, 2, 3)}), categories=part)
    first, second = plan("batch", diff(dishes(5), without(after, "p5")), after, rules).steps
    assert (first.ids, set(first.parts.categories)) == (("p1", "p2"), {"new"})
    assert (second.ids, second.parts, second.delete) == (("p3", "p5"), Parts(), ("p5",))
    assert first.before == {key: dishes(5).items[key] for key in ("p1", "p2")}
    only_parts = replace(dishes(5), categories=part)
    (step,) = plan("batch", diff(dishes(5), only_parts), only_parts, rules).steps
    assert (step.ids, set(step.parts.categories)) == ((), {"new"})


def test_a_full_push_of_a_till_without_menus_names_one() -> None:
    target = replace(dishes(2), menus={})
    (step,) = plan("full", diff(Catalogue(), target), target, RULES).steps
    assert step.menus == (DEFAULT_MENU,)
    assert (DEFAULT_MENU.external_id, DEFAULT_MENU.name) == ("menu", "Menu")
    emptied = Catalogue(menus={"late": Menu("late", "Late")})
    (step,) = plan("full", diff(Catalogue(), emptied), emptied, RULES).steps
    assert (step.items, step.menus) == ((), (Menu("late", "Late"),))
    assert plan("full", diff(Catalogue(), Catalogue()), Catalogue(), RULES) == Plan("full")


# -- who has to look


def compared(before: Catalogue, after: Catalogue, **more: Any) -> Comparison:  # noqa: ANN401 -- fields
    changes = diff(before, after)
    known: Mapping[str, Any] = {"menus": 1, "whole": True, **more}
    return Comparison(changes, before, after, totals_of(before, changes), **known)


def held(digest: str, approved: str | None = None) -> Hold:
    return Hold(
        store="main", digest=digest, since=1, reasons=[], summary={}, approved_digest=approved
    )


def test_what_passes_is_planned() -> None:
    same = guard_and_plan(compared(dishes(9), dishes(9)), RULES, NOW)
    assert (same.plan, same.digest, same.reasons) == (Plan("nothing"), "", ())
    comparison = compared(dishes(9), dishes(9, p1={"name": "X"}))
    made = guard_and_plan(comparison, RULES, NOW)
    assert made.comparison is comparison
    assert (made.plan.kind, made.digest, made.reasons) == ("patch", "", ())
    assert not made.approved
    assert not made.needs_whole
    assert made.first is None


def test_what_a_person_has_to_see_waits_but_for_availability() -> None:
    after = dishes(9, p1={"price": 0, "available": False}, p2={"available": False})
    comparison = compared(dishes(9), after)
    made = guard_and_plan(comparison, RULES, NOW)
    digest = ContentDigest(comparison.changes).text
    assert (made.reasons, made.suspects, made.digest) == (("now free: Dish 1",), ("p1",), digest)
    assert (made.plan.kind, made.plan.steps[0].ids) == ("availability", ("p1", "p2"))
    assert not made.approved


def test_an_approval_is_for_what_was_seen() -> None:
    after = dishes(9, p1={"price": 0})
    digest = ContentDigest(diff(dishes(9), after)).text

    def made(hold: Hold, after: Catalogue = after) -> tuple[str, bool, bool, str]:
        found = guard_and_plan(compared(dishes(9), after, hold=hold), RULES, NOW)
        return found.plan.kind, found.approved, bool(found.reasons), found.digest

    assert made(held(digest, digest)) == ("patch", True, False, digest)
    assert made(held(digest)) == ("availability", False, True, digest)
    assert made(held("x", "x")) == ("availability", False, True, digest)
    fine = dishes(9, p1={"price": 120})
    other = ContentDigest(diff(dishes(9), fine)).text
    assert made(held(digest, digest), fine) == ("patch", False, False, other)


def test_a_full_push_takes_the_whole_export() -> None:
    nothing = compared(dishes(9), dishes(9))
    made = guard_and_plan(nothing, RULES, NOW, full=True)
    assert (made.plan.kind, len(made.plan.steps[0].items)) == ("full", 9)
    assert not made.needs_whole
    part = guard_and_plan(compared(dishes(9), dishes(9), whole=False), RULES, NOW, full=True)
    assert (part.plan, part.needs_whole, part.digest) == (Plan("full"), True, "")
    patched = compared(dishes(9), dishes(9, p1={"name": "X"}), whole=False)
    assert guard_and_plan(patched, RULES, NOW).plan.kind == "patch"


def test_a_first_menu_is_summed_up() -> None:
    made = guard_and_plan(compared(Catalogue(), dishes(9)), RULES, NOW)
    assert made.first == MenuSummary.of(dishes(9))
    assert made.plan.kind == "full"
    assert guard_and_plan(compared(Catalogue(), Catalogue()), RULES, NOW).first is None
    more = compared(dishes(9), dishes(10))
    assert guard_and_plan(more, RULES, NOW).first is None


@pytest.mark.parametrize(
    ("until", "available", "ended"),
    [(NOW, True, True), (NOW + 1, True, False), (None, True, False), (1, False, False)],
)
def test_a_snooze_ends_at_its_moment(until: int | None, available: bool, ended: bool) -> None:
    was = replace(SOUP, snooze_until=until)
    change = ItemChange(was, replace(SOUP, available=available), frozenset())
    assert snooze_ended(change, NOW) is ended


def test_what_the_service_restores_itself_is_not_sent() -> None:
    snoozed = {"available": False, "snooze_until": NOW}
    before = dishes(9, p1=snoozed, p2=snoozed)
    comparison = compared(before, dishes(9, p2={"price": 210}))
    itself = Rules(MenuSettings(), AssumptionSettings(service_restores_snoozed=True), "USD")
    made = guard_and_plan(comparison, itself, NOW)
    assert made.plan.steps[0].ids == ("p2",)
    assert made.comparison.changes.changed.keys() == {"p2"}
    assert guard_and_plan(comparison, RULES, NOW).plan.steps[0].ids == ("p1", "p2")
