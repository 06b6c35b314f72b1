"""Communities, taking note of problems, and the file of orders, in a browser."""

import csv
import io
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tests.support.page_sample import busy, fill_orders
from tillbridge.web.authenticator import AccessRules

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "Pho 44")
        yield made


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_community_stands_on_the_overview_and_has_a_page(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url)
    block = page.locator("#community-1")
    await expect(block).to_contain_text("212 items")
    await expect(block).to_contain_text("Checked")
    await block.get_by_role("link", name="hall").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("hall")
    await expect(page.locator("#availability")).to_contain_text("Last sent to the community")
    await expect(page.locator("#availability")).to_contain_text("1 change waits to be sent.")
    await expect(page.locator("#availability tbody tr")).to_have_count(2)
    first = page.locator("#community-orders > ul > li").first
    await expect(first).to_contain_text("P-1")
    await expect(first.locator("li")).to_have_count(2)
    await first.get_by_role("link", name="Pho 44").click()
    await expect(page).to_have_url(harness.url + "/orders/ord_1")
    await page.close()


async def test_without_communities_nothing_is_said_of_them(harness: PageHarness) -> None:
    harness.control.facts = replace(harness.control.facts, communities={})
    assert "ommunity" not in (await harness.get("/")).text


async def test_taking_note_of_a_problem_says_who_sees_to_it(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url)
    card = page.locator("#problems li", has_text="pos.offline")
    await card.get_by_role("button", name="Acknowledge").click()
    assert ("acknowledge", "pos.offline", "main") in harness.control.asked
    assert [each["action"] for each in harness.trail.noted] == ["problems.acknowledge"]
    problem = harness.control.facts.problems[0]
    noted = {
        "code": problem.code, "store": problem.store, "subject": problem.subject,
        "since": problem.since, "at": harness.control.now_ms, "by": "anna",
    }  # fmt: skip
    harness.control.facts = replace(harness.control.facts, facts={"problems_acknowledged": [noted]})
    await page.wait_for_load_state()  # what the click has led to; a reload could meet it
    await page.goto(harness.url)
    await expect(card).to_contain_text("anna is handling this")
    await expect(card.get_by_role("button", name="Acknowledge")).to_have_count(0)
    await page.close()


async def test_who_may_only_look_takes_note_of_nothing() -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        busy(harness.control)
        await harness.sign_in("lou", PASSWORD)
        assert "Acknowledge" not in (await harness.get("/")).text
        assert (await harness.post("/problems/pos.offline/ack")).status == 403


async def test_the_orders_that_are_shown_are_saved_for_a_spreadsheet(
    browser: Browser, harness: PageHarness
) -> None:
    fill_orders(harness.control, "=1+1")
    page = await browser.new_page()
    await page.goto(harness.url + "/orders?q=a-10")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download as CSV").click()
    assert (await download.value).suggested_filename == "tillbridge-orders.csv"
    await page.close()

    answer = await harness.get("/orders.csv?q=a-10")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert len(rows) == 3
    assert {row["currency"] for row in rows} <= {"EUR", ""}
    assert not [cell for row in rows for cell in row.values() if cell.startswith("=")]
    assert any("'=1+1" in row.values() for row in rows)

    first = harness.control.orders.rows[0]
    harness.control.orders.rows = [{**first, "id": f"o{number}"} for number in range(120)]
    whole = await harness.get("/orders.csv")
    assert len(whole.text.splitlines()) == 121
