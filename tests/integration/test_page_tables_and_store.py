"""What the pages Tables, Store and Set-up give and do, over a real socket."""

from dataclasses import replace

import pytest

from tests.support.fake_setup import beside_a_bridge
from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy
from tillbridge.model.instant import from_iso


async def test_the_sheet_is_a_file_with_a_code_for_each_table_that_has_one() -> None:
    async with page_harness() as harness:
        busy(harness.control, "Terrace")
        sheet = await harness.get("/stores/main/tables/sheet?paper=letter&per_page=8")
        assert sheet.status == 200
        assert sheet.headers["Content-Disposition"] == 'attachment; filename="tables-main.html"'
        assert sheet.text.count("<article") == 1
        assert "<script" not in sheet.text


async def test_a_zone_without_codes_says_what_to_do() -> None:
    async with page_harness() as harness:
        busy(harness.control, "Terrace")
        answer = await harness.get("/stores/main/tables/sheet?zone=Cellar")
        assert answer.status >= 400
        assert "Update the tables first" in answer.text


async def test_printed_codes_are_noted_after_a_question() -> None:
    async with page_harness() as harness:
        busy(harness.control, "Terrace")
        question = await harness.get("/stores/main/tables/printed")
        assert "will count as printed" in question.text
        done = await harness.post("/stores/main/tables/printed", {})
        assert done.status == 303
        assert ("tables printed", "main", {"t1": "c1"}) in harness.control.asked


async def test_a_pause_from_the_page_says_who_why_and_until_when() -> None:
    async with page_harness() as harness:
        question = await harness.get("/stores/main/pause")
        assert "2 hours" in question.text
        form = {"until": "2h", "reason": " too  busy ", "by": "somebody else"}
        done = await harness.post("/stores/main/pause", form)
        assert done.status == 303
        (asked,) = [each for each in harness.control.asked if each[0] == "pause"]
        assert asked[1] == "main"
        assert asked[2] != "somebody else"
        assert str(asked[3]).split() == ["too", "busy"]
        assert asked[4] == "2h"
        await harness.post("/stores/main/resume", {})
        assert any(each[0] == "resume" for each in harness.control.asked)


async def test_the_tables_say_that_they_come_from_the_till() -> None:
    async with page_harness() as harness:
        harness.control.tables.title = "Main Street"
        page = (await harness.get("/tables")).text
        assert "add, rename and remove them there" in page
        assert ">Main Street</h2>" in page
        harness.control.tables.told = False
        page = (await harness.get("/tables")).text
        assert "add, rename and remove them there" not in page
        assert "The bridge reads none from this till so far." in page


async def test_a_store_is_paused_and_reopened_at_a_touch_from_the_orders() -> None:
    async with page_harness() as harness:
        facts = harness.control.facts.stores["main"].facts
        facts |= {"service_store_id": "st_main", "integration": {"status": "active"}}
        facts["consent"] = {"expires_at": from_iso("2027-02-01T08:00Z")}
        page = await harness.get("/orders")
        assert "Taking orders" in page.text
        assert ">15 minutes</button>" in page.text
        form = {"until": "15m", "back-to": "/orders"}
        done = await harness.post("/stores/main/pause", form)
        assert done.headers["Location"].startswith("/orders?said=")
        assert ("pause", "main", asker(harness), "", "15m") in harness.control.asked

        now = from_iso("2027-01-15T08:00Z")  # as the page's clock says
        standing = {"by": "anna", "reason": "oven", "since_ms": now, "until_ms": now + 12 * 60_000}
        facts["standing"] = {"person": standing, "told": "inactive"}
        page = await harness.get("/orders")
        assert "Paused by anna: oven." in page.text
        assert "in 12 minutes." in page.text
        await harness.post("/stores/main/resume", {"back-to": "/orders"})
        assert any(each[0] == "resume" for each in harness.control.asked)


