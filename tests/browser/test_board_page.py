"""The 86 board: from a tap in the kitchen to the storefront, and back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.bridge_process import until
from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tests.support.page_sample import busy
from tests.support.world import make_world
from tillbridge.web.authenticator import AccessRules

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "x")
        base = made.control.items.menu[0]
        made.control.items.menu = [
            {**base, "external_id": f"p{number}", "name": name, "variant": ""}
            for number, name in enumerate(("Pizza Margherita", "Pizza Funghi", "Cola", "Soup"))
        ]
        yield made


async def test_two_keystrokes_find_an_item_and_the_keyboard_takes_it_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))
    await page.goto(harness.url + "/86")
    await page.keyboard.type("pm")
    await expect(page.locator("#found details")).to_have_count(1)
    await expect(page.locator("#found")).to_contain_text("Pizza Margherita")
    assert len(loads) == 1, "no page is loaded for a key"
    await page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Off for an hour")
    await expect(button).to_be_visible()
    for _ in range(5):
        await page.keyboard.press("Tab")
        if await button.evaluate("each => each === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page.locator(".flash")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p0", "1h")
    await page.close()


async def test_an_item_is_found_and_taken_off_with_scripts_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(harness.url + "/86")
    await page.locator("#find").fill("co")
    await page.get_by_role("button", name="Find").click()
    await expect(page.locator("#found details")).to_have_count(1)
    await page.locator("#found summary").click()
    await page.get_by_role("button", name="Off until tomorrow's opening").click()
    await expect(page.locator(".flash")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p2", "opening")
    await page.get_by_role("button", name="Back on sale").first.click()
    assert ("restore", "main", "x") in harness.control.asked
    await page.close()


async def test_who_only_looks_finds_but_takes_nothing_off(browser: Browser) -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        busy(harness.control, "x")
        page = await browser.new_page()
        await page.goto(harness.url + "/86")
        await page.get_by_label("Name").fill("lou")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await page.locator("#found summary").first.click()
        await expect(page.locator("#found")).to_contain_text("Only staff take items off sale.")
        await expect(page.locator(".until button, .stopped button")).to_have_count(0)
        await page.close()


@pytest.mark.parametrize("width", [360, 800, 1280])
async def test_what_is_tapped_is_large(browser: Browser, harness: PageHarness, width: int) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 800})
    await page.goto(harness.url + "/86")
    await page.locator("#found summary").first.click()
    small = await page.evaluate(
        "[...document.querySelectorAll('#found summary, .until button, .stopped button')]"
        ".filter((each) => each.offsetParent && each.getBoundingClientRect().height < 55)"
        ".map((each) => each.outerHTML)"
    )
    assert small == []
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    await page.close()


@pytest.mark.slow
async def test_an_86_goes_from_the_board_to_the_storefront_and_back(
    browser: Browser, tmp_path: Path
) -> None:
    async with make_world(tmp_path) as world:
        await world.bridge.start()
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{world.page_port}/86")
        await page.keyboard.type("d7")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Off until I say").click()
        await expect(page.locator(".flash")).to_contain_text("Dish 7 is off sale")
        await expect(page.locator("#off")).to_contain_text("by somebody at the page")
        await expect(page.locator("#off .badge")).to_contain_text("after")
        shop = await browser.new_page()
        await shop.goto(f"{world.url}/store/st_main?q=dish+7")
        await expect(shop.locator("main")).to_contain_text("sold out")
        assert (await world.storefront())["p7"]["available"] is False
        await page.get_by_role("button", name="Back on sale").click()
        await expect(page.locator("#off")).to_contain_text("No item is sold out.")

        async def back() -> bool:
            return bool((await world.storefront())["p7"]["available"])

        await until("dish 7 is on sale again", back)
        await shop.close()
        await page.close()
