"""The pages of diagnostics in a browser: examine, read the log, save the file for support."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tests.support.page_sample import busy
from tillbridge.model.instant import to_iso
from tillbridge.web.authenticator import AccessRules

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "the till refused")
        yield made


def under_way(harness: PageHarness) -> dict[str, Any]:
    """The report as it is while two links are still looked at."""
    report = harness.control.diagnostics.report
    running = [
        {"name": "till", "store": "main", "title": "the till"},
        {"name": "disk", "store": "", "title": "the disk"},
    ]
    return {**report, "results": report["results"][:2], "done": False, "running": running}


@pytest.mark.parametrize("scripts", [True, False])
async def test_an_examination_tells_what_is_wrong_and_what_to_do(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    harness.control.diagnostics.began_at = None
    # Not before: a page that is live would show the report, and its button would be gone.
    harness.control.diagnostics.begins_at = to_iso(harness.control.now_ms)
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url)
    await page.get_by_role("link", name="Diagnostics", exact=True).click()
    await expect(page.locator("#report")).to_contain_text("No checks yet")
    await page.get_by_role("button", name="Run diagnostics").click()
    await expect(page.locator("#report h2").first).to_have_text("1 check failed.")
    await expect(page.locator("#report li")).to_have_count(5)
    broken = page.locator("#report li.bad")
    await expect(broken).to_contain_text("Failed")
    await expect(broken.locator(".fix")).to_have_text("the till refused")
    assert ("doctor",) in harness.control.asked
    assert [each["action"] for each in harness.trail.noted] == ["diagnostics.examine"]
    await page.close()


async def test_results_appear_while_the_rest_is_still_looked_at(
    browser: Browser, harness: PageHarness
) -> None:
    told = harness.control.diagnostics
    done, told.report = told.report, under_way(harness)
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics")
    await expect(page.locator("#report h2").first).to_have_text("Checking: the till, the disk")
    await expect(page.locator("#report li")).to_have_count(2)
    await expect(page.locator("#report progress")).to_have_js_property("value", 2)
    await expect(page.locator("#report")).to_contain_text("2 of 4 checks done")
    told.report = done  # nothing is written to the ledger, so no event tells of it
    await expect(page.locator("#report li")).to_have_count(5)
    await expect(page.locator("#report h2").first).to_have_text("1 check failed.")
    await page.close()


async def test_the_log_is_filtered_and_new_lines_come_by_themselves(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics")
    await page.get_by_role("link", name="Log", exact=True).click()
    lines = page.locator("#log li")
    await expect(lines).to_have_count(3)
    await page.get_by_label("Level").select_option(label="errors")
    await page.get_by_label("Search").fill("till")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(lines).to_have_count(1)
    await expect(lines).to_contain_text("pos.failed")
    await expect(page.get_by_label("Search")).to_have_value("till")
    await lines.locator("summary").click()
    await expect(lines.locator("pre")).to_contain_text("the till refused")
    first = harness.control.diagnostics.lines[0]
    harness.control.diagnostics.lines = [{**first, "event": "pos.failed_again"}, first]
    await expect(lines).to_have_count(2)
    await expect(lines.first).to_contain_text("pos.failed_again")
    await expect(lines.nth(1).locator("pre")).to_be_visible()  # what was opened stays open
    await page.close()


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_log_that_is_paused_stands_still_until_it_is_followed_again(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url + "/diagnostics/logs")
    await page.get_by_role("link", name="Pause").click()
    lines = page.locator("#log li")
    await expect(lines).to_have_count(3)
    assert await page.locator("#log[data-region], [data-soon]").count() == 0
    await expect(page.locator("#log")).to_contain_text("Paused")
    first = harness.control.diagnostics.lines[0]
    harness.control.diagnostics.lines = [{**first, "event": "pos.failed_again"}, first]
    await page.get_by_role("link", name="Follow").click()
    await expect(lines).to_have_count(2)
    await expect(lines.first).to_contain_text("pos.failed_again")
    await page.close()


async def test_the_log_leaves_out_what_nobody_reads_unless_asked(
    browser: Browser, harness: PageHarness
) -> None:
    now = to_iso(harness.control.now_ms)
    line = {"at": now, "level": "info", "event": "order.written", "ticket": "7", "digest": "16041"}
    noted = {"at": now, "level": "info", "event": "audit.noted", "entry": 9}
    harness.control.diagnostics.lines = [line, noted]
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics/logs")
    lines = page.locator("#log li")
    await expect(lines).to_have_count(1)
    await expect(lines).to_contain_text("info order.written ticket=7")
    await expect(lines).not_to_contain_text("16041")
    await page.get_by_label("All details").check()
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(lines).to_have_count(2)
    await expect(lines.first).to_contain_text("16041")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download").click()
    assert (await download.value).suggested_filename == "tillbridge-log.jsonl"
    await page.close()
    told = (await harness.get("/diagnostics/logs/file")).text.splitlines()
    assert [json.loads(each) for each in told] == [noted, line], "the oldest first, as it was"


async def test_a_long_log_shows_its_end_and_more_if_asked(
    browser: Browser, harness: PageHarness
) -> None:
    line = harness.control.diagnostics.lines[2]
    harness.control.diagnostics.lines = [{**line, "n": number} for number in range(300)]
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics/logs")
    await expect(page.locator("#log li")).to_have_count(100)
    await page.get_by_role("link", name="Show more").click()
    await expect(page.locator("#log li")).to_have_count(300)
    await page.close()


async def test_a_bundle_is_made_looked_through_and_saved(
    browser: Browser, harness: PageHarness
) -> None:
    ready, harness.control.diagnostics.bundled = (
        harness.control.diagnostics.bundled,
        {"state": "none"},
    )
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics")
    await page.get_by_role("link", name="Support file").click()
    await page.get_by_role("button", name="Create support file").click()
    await expect(page.locator("#bundle")).to_contain_text("Creating the support file")
    harness.control.diagnostics.bundled = ready
    await expect(page.locator("#files li")).to_have_count(1)
    await expect(page.locator("#files")).to_contain_text("log.jsonl")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Save tillbridge-support-1.zip").click()
    assert (await download.value).suggested_filename == "tillbridge-support-1.zip"
    assert [each["action"] for each in harness.trail.noted] == ["diagnostics.bundle"]
    await page.close()


async def test_only_a_technician_gets_at_the_bundle() -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        busy(harness.control)
        for name, allowed in (("lou", False), ("sam", False), ("tea", True)):
            await harness.sign_in(name, PASSWORD)
            page = await harness.get("/diagnostics")
            assert ("/diagnostics/bundle" in page.text) is allowed
            for path in ("/diagnostics/bundle", "/diagnostics/bundle/file"):
                assert ((await harness.get(path)).status == 200) is allowed, (name, path)
            made = await harness.post("/diagnostics/bundle/make")
            assert made.status == (303 if allowed else 403)
            await harness.post("/logout")


async def test_a_page_that_nobody_sees_does_not_look_again(
    browser: Browser, harness: PageHarness
) -> None:
    harness.control.diagnostics.report = under_way(harness)
    page = await browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(harness.url + "/diagnostics")

    async def looked(times: int) -> None:
        async with asyncio.timeout(20):
            while sum(url.endswith("/diagnostics") for url in asked) < times:
                await asyncio.sleep(0.05)

    await looked(3)
    await page.goto(harness.url + "/store")
    asked.clear()
    await expect(page.locator("h1")).to_have_text("Store")
    assert not [url for url in asked if url.endswith("/diagnostics")]
    await page.close()