async def test_busy_mode_is_asked_for_and_shown_and_ended() -> None:
    async with page_harness() as harness:
        facts = harness.control.facts.stores["main"].facts
        facts |= {"service_store_id": "st_main", "integration": {"status": "active"}}
        facts["consent"] = {"expires_at": from_iso("2027-02-01T08:00Z")}
        question = await harness.get("/stores/main/busy")
        assert "Orders every 15 minutes" in question.text
        await harness.post("/stores/main/busy", {"orders": "8", "until": "1h"})
        assert ("busy", "main", asker(harness), 8, "1h") in harness.control.asked
        await harness.post("/stores/main/busy", {"orders": "many"})
        assert len([each for each in harness.control.asked if each[0] == "busy"]) == 1

        busy_mode = {"since_ms": 1, "orders": 8, "until_ms": None, "by": "anna"}
        facts["standing"] = {"busy": busy_mode, "told": "active"}
        page = await harness.get("/orders")
        assert "Busy mode: 8 orders every 15 minutes." in page.text
        await harness.post("/stores/main/busy-off", {})
        assert any(each[0] == "busy off" for each in harness.control.asked)


def asker(harness: PageHarness) -> str:
    """Return whom the page's operations name where nobody signed in."""
    return next(str(each[2]) for each in harness.control.asked if each[0] in {"pause", "busy"})


async def test_what_differs_in_the_taxes_is_told() -> None:
    async with page_harness() as harness:
        harness.control.store.differences = ["The till says 10 % on Soup, the service says 9.5 %."]
        done = await harness.post("/stores/main/tax", {})
        page = await harness.get(done.headers["Location"])
        assert "10\u00a0% on Soup" in page.text


async def test_the_store_names_its_adapters_with_the_level_each_reaches() -> None:
    async with page_harness() as harness:
        page = await harness.get("/store")
        assert "level silver" in page.text
        tills = [
            {"name": "clover", "level": "bronze", "part": "menu"},
            {"name": "mine", "level": "", "part": "orders"},
        ]
        harness.control.facts = replace(harness.control.facts, tills={"main": tills})
        page = await harness.get("/store")
        assert "Adapter for the menu" in page.text
        assert "level bronze" in page.text
        assert "no level" in page.text


async def test_a_store_without_an_hours_file_says_where_its_hours_are() -> None:
    async with page_harness() as harness:
        page = (await harness.get("/store")).text
        assert "Managed at the ordering service" in page
        assert 'href="/settings/hours?store=main"' in page


async def test_settings_can_be_sent_only_from_a_store_that_has_them_in_a_file() -> None:
    async with page_harness() as harness:
        page = (await harness.get("/store")).text
        assert page.count("Managed at the ordering service") == 2  # the hours and the settings
        assert 'href="/stores/main/settings"' not in page
        assert "Compare the taxes now" in page
        sent = {"store_settings": {"pending": [], "sent_at": 1_795_000_000_000}}
        store = harness.control.facts.stores["main"]
        stores = {"main": replace(store, facts={**store.facts, **sent})}
        harness.control.facts = replace(harness.control.facts, stores=stores)
        page = (await harness.get("/store")).text
        assert page.count("Managed at the ordering service") == 1
        assert 'href="/stores/main/settings"' in page


@pytest.mark.parametrize(("state", "again"), [("created", True), ("accepted", False)])
async def test_without_scripts_set_up_is_loaded_again_until_its_order_is_accepted(
    state: str, again: bool
) -> None:
    async with page_harness() as harness:
        busy(harness.control)
        control = harness.control
        shown = beside_a_bridge()
        signed_in = {**shown["sign_in"], "url": ""}
        control.setup.shown = {**shown, "next": "", "sign_in": signed_in}
        row = {**control.orders.rows[0], "state": state, "closed_at": None}
        control.orders.rows = [{**row, "written_at": "2026-11-26T12:00:00Z"}]
        page = await harness.get("/setup")
        assert ('http-equiv="refresh" content="5;url=/setup"' in page.text) is again


async def test_to_acknowledge_a_problem_of_the_bridge_leaves_those_of_stores_alone() -> None:
    async with page_harness() as harness:
        await harness.post("/problems/clock.wrong/ack", {"store": ""})
        await harness.post("/problems/pos.offline/ack", {"store": "main"})
        asked = [each[1:] for each in harness.control.asked if each[0] == "acknowledge"]
        assert asked == [("clock.wrong", ""), ("pos.offline", "main")]
