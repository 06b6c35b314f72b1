"""The menu's way from the POS to a strict service, round by round."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.catalogue_house import CatalogueHouse, catalogue_house
from tests.support.catalogues import dishes, without
from tillbridge.adapter import ExportUnreadable
from tillbridge.core.errors import ServiceError
from tillbridge.ledger import menu
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.menu import refused_items
from tillbridge.ledger.menu_past import prices_around
from tillbridge.ledger.pushes import begin_push, get_hold, push_page, running_pushes
from tillbridge.menu.push_record import PushContent
from tillbridge.model.catalogue import Availability, BadRow, Catalogue, Item, Variant
from tillbridge.sandbox import SandboxSettings

OFF = Availability(available=False)


async def sync(house: CatalogueHouse, catalogue: Catalogue | None = None) -> list[str]:
    """Make a menu round and an availability round; return the calls that were made."""
    if catalogue is not None:
        house.pos.menu = catalogue
    house.flow.availability_changed()
    with suppress(ServiceError):  # which is what some of these tests are about
        await house.flow.push_again()
    await house.flow._availability.step()
    return await house.calls()


async def exported_again(house: CatalogueHouse) -> list[str]:
    """Write the same export again, and return the calls that the bridge makes of it."""
    await house.calls()
    house.flow._menu.request()
    await house.flow._menu.step()
    return await house.calls()


async def matches(house: CatalogueHouse, catalogue: Catalogue) -> None:
    """Check that the service and the ledger have exactly this."""
    service = await house.on_sale()
    assert service.keys() == catalogue.items.keys()
    for external_id, item in catalogue.items.items():
        assert (service[external_id]["name"], service[external_id]["price"]) == (
            item.name,
            item.price,
        )
        assert service[external_id]["available"] == item.available, external_id
    accepted = await house.ask(menu.all_items)
    assert {key: each.item for key, each in accepted.items()} == dict(catalogue.items)


async def test_each_change_takes_the_cheapest_right_call(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        assert await sync(house, dishes(12)) == ["POST menus"]
        assert await sync(house) == []
        assert await sync(house, dishes(12, p1={"price": 120})) == ["PATCH items/p1"]
        off = dishes(12, p1={"price": 120}, p2={"available": False})
        assert await sync(house, off) == ["POST items/availability"]
        several = without(dishes(13, p1={"price": 130, "description": "new"}), "p12")
        assert await sync(house, several) == ["POST menus/batch"]
        await matches(house, several)
        assert not house.tracker.opened


async def test_a_large_menu_goes_as_a_job_and_removals_follow(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.05)
    async with catalogue_house(tmp_path, sandbox) as house:
        before = dishes(130)
        assert await sync(house, before) == ["POST menus"]
        await matches(house, before)
        names = {f"p{number}": {"description": f"New {number}"} for number in range(1, 125)}
        after = without(dishes(130, **names), "p129", "p130")
        assert await sync(house, after) == ["POST menus", "POST menus/batch"]
        await matches(house, after)


async def test_a_plan_that_removes_too_much_waits_until_it_is_approved(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(40))
        few = dishes(10, p1={"available": False})
        assert await sync(house, few) == ["POST items/availability"]  # 86 never waits
        assert ("menu.held", "") in house.tracker.opened
        hold = await house.ask(get_hold)
        assert hold is not None
        assert not hold.approved
        assert len(await house.on_sale()) == 40
        assert await house.flow.approve() is not None
        assert "POST menus/batch" in await sync(house)
        assert not house.tracker.opened
        assert await house.ask(get_hold) is None
        await matches(house, few)


async def test_an_export_that_is_good_again_dissolves_the_hold(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(40))
        await sync(house, Catalogue())
        assert "menu.held" in house.tracker.codes
        assert await sync(house, dishes(40)) == []
        assert not house.tracker.opened
        assert await house.ask(get_hold) is None


async def test_an_approval_is_for_the_plan_that_was_seen(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(40))
        await sync(house, dishes(10))
        await house.flow.approve()
        assert await sync(house, dishes(5)) == []
        assert "menu.held" in house.tracker.codes


async def test_availability_that_changes_back_while_a_plan_waits_goes_out(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(10))
        held = dishes(10, p1={"price": 0, "available": False})
        assert await sync(house, held) == ["POST items/availability"]
        assert not (await house.on_sale())["p1"]["available"]
        assert await sync(house) == []
        assert await sync(house, dishes(10)) == ["POST items/availability"]
        await matches(house, dishes(10))
        assert not house.tracker.opened


async def test_a_staff_86_lies_over_the_pos_until_it_is_lifted(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(5))
        await house.flow.take_off("p2", until=None, by="staff")
        assert await sync(house) == ["POST items/availability"]
        assert await sync(house, dishes(5, p2={"price": 210})) == ["PATCH items/p2"]
        assert not (await house.on_sale())["p2"]["available"]
        assert await house.flow.restore("p2")
        assert not await house.flow.restore("p2")
        await sync(house)
        await matches(house, dishes(5, p2={"price": 210}))


async def test_a_snooze_comes_back_by_itself(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(5))
        until = house.clock.now_ms() + 60_000
        house.pos.words = {"p1": Availability(available=False, until=until)}
        await house.flow.take_off("p2", until=until, by="staff")
        assert await sync(house) == ["POST items/availability"]
        service = await house.on_sale()
        assert not service["p1"]["available"]
        assert service["p1"]["snooze_until"] is not None
        house.clock.ahead_ms = 61_000
        await house.flow._availability.step()
        assert await house.calls() == ["POST items/availability"]
        await matches(house, dishes(5))


async def test_a_service_that_ends_snoozes_itself_is_not_told(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path, service_restores_snoozed=True) as house:
        await sync(house, dishes(3))
        until = house.clock.now_ms() + 60_000
        house.pos.words = {"p1": Availability(available=False, until=until)}
        await sync(house)
        house.clock.ahead_ms = 61_000
        assert await sync(house) == []
        assert (await house.ask(menu.all_items))["p1"].item.available


async def test_a_word_on_a_variant_is_told_with_its_item(tmp_path: Path) -> None:
    sizes = (Variant("p1-s", "small", 90), Variant("p1-l", "large", 120))
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(3, p1={"variants": sizes}))
        house.pos.words = {"p1-l": OFF}
        assert await sync(house) == ["PATCH items/p1"]
        told = (await house.ask(menu.all_items))["p1"]
        assert [each.available for each in told.item.variants] == [True, False]
        house.pos.menu = ExportUnreadable("gone")
        house.pos.words = {}
        assert await sync(house) == ["PATCH items/p1"]  # although the menu cannot be read
        told = (await house.ask(menu.all_items))["p1"]
        assert all(each.available for each in told.item.variants)


async def test_a_variant_goes_off_sale_while_a_plan_waits(tmp_path: Path) -> None:
    sizes = (Variant("p1-s", "small", 90), Variant("p1-l", "large", 120))
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(12, p1={"variants": sizes}))
        await sync(house, dishes(2, p1={"variants": sizes}))
        assert "menu.held" in house.tracker.codes
        await house.flow.take_off("p1-s", until=None, by="staff")
        assert await sync(house) == ["PATCH items/p1"]
        assert await sync(house) == []
        assert len(await house.on_sale()) == 12


async def test_nothing_sold_out_comes_back_while_the_words_cannot_be_read(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        house.pos.words = {"p1": OFF}
        await sync(house, dishes(4))
        assert not (await house.on_sale())["p1"]["available"]
        house.flow = house.rebuild()  # the bridge starts again
        house.pos.words = ExportUnreadable("locked", passing=True)
        assert await sync(house, dishes(4, p2={"price": 1})) == []
        assert "menu.held" in house.tracker.codes
        assert not (await house.on_sale())["p1"]["available"]


@pytest.mark.parametrize("call", ["availability", "patch"])
async def test_drift_is_mended_by_a_full_push(tmp_path: Path, call: str) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        body = {"add": [], "update": [], "delete": ["p2"]}
        await house.linked.driver.sign_in()
        await house.linked.driver.call("POST", "/pos/stores/st_main/menus/batch", body)
        await house.calls()
        fields = {"available": False} if call == "availability" else {"price": 230}
        after = dishes(6, p2=fields)
        await sync(house, after)
        assert await sync(house) == ["POST menus"]
        await matches(house, after)


async def test_items_that_the_service_rejects_do_not_stop_the_others(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        reject = {"external_ids": ["p2", "p5"], "reason": "not for this market"}
        await house.linked.driver.control("POST", "/items/reject", reject)
        await sync(house, dishes(8))
        assert (await house.on_sale()).keys() == {"p1", "p3", "p4", "p6", "p7", "p8"}
        problem = house.tracker.opened["menu.items_refused", ""]
        assert problem["count"] == 2
        assert "not for this market" in str(problem["detail"])
        names = [each.name for each in (await house.ask(refused_items)).values()]
        assert names == [dishes(8).items[each].name for each in ("p2", "p5")]
        assert await exported_again(house) == []  # not again as it is
        await house.linked.driver.control("POST", "/items/reject", {"external_ids": []})
        changed = dishes(8, p2={"price": 220}, p5={"price": 510})
        await sync(house, changed)
        await matches(house, changed)
        assert not house.tracker.opened


async def test_a_body_refused_for_one_item_is_narrowed_down(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(8, p3={"image_url": "no url"}))
        assert "p3" not in await house.on_sale()
        assert len(await house.on_sale()) == 7
        assert "p3" in str(house.tracker.opened["menu.items_refused", ""]["detail"])
        assert await exported_again(house) == []
        await sync(house, dishes(8, p3={"image_url": "http://127.0.0.1/x.png"}))
        assert len(await house.on_sale()) == 8
        assert not house.tracker.opened


async def test_a_service_that_refuses_everything_blames_no_item_and_is_not_pressed(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        fault = {"action": "error", "path": "/menus$", "method": "POST", "status": 422}
        await house.linked.driver.control("POST", "/faults", fault)
        await sync(house, dishes(4))
        assert "menu.push_failed" in house.tracker.codes
        assert not await house.ask(refused_items)
        await house.calls()
        assert await exported_again(house) == []
        assert "menu.push_failed" in house.tracker.codes
        await house.linked.driver.control("DELETE", "/faults")
        await sync(house)  # a person asks
        await matches(house, dishes(4))
        assert not house.tracker.opened


async def test_an_86_goes_out_while_a_job_runs_and_stands_after_it(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=60)
    async with catalogue_house(tmp_path, sandbox) as house:
        await sync(house, dishes(100))
        names: dict[str, dict[str, object]] = {
            f"p{number}": {"name": f"New {number}"} for number in range(1, 6)
        }
        house.pos.menu = dishes(130, **names)
        pushing = asyncio.create_task(house.flow.push_full())
        while not any(each.job_id for each in await house.ask(push_page, 1)):
            await asyncio.sleep(0.01)
        await house.flow.take_off("p2", until=None, by="staff")
        await house.flow._availability.step()
        assert not pushing.done()
        assert not (await house.on_sale())["p2"]["available"]
        await house.linked.driver.jump(61)
        await pushing
        await sync(house)
        await house.flow._availability.step()
        names["p2"]["available"] = False
        await matches(house, dishes(130, **names))


async def test_the_flow_runs_by_its_triggers(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        house.pos.menu = dishes(3)
        house.pos.words = {"p1": OFF}
        running = asyncio.create_task(house.flow.run())
        try:
            await eventually(house, {"p1": False, "p2": True, "p3": True})
            house.pos.words = {}
            house.flow.availability_changed()
            await eventually(house, {"p1": True, "p2": True, "p3": True})
            await house.flow.out_of_stock(["p3"])
            await eventually(house, {"p1": True, "p2": True, "p3": False})
            house.pos.menu = dishes(2)
            house.flow.export_changed()
            await eventually(house, {"p1": True, "p2": True})
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def eventually(house: CatalogueHouse, expected: dict[str, bool]) -> None:
    async with asyncio.timeout(20):
        while {key: each["available"] for key, each in (await house.on_sale()).items()} != expected:
            await asyncio.sleep(0.02)


async def test_a_job_is_followed_after_a_restart(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.3)
    async with catalogue_house(tmp_path, sandbox) as house:
        house.pos.menu = dishes(120)
        pushing = asyncio.create_task(house.flow.push_again())
        while not any(
            each.job_id for each in await house.ask(push_page, 1)
        ):  # until the job is written down
            await asyncio.sleep(0.01)
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
        await house.calls()
        house.flow = house.rebuild()
        assert await sync(house) == []
        await matches(house, dishes(120))


async def test_after_a_failed_job_the_full_menu_is_pushed_again(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.02)
    async with catalogue_house(tmp_path, sandbox) as house:
        await house.linked.driver.control("POST", "/jobs/next", {"fail": "the catalogue is busy"})
        assert await sync(house, dishes(120)) == ["POST menus", "POST menus"]
        await matches(house, dishes(120))
        pushes = await house.ask(push_page, 9)
        assert [each.summary.get("items") for each in pushes] == [120, 120]
        assert any("the catalogue is busy" in each.message for each in pushes)
        assert not house.tracker.opened


@pytest.mark.parametrize("kept", [True, False])
async def test_a_lost_job_is_settled_by_the_sync_status(tmp_path: Path, kept: bool) -> None:
    sandbox = SandboxSettings(job_duration_s=3)
    async with catalogue_house(tmp_path, sandbox) as house:
        house.pos.menu = dishes(120)
        pushing = asyncio.create_task(house.flow.push_again())
        while not any(each.job_id for each in await house.ask(push_page, 1)):
            await asyncio.sleep(0.01)
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
        await house.linked.driver.control("POST", "/jobs/lose", {"keep_work": kept})
        await house.linked.driver.jump(4)
        await house.calls()
        house.flow = house.rebuild()
        assert await sync(house) == ([] if kept else ["POST menus"])
        await matches(house, dishes(120))


async def test_nothing_is_remembered_of_a_push_that_failed(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.linked.driver.control(
            "POST", "/faults", {"action": "error", "path": "/menus$", "status": 502}
        )
        await sync(house, dishes(5))
        assert await house.ask(menu.item_count) == 0
        assert "menu.push_failed" in house.tracker.codes
        await house.linked.driver.control("DELETE", "/faults")
        await sync(house)
        await matches(house, dishes(5))
        assert not house.tracker.opened


async def test_a_push_of_unknown_outcome_is_told_again_although_the_export_went_back(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(5))
        fault = {"action": "drop", "when": "after", "path": "/items/p1$"}
        await house.linked.driver.control("POST", "/faults", fault)
        await sync(house, dishes(5, p1={"price": 140}))
        assert (await house.on_sale())["p1"]["price"] == 140  # it was applied, and nobody knows
        await house.linked.driver.control("DELETE", "/faults")
        await sync(house, dishes(5))
        await matches(house, dishes(5))


async def test_a_crash_in_the_middle_of_a_call_leaves_its_items_doubtful(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(5))
        pending = PushContent(ids=("p1",)).text()
        await house.ledger.write(
            lambda connection: begin_push(connection, "main", "patch", {}, pending, at=1)
        )
        await house.linked.driver.sign_in()
        body = {"external_id": "p1", "price": 140}
        await house.linked.driver.call("PATCH", "/pos/stores/st_main/items/p1", body)
        house.flow = house.rebuild()
        await sync(house)
        await matches(house, dishes(5))
        assert not await house.ask(running_pushes)


async def test_a_direction_that_does_not_allow_pushes_is_a_problem_and_no_loop(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.linked.client.change_integration("st_main", menu_sync_direction="quiqqy_to_pos")
        await sync(house, dishes(3))
        assert house.tracker.codes == {"menu.push_not_allowed"}
        await house.linked.client.change_integration("st_main", menu_sync_direction="bidirectional")
        house.flow.service_back()
        await sync(house)
        await matches(house, dishes(3))
        assert not house.tracker.opened


async def test_an_export_that_cannot_be_read_leaves_the_last_menu(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(3))
        house.pos.menu = ExportUnreadable("locked by the till", passing=True)
        assert await sync(house) == []
        assert not house.tracker.opened
        house.pos.menu = ExportUnreadable("no table", place="menu.csv", fix="Export a CSV.")
        assert await sync(house) == []
        assert house.tracker.opened["export.unreadable", "menu"] == {
            "detail": "menu.csv: no table",
            "remedy": "Export a CSV.",
        }
        await sync(house, dishes(3))
        assert not house.tracker.opened
        await matches(house, dishes(3))


async def test_bad_rows_are_told_and_their_items_stay(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        row = BadRow("menu.csv, row 3", "no price", "Give it a price.", "p2")
        broken = replace(without(dishes(6, p1={"price": 110}), "p2"), bad_rows=(row,))
        assert await sync(house, broken) == ["PATCH items/p1"]
        assert house.tracker.opened["export.bad_rows", "menu"]["count"] == 1
        await house.flow.push_full()
        assert await sync(house) == ["POST menus"]
        await matches(house, dishes(6, p1={"price": 110}))


async def test_a_store_that_is_not_connected_waits(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.ledger.write(
            lambda connection: drop_fact(connection, "main", "service_store_id")
        )
        assert await sync(house, dishes(3)) == []
        await house.ledger.write(
            lambda connection: put_fact(connection, "main", "service_store_id", "st_main", at=1)
        )
        assert await sync(house) == ["POST menus"]
        assert await house.ask(get_fact, "last_synced_at") is not None


async def test_a_plan_is_shown_in_words_and_pushes_nothing(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(12))
        house.pos.menu = without(dishes(13, p1={"price": 150}), "p2")
        report = await house.flow.plan_only()
        assert await house.calls() == []
        assert report.kind == "batch"
        assert "~ Dish 1: price 1.00 -> 1.50" in report.lines
        assert report.counts["removed"] == 1


async def test_prices_are_known_as_they_were(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, Catalogue.of([Item("a", "A", 100)]))
        house.clock.ahead_ms = 600_000
        then = house.clock.now_ms() - 300_000
        await sync(house, Catalogue.of([Item("a", "A", 120)]))
        now = house.clock.now_ms()
        at_once = partial(prices_around, grace_ms=0)
        assert await house.ask(at_once, ["a", "b"], then) == {"a": (100,), "b": ()}
        assert await house.ask(at_once, ["a"], now) == {"a": (120,)}

        around = partial(prices_around, grace_ms=400_000)
        assert await house.ask(around, ["a"], then) == {"a": (100, 120)}
