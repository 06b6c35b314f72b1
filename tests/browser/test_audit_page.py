"""The audit trail in a browser: read it, check it, save it for a spreadsheet."""

import csv
import io
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy, fill_audit

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "anna")
        yield made


@pytest.mark.parametrize("scripts", [True, False])
async def test_the_trail_is_read_page_by_page_and_checked(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url + "/diagnostics")
    await page.get_by_role("link", name="Activity").click()
    rows = page.locator("#audit .activity > li")
    await expect(rows).to_have_count(50)
    await expect(rows.nth(0)).to_contain_text("The bridge sent the menu to the storefront")
    await expect(rows.nth(0)).to_contain_text("had no effect")
    await expect(rows.nth(1).locator("p").first).to_have_text("anna marked order anna as handled")
    await expect(rows.nth(1).get_by_text("page:anna")).to_be_hidden()
    await rows.nth(1).get_by_text("Details").click()
    await expect(rows.nth(1)).to_contain_text("how=anna, count=59")
    await page.get_by_role("link", name="Earlier").click()
    await expect(rows).to_have_count(10)
    await page.get_by_role("link", name="The latest").click()
    await page.get_by_role("link", name="Check for tampering").click()
    await expect(page.locator(".flash")).to_have_text("Whole.")
    await page.close()


async def test_it_shows_what_one_person_did_or_what_was_done_to_one_thing(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics/audit")
    rows = page.locator("#audit .activity > li")
    await page.get_by_label("Who").select_option(label="anna")
    await page.get_by_role("button", name="Show").click()
    await expect(rows).to_have_count(30)
    await expect(rows.first).to_contain_text("anna marked order")
    await page.get_by_label("About").select_option(label="the menu")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("#audit")).to_contain_text("Nothing matches")
    await page.get_by_role("link", name="Show everything").click()
    await expect(rows).to_have_count(50)
    await page.close()


async def test_it_is_saved_as_a_file_that_a_spreadsheet_may_open(
    browser: Browser, harness: PageHarness
) -> None:
    fill_audit(harness.control, '=HYPERLINK("http://evil.example")')
    page = await browser.new_page()
    await page.goto(harness.url + "/diagnostics/audit")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Save as CSV").click()
    assert (await download.value).suggested_filename == "tillbridge-audit.csv"
    await page.close()

    answer = await harness.get("/diagnostics/audit.csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [row["number"] for row in rows] == [str(number) for number in range(60, 0, -1)]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@"))]
    assert rows[1]["on"] == '\'=HYPERLINK("http://evil.example")'
    assert rows[0]["done"] == "no"


async def test_a_chain_that_is_broken_says_where_and_what_to_do(harness: PageHarness) -> None:
    async def broken() -> dict:
        return {"ok": False, "text": "Broken at 7.", "fix": "Compare it with the backup."}

    harness.control.audit.verify = broken  # type: ignore[method-assign]  # one answer of many
    page = await harness.get("/diagnostics/audit?check=1")
    assert "Broken at 7." in page.text
    assert "Compare it with the backup." in page.text
