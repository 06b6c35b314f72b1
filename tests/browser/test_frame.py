"""The frame in a browser: a phone has every page behind one button, a desk has them beside it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "Pizza")
        yield made


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_phone_has_every_page_behind_one_button_and_says_how_many_problems_wait(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(
        viewport={"width": 360, "height": 740}, java_script_enabled=scripts
    )
    await page.goto(harness.url + "/orders")
    header = page.locator("header.side")
    box = await header.bounding_box()
    assert box is not None
    assert box["height"] < 60, "one line, with the product's name"
    await expect(header.get_by_text("tillbridge")).to_be_visible()
    link = page.get_by_role("link", name="Sold out")
    await expect(link).to_be_hidden()
    button = page.locator("header summary")
    await expect(button).to_have_text("Pages 4")
    await button.click()
    await link.click()
    await expect(page).to_have_url(harness.url + "/86")
    await page.close()


@pytest.mark.parametrize("width", [768, 1280, 1920])
async def test_a_wider_screen_shows_the_pages_beside_the_content_and_uses_its_width(
    browser: Browser, harness: PageHarness, width: int
) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 800})
    await page.goto(harness.url + "/orders")
    await expect(page.locator("header summary")).to_be_hidden()
    link, main = page.get_by_role("link", name="Help"), page.locator("main")
    await expect(link).to_be_visible()
    beside, content = await link.bounding_box(), await main.bounding_box()
    assert beside is not None
    assert content is not None
    assert beside["x"] + beside["width"] <= content["x"]
    assert content["width"] > 0.8 * width
    await page.close()
