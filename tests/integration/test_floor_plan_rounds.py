"""The floor plan between a made-up POS and the sandbox: pushed whole, held, refused, reprinted."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tillbridge.adapter import ExportUnreadable, PosOffline
from tillbridge.core.errors import BridgeError, ServiceDown
from tillbridge.ledger.facts import drop_fact, get_fact
from tillbridge.ledger.pushes import get_tables
from tillbridge.model.restaurant import Table


def hall(count: int) -> tuple[Table, ...]:
    return tuple(Table(f"t{number:02}", f"Table {number}", 4) for number in range(1, count + 1))


async def round_with(harness: CatalogueHarness, tables: tuple[Table, ...]) -> list[str]:
    harness.pos.tables = tables
    await harness.flow.tables.step()
    return await harness.calls()


async def storefront(harness: CatalogueHarness) -> dict[str, dict[str, Any]]:
    """The tables of the service by external id."""
    state = (await harness.linked.driver.control("GET", "/state")).body
    (link,) = state["stores"]["st_main"]["integrations"]
    found = link["tables"]
    return {each["external_id"]: each for each in found} if isinstance(found, list) else found


async def active(harness: CatalogueHarness) -> set[str]:
    return {key for key, each in (await storefront(harness)).items() if each["active"]}


async def test_the_floor_plan_is_pushed_whole_when_it_changed(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        plan = (Table("t1", "One", 4, "hall"), Table("t2", "Two"))
        assert await round_with(harness, plan) == ["POST tables"]
        assert await round_with(harness, plan) == []
        accepted = await harness.ask(get_tables)
        assert tuple(each.table for each in accepted) == plan
        assert all(each.qr_url and each.table_id for each in accepted)
        assert await round_with(harness, plan[:1]) == ["POST tables"]
        assert await active(harness) == {"t1"}
        assert await harness.ask(get_fact, "tables_synced_at")
        assert not harness.tracker.opened


async def test_a_plan_that_loses_many_tables_waits_for_a_person(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(20))
        assert await round_with(harness, hall(3)) == []
        detail = harness.tracker.opened["tables.held", ""]["detail"]
        assert "17 of 20 tables removed (Table 4, Table 5" in str(detail)
        assert len(await active(harness)) == 20
        assert (await harness.flow.tables.plan_only()).waits

        hold = await harness.flow.tables.approve()
        assert hold is not None
        assert await round_with(harness, hall(3)) == ["POST tables"]
        assert await active(harness) == {"t01", "t02", "t03"}
        assert await harness.ask(get_fact, "tables_hold") is None
        assert not harness.tracker.opened


async def test_an_approval_does_not_count_for_another_plan(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(20))
        await round_with(harness, hall(3))
        await harness.flow.tables.approve()
        assert await round_with(harness, hall(2)) == []
        assert "tables.held" in harness.tracker.codes
        assert len(await active(harness)) == 20


async def test_a_hold_dissolves_when_the_tables_are_back(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(20))
        await round_with(harness, ())
        assert "tables.held" in harness.tracker.codes
        assert await round_with(harness, hall(20)) == []
        assert not harness.tracker.opened
        assert await harness.flow.tables.approve() is None


async def test_a_push_that_was_asked_for_does_not_pass_the_guard(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(20))
        harness.pos.tables = hall(3)
        plan = await harness.flow.tables.push_again()
        assert plan is not None
        assert plan.waits
        assert len(await active(harness)) == 20


async def test_new_tokens_are_told_until_a_new_sheet_is_made(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(3))
        rotate = {"external_ids": ["t02", "t03"]}
        await harness.linked.driver.control("POST", "/tables/st_main/rotate", rotate)
        harness.flow.daily()  # as every day
        await harness.flow.tables.step()
        assert harness.tracker.opened["tables.codes_changed", ""] == {"tables": "Table 2, Table 3"}

        state = await harness.flow.tables.state()
        codes = {each.table.external_id: each.code for each in state.accepted}
        await harness.flow.tables.printed({"t02": codes["t02"]})
        assert harness.tracker.opened["tables.codes_changed", ""] == {"tables": "Table 3"}
        await harness.flow.tables.printed(codes)
        assert not harness.tracker.opened
        assert await harness.ask(get_fact, "tables_dead") == []


async def test_a_sheet_of_codes_that_have_changed_meanwhile_mends_nothing(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(1))
        state = await harness.flow.tables.state()
        old = {each.table.external_id: each.code for each in state.accepted}
        await harness.linked.driver.control("POST", "/tables/st_main/rotate", {})
        await harness.flow.tables.push_again()
        await harness.flow.tables.printed(old)
        assert "tables.codes_changed" in harness.tracker.codes


async def test_the_daily_push_brings_back_what_others_took_away(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(2))
        await harness.linked.client.push_tables("st_main", hall(1))  # as a dashboard might
        await harness.calls()
        harness.flow.daily()
        assert await round_with(harness, hall(2)) == ["POST tables"]
        assert await active(harness) == {"t01", "t02"}
        assert not harness.tracker.opened


async def test_a_service_that_is_down_is_told_and_tried_again(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        fault = {"action": "error", "method": "POST", "path": "/tables", "status": 500}
        await harness.linked.driver.control("POST", "/faults", fault)
        await round_with(harness, hall(2))
        assert "tables.push_failed" in harness.tracker.codes
        with pytest.raises(ServiceDown):
            await harness.flow.tables.push_again()
        await harness.linked.driver.control("DELETE", "/faults")
        await harness.calls()
        assert await round_with(harness, hall(2)) == ["POST tables"]
        assert not harness.tracker.opened


async def test_what_the_service_refuses_is_not_sent_again_until_it_changes(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        fault = {"action": "error", "method": "POST", "path": "/tables", "status": 422, "count": 1}
        await harness.linked.driver.control("POST", "/faults", fault)
        assert await round_with(harness, hall(2)) == ["POST tables"]
        assert "tables.push_failed" in harness.tracker.codes
        assert await round_with(harness, hall(2)) == []
        assert "tables.push_failed" in harness.tracker.codes
        assert await round_with(harness, hall(3)) == ["POST tables"]
        assert not harness.tracker.opened


async def test_a_bad_table_is_told_and_the_rest_goes_out(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, (*hall(2), Table("t02", "Twice"), Table("t03", "")))
        assert await active(harness) == {"t01", "t02"}
        assert harness.tracker.opened["export.bad_rows", "tables"]["count"] == 2
        assert (await round_with(harness, hall(3))) == ["POST tables"]
        assert not harness.tracker.opened


async def test_a_floor_plan_that_cannot_be_read_leaves_the_tables(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await round_with(harness, hall(2))
        harness.pos.tables = ExportUnreadable("no table", place="tables.csv", fix="Export a CSV.")
        await harness.flow.tables.step()
        assert "export.unreadable" in harness.tracker.codes
        with pytest.raises(BridgeError, match=r"tables\.csv: no table"):
            await harness.flow.tables.plan_only()
        harness.pos.tables = PosOffline("off")
        with pytest.raises(BridgeError, match="off"):
            await harness.flow.tables.plan_only()
        assert await harness.flow.tables.push_again() is None
        assert await active(harness) == {"t01", "t02"}


async def test_a_store_that_is_not_connected_pushes_no_tables(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.ledger.write(
            lambda connection: drop_fact(connection, "main", "service_store_id")
        )
        assert await round_with(harness, hall(2)) == []
        assert not harness.tracker.opened


async def test_a_till_without_a_floor_plan_is_left_alone(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.reads_tables = False
        assert await round_with(harness, hall(2)) == []
        assert await active(harness) == set()
