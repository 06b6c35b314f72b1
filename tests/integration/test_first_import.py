"""A first menu is summed up for a person, and waits where one wants to see it; holds as seen."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.test_catalogue_flow import matches, sync
from tests.support.catalogue_harness import catalogue_harness
from tests.support.catalogues import dishes, without
from tests.support.full_menus import LOSSES, doubled, full_menu, mutated
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.pushes import get_hold
from tillbridge.menu.review import WORST
from tillbridge.menu.sync import FIRST_IMPORT
from tillbridge.model.catalogue import Availability, BadRow
from tillbridge.model.export_facts import ExportFacts, FileEncoding, LeftOut

OFF = Availability(available=False)


async def test_a_first_menu_is_summed_up_and_goes_out(tmp_path: Path) -> None:
    facts = ExportFacts(
        encodings={"menu.csv": FileEncoding("utf-8")},
        left_out=(LeftOut("Staff meal", "zero_price"), LeftOut("Gift card", "not_a_dish")),
    )
    menu = replace(dishes(12, p1={"price": 0}), facts=facts)
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.menu = menu
        report = await harness.flow.plan_only()
        assert report["first_import_lines"] == [
            "12 items, 0 sizes, 2 categories; 0 choices with 0 options",
            "Cheapest: Dish 2 2.00 USD. Most expensive: Dish 12 12.00 USD.",
            "1 is free: Dish 1",
            "menu.csv uses the encoding utf-8",
            "Not sold online, without a price: Staff meal",
            "Not sold online, not a dish: Gift card",
        ]
        assert report["first_import"]
        assert report["first_import"]["items"] == 12
        assert await sync(harness) == ["POST menus"]
        kept = await harness.ask(get_fact, FIRST_IMPORT)
        assert kept["lines"] == report["first_import_lines"]
        assert not (await harness.flow.plan_only())["first_import"], "the second is compared"


async def test_a_first_menu_waits_for_a_person_once(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.flow = harness.rebuild(approve_first=True)
        assert await sync(harness, dishes(12)) == []
        assert "first menu of this storefront: 12 items to check" in str(
            harness.tracker.opened["menu.held", ""]
        )
        hold = await harness.flow.approve()
        assert hold is not None
        assert hold.summary["counts"]["added"] == 12
        assert await sync(harness) == ["POST menus"]
        await matches(harness, dishes(12))
        assert await sync(harness, dishes(13)) == ["POST menus/batch"]
        assert not harness.tracker.opened


@pytest.mark.parametrize("code", LOSSES)
async def test_what_guests_would_miss_is_held_on_its_way(tmp_path: Path, code: str) -> None:
    before = full_menu(30)
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, before)
        after = mutated(before, LOSSES[code], [f"p{number}" for number in range(12)])
        assert await sync(harness, after) == []
        hold = await harness.ask(get_hold)
        assert hold is not None
        review = await harness.flow.review(1)
        assert review["reasons"] == hold.reasons
        assert [each["kind"] for each in review["worst"]] == ["changed"] * WORST
        assert review["worst_more"] == 12 - WORST
        assert await sync(harness, before) == []
        assert not harness.tracker.opened
        assert await harness.flow.differing() is None


async def test_the_same_dishes_under_new_ids_are_held_though_a_row_without_id_keeps_the_old(
    tmp_path: Path,
) -> None:
    before = full_menu(30)
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, before)
        twice = doubled(before, list(before.items))
        only_new = {key: item for key, item in twice.items.items() if key.startswith("new-")}
        row = BadRow("menu.csv, row 7", "it has no id", "Give it one.")
        assert await sync(harness, replace(before, items=only_new, bad_rows=(row,))) == []
        assert "30 new items are already on the menu under other ids" in str(
            harness.tracker.opened["menu.held", ""]
        )


async def test_a_file_that_loses_its_line_end_and_a_dish_is_held(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, replace(dishes(30), ends_with_newline=True))
        cut = replace(without(dishes(30), "p30"), ends_with_newline=False)
        assert await sync(harness, cut) == []
        assert "cut off" in str(harness.tracker.opened["menu.held", ""])
        harness.flow = harness.rebuild()  # what was accepted is remembered
        assert await sync(harness, cut) == []
        await harness.flow.approve()
        assert await sync(harness) == ["POST menus/batch"]
        assert await sync(harness, replace(cut, items=without(cut, "p29").items)) != []
        assert not harness.tracker.opened


async def test_mass_sold_out_goes_out_at_once_and_asks_a_person(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(12))
        off = {f"p{number}": {"available": False} for number in range(1, 12)}
        assert await sync(harness, dishes(12, **off)) == ["POST items/availability"]
        assert harness.tracker.opened["menu.mostly_sold_out", ""] == {"count": 11, "known": 12}
        await sync(harness, dishes(12))
        assert not harness.tracker.opened
        harness.pos.words = {f"p{number}": OFF for number in range(1, 12)}
        assert await sync(harness) == ["POST items/availability"]
        assert harness.tracker.codes == {"menu.mostly_sold_out"}
        harness.pos.words = {"p1": OFF}
        await sync(harness)
        assert not harness.tracker.opened


async def test_what_staff_take_off_asks_nobody(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(12))
        for number in range(1, 13):
            await harness.flow.take_off_sale(f"p{number}", until=None, by="staff")
        await sync(harness)
        assert not harness.tracker.opened
