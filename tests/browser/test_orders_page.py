"""The pages of orders in a browser: find one, read its life, act on it, hear of new ones."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tests.support.page_sample import busy
from tillbridge.web.authenticator import AccessRules

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "ord_1")
        yield made


async def change(harness: PageHarness) -> None:
    async with asyncio.timeout(10):
        while not harness.changed:
            await asyncio.sleep(0.02)
    for tell in harness.changed:
        tell()


@pytest.mark.parametrize("scripts", [True, False])
async def test_an_order_is_searched_filtered_and_opened(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url)
    pages = page.get_by_role("navigation", name="Pages")
    await pages.get_by_role("link", name="Orders", exact=True).click()
    await expect(page.locator("#orders tbody tr")).to_have_count(4)
    why = page.locator("#orders tbody tr", has_text="A-102").locator(".status")
    await expect(why).to_have_text("Cancelled sold out")
    await page.get_by_label("Search").fill("a-10")
    await page.keyboard.press("Enter")
    await expect(page.locator("#orders tbody tr")).to_have_count(3)
    await page.get_by_label("Status").select_option(label="Handled by a person")
    await page.get_by_role("button", name="Search").click()
    await expect(page.locator("#orders tbody tr")).to_have_count(1)
    await expect(page.locator("#orders")).to_contain_text("Handled by ord_1")
    await expect(page.get_by_label("Search")).to_have_value("a-10")
    await page.get_by_role("link", name="Show all").click()
    await page.locator("#orders a").first.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Order ord_1")
    await expect(page.locator("#life li")).to_have_count(8)
    await expect(page.locator("#life")).to_contain_text("+1 min 3 s ord_1 tried it again.")
    await expect(page.locator("#ordered")).to_contain_text("€24.50")
    await expect(page.locator("#ordered")).to_contain_text("Delivery fee")
    await expect(page.locator("#timeline li")).to_have_count(5)
    await expect(page.locator("#timeline")).to_contain_text("Reported to the service after 900 ms")
    assert "order.received" not in await page.locator("main").inner_text(), "it is in Details"
    await page.locator("#details summary").click()
    await expect(page.locator("#details")).to_contain_text("order.received")
    await page.get_by_role("link", name="Original order data").click()
    await expect(page.locator("pre")).to_contain_text('"customer": {')
    await page.close()


async def test_a_long_list_has_pages(browser: Browser, harness: PageHarness) -> None:
    first = harness.control.orders.rows[1]
    harness.control.orders.rows = [
        {**first, "id": f"o{number}", "order_number": f"N-{number}"} for number in range(120)
    ]
    page = await browser.new_page()
    await page.goto(harness.url + "/orders?q=n-")
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator("#orders")).to_contain_text("page 2 of 3, 120 in all")
    await expect(page.locator("#orders tbody tr").first).to_contain_text("N-50")
    await expect(page.get_by_label("Search")).to_have_value("n-")
    await page.get_by_role("link", name="Previous").click()
    await expect(page.locator("#orders tbody tr").first).to_contain_text("N-0")
    await page.close()


async def test_a_cancel_asks_before_it_acts(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/orders/ord_1")
    await page.get_by_role("link", name="Cancel order").click()
    await expect(page.locator("main")).to_contain_text("The guest gets the money back")
    await page.get_by_role("link", name="Go back").click()
    await expect(page).to_have_url(harness.url + "/orders/ord_1")
    assert not [each for each in harness.control.asked if each[0] == "cancel"]
    await page.get_by_role("link", name="Cancel order").click()
    await page.get_by_label("Reason").select_option(label="The kitchen is too busy")
    await page.get_by_role("button", name="Cancel order ord_1").click()
    await expect(page.locator(".flash")).to_contain_text("Did cancel.")
    assert ("cancel", "ord_1", "CAPACITY") in harness.control.asked
    await page.close()


async def test_trying_again_acts_at_a_touch_and_once(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/orders/ord_1")
    button = page.get_by_role("button", name="Try again")
    twice = """button => {
        const refused = [];
        const end = event => {
            refused.push(event.defaultPrevented);
            event.preventDefault();
        };
        window.addEventListener('submit', end);
        button.form.requestSubmit(button);
        button.form.requestSubmit(button);
        window.removeEventListener('submit', end);
        return refused;
    }"""  # what a second tap does before the answer is there
    assert await button.evaluate(twice) == [False, True]
    await expect(button).to_have_attribute("aria-busy", "true")
    async with page.expect_response(lambda answer: "/orders/ord_1" in answer.url):
        await change(harness)  # a refresh does not make the button one that may be pressed again
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
    await expect(button).to_have_attribute("aria-busy", "true")
    await page.reload()
    await button.click()
    await expect(page.locator(".flash")).to_contain_text("Did retry.")
    assert [each for each in harness.control.asked if each[0] == "retry"] == [("retry", "ord_1")]
    await page.close()


async def test_an_order_is_handled_by_hand_with_the_keyboard_alone(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(harness.url + "/orders/ord_1")
    await page.get_by_role("link", name="Mark as handled").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_contain_text("check there before you enter it")
    await page.get_by_label("What did you do?").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator(".flash")).to_contain_text("Did done.")
    assert ("done", "ord_1", "typed") in harness.control.asked
    await page.close()


async def test_who_only_looks_sees_neither_notes_nor_buttons(browser: Browser) -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        busy(harness.control, "HIDDEN")
        page = await browser.new_page()
        await page.goto(harness.url + "/orders/ord_1")
        await page.get_by_label("Name").fill("lou")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.locator("#ordered")).to_contain_text("shown to staff only")
        await expect(page.locator(".note")).to_have_count(0)
        await expect(page.locator("#stands .button")).to_have_count(0)
        answer = await page.goto(harness.url + "/orders/ord_1/payload")
        assert answer is not None
        assert answer.status == 403
        await page.close()


async def test_new_orders_ring_until_somebody_has_seen_them(
    browser: Browser, harness: PageHarness
) -> None:
    harness.control.orders.sound = True
    page = await browser.new_page()
    # A browser made to tell of each tone, and to hurry.
    await page.add_init_script(
        "window.rung = 0;"
        "const start = OscillatorNode.prototype.start;"
        "OscillatorNode.prototype.start = function () { window.rung += 1; };"
        "const slow = window.setInterval;"
        "window.setInterval = (work, ms) => slow(work, ms === 4000 ? 50 : ms);"
    )
    await page.goto(harness.url + "/orders")
    await expect(page.locator("#new-orders")).to_be_empty()
    if await page.locator("#sound-on").is_visible():
        await page.locator("#sound-on").click()
    await expect(page.locator("#sound-off")).to_be_hidden()
    harness.control.orders.unseen = 2
    await change(harness)
    await expect(page.locator("#new-orders")).to_contain_text("2 new orders")
    async with asyncio.timeout(10):
        while await page.evaluate("window.rung") < 4:
            await asyncio.sleep(0.02)
    await page.get_by_role("button", name="Acknowledge").click()
    await expect(page.locator("#new-orders")).to_be_empty()
    await page.wait_for_timeout(200)
    assert await page.evaluate("window.rung") == 0, "the page is a new one, and silent"
    await page.close()


async def test_without_the_setting_nothing_rings(browser: Browser, harness: PageHarness) -> None:
    harness.control.orders.unseen = 2
    page = await browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(harness.url + "/orders")
    assert not [url for url in asked if "ring.js" in url]
    await expect(page.locator("#new-orders")).to_have_count(0)
    await page.close()


async def test_an_order_changes_while_it_is_looked_at(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/orders/ord_1")
    await expect(page.locator("#stands")).to_contain_text("Waiting for the till")
    harness.control.orders.whole |= {"ticket": "written", "state": "accepted", "wanted": "accepted"}
    harness.control.facts = replace(harness.control.facts, version="9")
    await change(harness)
    await expect(page.locator("#stands .badge")).to_have_text("Accepted")
    await page.close()
