"""Each profile on the tables of its till, on PostgreSQL and on MariaDB."""

from dataclasses import replace

import pytest

from tillbridge.adapter import Catalogue, ReadsCatalogue
from tillbridge.adapter.conformance import CHECKS, Check, Outcome, run_check
from tillbridge.adapter.conformance.subject import Subject, plain_items
from tillbridge.adapter.registration import closing
from tillbridge_sql.adapter import ADAPTER
from tillbridge_sql.rig_marks import on_servers
from tillbridge_sql.rig_profiles import (
    ChromisOnMariadb,
    ChromisOnPostgresql,
    FloreantOnMariadb,
    FloreantOnPostgresql,
    ProfileRig,
    UnicentaOnMariadb,
    UnicentaOnPostgresql,
)

TILLS: tuple[type[ProfileRig], ...] = (
    UnicentaOnPostgresql,
    UnicentaOnMariadb,
    ChromisOnPostgresql,
    ChromisOnMariadb,
    FloreantOnPostgresql,
    FloreantOnMariadb,
)
OF_ALL = (
    *("reads", "unicode", "rounding", "identity", "sold_out", "tables", "probe"),
    *("same_order_twice", "lost_answer", "unknown_item", "closed", "cancel"),
)


unicenta_and_chromis = pytest.mark.parametrize("till", on_servers(*TILLS[:4]))
floreant = pytest.mark.parametrize("till", on_servers(*TILLS[4:]))
every_till = pytest.mark.parametrize("till", on_servers(*TILLS))


@every_till
@pytest.mark.parametrize(
    "check", [each for each in CHECKS if each.name in OF_ALL], ids=lambda each: each.name
)
def test_a_profile_keeps_the_rules(till: type[ProfileRig], check: Check) -> None:
    result = run_check(check, Subject(till))
    assert result.outcome is Outcome.PASSED, f"{result.text} {result.fix}"


def read(rig: ProfileRig, **options: object) -> Catalogue:
    checked = ADAPTER.options.model_validate({**rig.options(), **options})
    pos = ADAPTER.open(checked, rig.context())
    assert isinstance(pos, ReadsCatalogue)
    with closing(pos):
        return pos.read_catalogue()


@floreant
@pytest.mark.parametrize("flag", ["no", "yes"])
def test_floreant_offers_modifiers_whatever_their_flags_say(
    till: type[ProfileRig], flag: str
) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, ProfileRig)
        rig.sell(plain_items(1), "EUR")
        said = rig.flag(yes=flag == "yes")
        rig.run(f"INSERT INTO MENU_MODIFIER_GROUP (ID, NAME, ENABLED) VALUES (1, 'EGGS', {said})")
        for number, name in enumerate(("Over easy", "Scrambled"), 1):
            rig.run(
                "INSERT INTO MENU_MODIFIER (ID, NAME, PRICE, ENABLE, GROUP_ID)"
                f" VALUES ({number}, '{name}', 0.50, {said}, 1)"
            )
        rig.run(
            "INSERT INTO MENUITEM_MODIFIERGROUP (ID, MIN_QUANTITY, MAX_QUANTITY, MODIFIER_GROUP,"
            " MENUITEM_MODIFIERGROUP_ID) VALUES (1, 1, 2, 1, 1)"
        )
        found = read(rig)
        assert found.items["1"].addon_groups == ("c1",)
        group = found.addon_groups["c1"]
        assert (group.min_select, group.max_select, group.required) == (1, 2, True)
        assert [found.add_ons[each].name for each in group.add_ons] == ["Over easy", "Scrambled"]


@floreant
def test_a_choice_of_floreant_that_nobody_can_make_is_told(till: type[ProfileRig]) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, ProfileRig)
        rig.sell(plain_items(2), "EUR")
        rig.run("INSERT INTO MENU_MODIFIER_GROUP (ID, NAME) VALUES (1, 'EGGS')")
        rig.run("INSERT INTO MENU_MODIFIER (ID, NAME, PRICE, GROUP_ID) VALUES (1, 'Raw', 0, 1)")
        rig.run(
            "INSERT INTO MENUITEM_MODIFIERGROUP (ID, MIN_QUANTITY, MAX_QUANTITY, MODIFIER_GROUP,"
            " MENUITEM_MODIFIERGROUP_ID) VALUES (1, 3, 3, 1, 1)"
        )
        found = read(rig)
        assert list(found.items) == ["2"]
        wrong, dish = found.bad_rows
        assert (wrong.place, wrong.text) == (
            "addon_groups, row 1",
            "It wants 3, allows 3 and offers 1.",
        )
        assert dish.external_id == "1"


@unicenta_and_chromis
def test_what_belongs_to_the_program_is_no_dish(till: type[ProfileRig]) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, ProfileRig)
        dish, line, charge = plain_items(3)
        line = replace(line, external_id="xxx999_999xxx_x9x9x9", price=0)
        charge = replace(charge, external_id="xxx998_998xxx_x8x8x8", price=0)
        rig.sell([dish, line, charge], "EUR")
        found = read(rig)
        assert list(found.items) == [dish.external_id]
        assert [(each.name, each.reason) for each in found.facts.left_out] == [
            (line.name, "not_a_dish"),
            (charge.name, "not_a_dish"),
        ]


@every_till
def test_what_costs_nothing_is_sold_as_the_options_say(till: type[ProfileRig]) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, ProfileRig)
        paid, free = plain_items(2)
        sold = rig.sell([paid, replace(free, price=0)], "EUR")
        assert len(read(rig).items) == 2
        assert list(read(rig, zero_prices="leave_out").items) == [sold[0].external_id]
        (row,) = read(rig, zero_prices="refuse").bad_rows
        assert (row.external_id, row.field) == (sold[1].external_id, "price")
        assert "set zero_prices" in row.fix
