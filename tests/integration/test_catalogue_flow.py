"""The menu's way from the POS to a strict service, round by round."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes, without
from tillbridge.adapter import ExportUnreadable
from tillbridge.core.errors import ServiceError
from tillbridge.ledger import menu
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.menu import prices_around, refused_items
from tillbridge.ledger.menu_codec import PushContent
from tillbridge.ledger.pushes import begin_push, connected, get_hold, push_page
from tillbridge.model.catalogue import Availability, BadRow, Catalogue, Item, Variant
from tillbridge.sandbox import SandboxSettings

OFF = Availability(available=False)


async def sync(harness: CatalogueHarness, catalogue: Catalogue | None = None) -> list[str]:
    """Make a menu round and an availability round; return the calls that were made."""
    if catalogue is not None:
        harness.pos.menu = catalogue
    harness.flow.availability_changed()
    with suppress(ServiceError):  # which is what some of these tests are about
        await harness.flow.push_again()
    await harness.flow._availability.step()
    return await harness.calls()


async def exported_again(harness: CatalogueHarness) -> list[str]:
    """Write the same export again, and return the calls that the bridge makes of it."""
    await harness.calls()
    harness.flow._menu.request()
    await harness.flow._menu.step()
    return await harness.calls()


async def matches(harness: CatalogueHarness, catalogue: Catalogue) -> None:
    """Check that the service and the ledger have exactly this."""
    service = await harness.on_sale()
    assert service.keys() == catalogue.items.keys()
    for external_id, item in catalogue.items.items():
        assert (service[external_id]["name"], service[external_id]["price"]) == (
            item.name,
            item.price,
        )
        assert service[external_id]["available"] == item.available, external_id
    accepted = await harness.ask(menu.all_items)
    assert {key: each.item for key, each in accepted.items()} == dict(catalogue.items)


async def test_each_change_takes_the_cheapest_right_call(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        assert await sync(harness, dishes(12)) == ["POST menus"]
        assert await sync(harness) == []
        assert await sync(harness, dishes(12, p1={"price": 120})) == ["PATCH items/p1"]
        off = dishes(12, p1={"price": 120}, p2={"available": False})
        assert await sync(harness, off) == ["POST items/availability"]
        several = without(dishes(13, p1={"price": 130, "description": "new"}), "p12")
        assert await sync(harness, several) == ["POST menus/batch"]
        await matches(harness, several)
        assert not harness.tracker.opened


async def test_a_large_menu_goes_as_a_job_and_removals_follow(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.05)
    async with catalogue_harness(tmp_path, sandbox) as harness:
        before = dishes(130)
        assert await sync(harness, before) == ["POST menus"]
        await matches(harness, before)
        names = {f"p{number}": {"description": f"New {number}"} for number in range(1, 125)}
        after = without(dishes(130, **names), "p129", "p130")
        assert await sync(harness, after) == ["POST menus", "POST menus/batch"]
        await matches(harness, after)


async def test_a_plan_that_removes_too_much_waits_until_it_is_approved(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(40))
        few = dishes(10, p1={"available": False})
        assert await sync(harness, few) == ["POST items/availability"]  # 86 never waits
        assert ("menu.held", "") in harness.tracker.opened
        hold = await harness.ask(get_hold)
        assert hold is not None
        assert not hold.approved
        assert len(await harness.on_sale()) == 40
        assert await harness.flow.approve() is not None
        assert "POST menus/batch" in await sync(harness)
        assert not harness.tracker.opened
        assert await harness.ask(get_hold) is None
        await matches(harness, few)


async def test_an_export_that_is_good_again_dissolves_the_hold(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(40))
        await sync(harness, Catalogue())
        assert "menu.held" in harness.tracker.codes
        assert await sync(harness, dishes(40)) == []
        assert not harness.tracker.opened
        assert await harness.ask(get_hold) is None


async def test_an_approval_is_for_the_plan_that_was_seen(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(40))
        await sync(harness, dishes(10))
        await harness.flow.approve()
        assert await sync(harness, dishes(5)) == []
        assert "menu.held" in harness.tracker.codes


async def test_availability_that_changes_back_while_a_plan_waits_goes_out(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(10))
        held = dishes(10, p1={"price": 0, "available": False})
        assert await sync(harness, held) == ["POST items/availability"]
        assert not (await harness.on_sale())["p1"]["available"]
        assert await sync(harness) == []
        assert await sync(harness, dishes(10)) == ["POST items/availability"]
        await matches(harness, dishes(10))
        assert not harness.tracker.opened


async def test_a_staff_86_lies_over_the_pos_until_it_is_lifted(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(5))
        await harness.flow.take_off_sale("p2", until=None, by="staff")
        assert await sync(harness) == ["POST items/availability"]
        assert await sync(harness, dishes(5, p2={"price": 210})) == ["PATCH items/p2"]
        assert not (await harness.on_sale())["p2"]["available"]
        assert await harness.flow.restore("p2")
        assert not await harness.flow.restore("p2")
        await sync(harness)
        await matches(harness, dishes(5, p2={"price": 210}))


async def test_a_snooze_comes_back_by_itself(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(5))
        until = harness.clock.now_ms() + 60_000
        harness.pos.words = {"p1": Availability(available=False, until=until)}
        await harness.flow.take_off_sale("p2", until=until, by="staff")
        assert await sync(harness) == ["POST items/availability"]
        service = await harness.on_sale()
        assert not service["p1"]["available"]
        assert service["p1"]["snooze_until"] is not None
        harness.clock.ahead_ms = 61_000
        await harness.flow._availability.step()
        assert await harness.calls() == ["POST items/availability"]
        await matches(harness, dishes(5))


async def test_a_service_that_ends_snoozes_itself_is_not_told(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path, service_restores_snoozed=True) as harness:
        await sync(harness, dishes(3))
        until = harness.clock.now_ms() + 60_000
        harness.pos.words = {"p1": Availability(available=False, until=until)}
        await sync(harness)
        harness.clock.ahead_ms = 61_000
        assert await sync(harness) == []
        assert (await harness.ask(menu.all_items))["p1"].item.available


async def test_a_word_on_a_variant_is_told_with_its_item(tmp_path: Path) -> None:
    sizes = (Variant("p1-s", "small", 90), Variant("p1-l", "large", 120))
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(3, p1={"variants": sizes}))
        harness.pos.words = {"p1-l": OFF}
        assert await sync(harness) == ["PATCH items/p1"]
        told = (await harness.ask(menu.all_items))["p1"]
        assert [each.available for each in told.item.variants] == [True, False]
        harness.pos.menu = ExportUnreadable("gone")
        harness.pos.words = {}
        assert await sync(harness) == ["PATCH items/p1"]  # although the menu cannot be read
        told = (await harness.ask(menu.all_items))["p1"]
        assert all(each.available for each in told.item.variants)


async def test_a_variant_goes_off_sale_while_a_plan_waits(tmp_path: Path) -> None:
    sizes = (Variant("p1-s", "small", 90), Variant("p1-l", "large", 120))
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(12, p1={"variants": sizes}))
        await sync(harness, dishes(2, p1={"variants": sizes}))
        assert "menu.held" in harness.tracker.codes
        await harness.flow.take_off_sale("p1-s", until=None, by="staff")
        assert await sync(harness) == ["PATCH items/p1"]
        assert await sync(harness) == []
        assert len(await harness.on_sale()) == 12


async def test_nothing_sold_out_comes_back_while_the_words_cannot_be_read(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.words = {"p1": OFF}
        await sync(harness, dishes(4))
        assert not (await harness.on_sale())["p1"]["available"]
        harness.flow = harness.rebuild()  # the bridge starts again
        harness.pos.words = ExportUnreadable("locked", passing=True)
        assert await sync(harness, dishes(4, p2={"price": 1})) == []
        assert "menu.held" in harness.tracker.codes
        assert not (await harness.on_sale())["p1"]["available"]


@pytest.mark.parametrize("call", ["availability", "patch"])
async def test_drift_is_mended_by_a_full_push(tmp_path: Path, call: str) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        body = {"add": [], "update": [], "delete": ["p2"]}
        await harness.linked.driver.sign_in()
        await harness.linked.driver.call("POST", "/pos/stores/st_main/menus/batch", body)
        await harness.calls()
        fields = {"available": False} if call == "availability" else {"price": 230}
        after = dishes(6, p2=fields)
        await sync(harness, after)
        assert await sync(harness) == ["POST menus"]
        await matches(harness, after)


async def test_items_that_the_service_rejects_do_not_stop_the_others(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        reject = {"external_ids": ["p2", "p5"], "reason": "not for this market"}
        await harness.linked.driver.control("POST", "/items/reject", reject)
        await sync(harness, dishes(8))
        assert (await harness.on_sale()).keys() == {"p1", "p3", "p4", "p6", "p7", "p8"}
        problem = harness.tracker.opened["menu.items_refused", ""]
        assert problem["count"] == 2
        assert "not for this market" in str(problem["detail"])
        names = [each.name for each in (await harness.ask(refused_items)).values()]
        assert names == [dishes(8).items[each].name for each in ("p2", "p5")]
        assert await exported_again(harness) == []  # not again as it is
        await harness.linked.driver.control("POST", "/items/reject", {"external_ids": []})
        changed = dishes(8, p2={"price": 220}, p5={"price": 510})
        await sync(harness, changed)
        await matches(harness, changed)
        assert not harness.tracker.opened


async def test_a_body_refused_for_one_item_is_narrowed_down(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(8, p3={"image_url": "no url"}))
        assert "p3" not in await harness.on_sale()
        assert len(await harness.on_sale()) == 7
        assert "p3" in str(harness.tracker.opened["menu.items_refused", ""]["detail"])
        assert await exported_again(harness) == []
        await sync(harness, dishes(8, p3={"image_url": "http://127.0.0.1/x.png"}))
        assert len(await harness.on_sale()) == 8
        assert not harness.tracker.opened


async def test_a_service_that_refuses_everything_blames_no_item_and_is_not_pressed(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        fault = {"action": "error", "path": "/menus$", "method": "POST", "status": 422}
        await harness.linked.driver.control("POST", "/faults", fault)
        await sync(harness, dishes(4))
        assert "menu.push_failed" in harness.tracker.codes
        assert not await harness.ask(refused_items)
        await harness.calls()
        assert await exported_again(harness) == []
        assert "menu.push_failed" in harness.tracker.codes
        await harness.linked.driver.control("DELETE", "/faults")
        await sync(harness)  # a person asks
        await matches(harness, dishes(4))
        assert not harness.tracker.opened


async def test_an_86_goes_out_while_a_job_runs_and_stands_after_it(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=60)
    async with catalogue_harness(tmp_path, sandbox) as harness:
        await sync(harness, dishes(100))
        names: dict[str, dict[str, object]] = {
            f"p{number}": {"name": f"New {number}"} for number in range(1, 6)
        }
        harness.pos.menu = dishes(130, **names)
        pushing = asyncio.create_task(harness.flow.push_again(full=True))
        while not any(each.job_id for each in await harness.ask(push_page, 1)):
            await asyncio.sleep(0.01)
        await harness.flow.take_off_sale("p2", until=None, by="staff")
        await harness.flow._availability.step()
        assert not pushing.done()
        assert not (await harness.on_sale())["p2"]["available"]
        await harness.linked.driver.jump(61)
        await pushing
        await sync(harness)
        await harness.flow._availability.step()
        names["p2"]["available"] = False
        await matches(harness, dishes(130, **names))


async def test_the_flow_runs_by_its_triggers(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.menu = dishes(3)
        harness.pos.words = {"p1": OFF}
        running = asyncio.create_task(harness.flow.run())
        try:
            await eventually(harness, {"p1": False, "p2": True, "p3": True})
            harness.pos.words = {}
            harness.flow.availability_changed()
            await eventually(harness, {"p1": True, "p2": True, "p3": True})
            await harness.flow.out_of_stock(["p3"])
            await eventually(harness, {"p1": True, "p2": True, "p3": False})
            harness.pos.menu = dishes(2)
            harness.flow.export_changed()
            await eventually(harness, {"p1": True, "p2": True})
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def eventually(harness: CatalogueHarness, expected: dict[str, bool]) -> None:
    async with asyncio.timeout(20):
        while {
            key: each["available"] for key, each in (await harness.on_sale()).items()
        } != expected:
            await asyncio.sleep(0.02)


async def test_a_job_is_followed_after_a_restart(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.3)
    async with catalogue_harness(tmp_path, sandbox) as harness:
        harness.pos.menu = dishes(120)
        pushing = asyncio.create_task(harness.flow.push_again())
        while not any(
            each.job_id for each in await harness.ask(push_page, 1)
        ):  # until the job is written down
            await asyncio.sleep(0.01)
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
        await harness.calls()
        harness.flow = harness.rebuild()
        assert await sync(harness) == []
        await matches(harness, dishes(120))


async def test_after_a_failed_job_the_full_menu_is_pushed_again(tmp_path: Path) -> None:
    sandbox = SandboxSettings(job_duration_s=0.02)
    async with catalogue_harness(tmp_path, sandbox) as harness:
        await harness.linked.driver.control("POST", "/jobs/next", {"fail": "the catalogue is busy"})
        assert await sync(harness, dishes(120)) == ["POST menus", "POST menus"]
        await matches(harness, dishes(120))
        pushes = await harness.ask(push_page, 9)
        assert [each.summary.get("items") for each in pushes] == [120, 120]
        assert any("the catalogue is busy" in each.message for each in pushes)
        assert not harness.tracker.opened


@pytest.mark.parametrize("kept", [True, False])
async def test_a_lost_job_is_settled_by_the_sync_status(tmp_path: Path, kept: bool) -> None:
    sandbox = SandboxSettings(job_duration_s=3)
    async with catalogue_harness(tmp_path, sandbox) as harness:
        harness.pos.menu = dishes(120)
        pushing = asyncio.create_task(harness.flow.push_again())
        while not any(each.job_id for each in await harness.ask(push_page, 1)):
            await asyncio.sleep(0.01)
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
        await harness.linked.driver.control("POST", "/jobs/lose", {"keep_work": kept})
        await harness.linked.driver.jump(4)
        await harness.calls()
        harness.flow = harness.rebuild()
        assert await sync(harness) == ([] if kept else ["POST menus"])
        await matches(harness, dishes(120))


async def test_nothing_is_remembered_of_a_push_that_failed(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.linked.driver.control(
            "POST", "/faults", {"action": "error", "path": "/menus$", "status": 502}
        )
        await sync(harness, dishes(5))
        assert await harness.ask(menu.item_count) == 0
        assert "menu.push_failed" in harness.tracker.codes
        await harness.linked.driver.control("DELETE", "/faults")
        await sync(harness)
        await matches(harness, dishes(5))
        assert not harness.tracker.opened


async def test_a_push_of_unknown_outcome_is_told_again_although_the_export_went_back(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(5))
        fault = {"action": "drop", "when": "after", "path": "/items/p1$"}
        await harness.linked.driver.control("POST", "/faults", fault)
        await sync(harness, dishes(5, p1={"price": 140}))
        assert (await harness.on_sale())["p1"]["price"] == 140  # it was applied, and nobody knows
        await harness.linked.driver.control("DELETE", "/faults")
        await sync(harness, dishes(5))
        await matches(harness, dishes(5))


async def test_an_availability_call_of_unknown_outcome_removes_no_item(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(5))
        fault = {"action": "drop", "when": "after", "path": "/items/availability$"}
        await harness.linked.driver.control("POST", "/faults", fault)
        await harness.flow.take_off_sale("p2", until=None, by="staff")
        await harness.flow._availability.step()
        await harness.linked.driver.control("DELETE", "/faults")
        await exported_again(harness)
        await matches(harness, dishes(5, p2={"available": False}))


async def test_a_crash_in_the_middle_of_a_call_leaves_its_items_doubtful(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(5))
        pending = PushContent(ids=("p1",)).text()
        await harness.ledger.write(
            lambda connection: begin_push(connection, "main", "patch", {}, pending, at=1)
        )
        await harness.linked.driver.sign_in()
        body = {"external_id": "p1", "price": 140}
        await harness.linked.driver.call("PATCH", "/pos/stores/st_main/items/p1", body)
        harness.flow = harness.rebuild()
        await sync(harness)
        await matches(harness, dishes(5))
        assert not (await harness.ask(connected, "")).open_pushes


async def test_a_direction_that_does_not_allow_pushes_is_a_problem_and_no_loop(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.linked.client.change_integration(
            "st_main", menu_sync_direction="quiqqy_to_pos"
        )
        await sync(harness, dishes(3))
        assert harness.tracker.codes == {"menu.push_not_allowed"}
        await harness.linked.client.change_integration(
            "st_main", menu_sync_direction="bidirectional"
        )
        harness.flow.service_back()
        await sync(harness)
        await matches(harness, dishes(3))
        assert not harness.tracker.opened


async def test_an_export_that_cannot_be_read_leaves_the_last_menu(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(3))
        harness.pos.menu = ExportUnreadable("locked by the till", passing=True)
        assert await sync(harness) == []
        assert not harness.tracker.opened
        harness.pos.menu = ExportUnreadable("no table", place="menu.csv", fix="Export a CSV.")
        assert await sync(harness) == []
        assert harness.tracker.opened["export.unreadable", "menu"] == {
            "detail": "menu.csv: no table",
            "remedy": "Export a CSV.",
        }
        await sync(harness, dishes(3))
        assert not harness.tracker.opened
        await matches(harness, dishes(3))


async def test_bad_rows_are_told_and_their_items_stay(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        row = BadRow("menu.csv, row 3", "no price", "Give it a price.", "p2")
        broken = replace(without(dishes(6, p1={"price": 110}), "p2"), bad_rows=(row,))
        assert await sync(harness, broken) == ["PATCH items/p1"]
        assert harness.tracker.opened["export.bad_rows", "menu"]["count"] == 1
        await harness.flow.push_again(full=True)
        assert await sync(harness) == ["POST menus"]
        await matches(harness, dishes(6, p1={"price": 110}))


async def test_a_store_that_is_not_connected_waits(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.ledger.write(
            lambda connection: drop_fact(connection, "main", "service_store_id")
        )
        assert await sync(harness, dishes(3)) == []
        await harness.ledger.write(
            lambda connection: put_fact(connection, "main", "service_store_id", "st_main", at=1)
        )
        assert await sync(harness) == ["POST menus"]
        assert await harness.ask(get_fact, "last_synced_at") is not None


async def test_a_plan_is_shown_in_words_and_pushes_nothing(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(12))
        harness.pos.menu = without(dishes(13, p1={"price": 150}), "p2")
        report = await harness.flow.plan_only()
        assert await harness.calls() == []
        assert report["kind"] == "batch"
        assert "~ Dish 1: price 1.00 -> 1.50" in report["lines"]
        assert report["counts"]["removed"] == 1


async def test_prices_are_known_as_they_were(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, Catalogue.of([Item("a", "A", 100)]))
        harness.clock.ahead_ms = 600_000
        then = harness.clock.now_ms() - 300_000
        await sync(harness, Catalogue.of([Item("a", "A", 120)]))
        between = harness.clock.now_ms()
        harness.clock.ahead_ms = 1_200_000
        await sync(harness, Catalogue.of([Item("a", "A", 140)]))
        now = harness.clock.now_ms()
        at_once = partial(prices_around, grace_ms=0)
        assert await harness.ask(at_once, ["a"], now) == {"a": (140,)}
        assert await harness.ask(at_once, ["a", "b"], between) == {"a": (120, 140), "b": ()}

        around = partial(prices_around, grace_ms=400_000)
        assert await harness.ask(around, ["a"], then) == {"a": (100, 120, 140)}


async def test_a_price_counts_at_once_whatever_the_clock_was_set_to(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, Catalogue.of([Item("a", "A", 100)]))
        right = harness.clock.now_ms()
        around = partial(prices_around, grace_ms=60_000)
        for ahead_ms, price in ((3_600_000, 120), (-3_600_000, 140), (0, 160)):
            harness.clock.ahead_ms = ahead_ms
            await sync(harness, Catalogue.of([Item("a", "A", price)]))
            assert price in (await harness.ask(around, ["a"], right))["a"]
