"""The menu in a browser: what waits is understood, released or dismissed; how it was is found."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy
from tests.support.world import World, make_world

pytestmark = pytest.mark.browser

_PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, "pizza")
        yield made


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_change_that_waits_is_understood_and_dismissed(
    browser: Browser, harness: PageHarness, scripts: bool
) -> None:
    page = await browser.new_page(java_script_enabled=scripts)
    await page.goto(harness.url + "/menu")
    await expect(page.locator("#menu-1")).to_contain_text("Menu update on hold: pizza")
    await expect(page.locator("#menu-1")).to_contain_text("31 items removed")
    await expect(page.locator("#menu-1")).to_contain_text("2 items changed")
    await expect(page.locator("#menu-1 .change").first).to_contain_text("€9.50 → €950.00")
    await page.get_by_role("link", name="Review change").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Review change")
    await expect(page.locator(".change-list").first).to_contain_text("+9,900%")
    await expect(page.locator("main code")).to_have_count(0)
    await page.get_by_role("link", name="show item ids").click()
    await expect(page.locator("main code").first).to_have_text("p1")
    await page.get_by_role("link", name="Keep the storefront as it is").click()
    await expect(page.locator("main")).to_contain_text("not offered again")
    await page.get_by_role("button", name="Keep the storefront as it is").click()
    await expect(page.locator(".flash")).to_contain_text("Did dismiss.")
    assert harness.control.asked[-1] == ("dismiss", "main")
    await page.close()


_BROKEN = """cells => cells.filter(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(line => line.top)).size > 1;
}).map(cell => cell.textContent)"""


async def test_the_time_of_a_change_is_not_broken_by_long_words_beside_it(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(viewport={"width": 1000, "height": 900})
    await page.goto(harness.url + "/menu")
    cells = page.locator("#menu-history").locator("th, td:first-child, td:last-child")
    await page.locator("#menu-history tbody tr td:nth-child(2)").first.evaluate(
        "cell => { cell.textContent = 'Soup of the day: price 6.50, then 7.50; '.repeat(9); }"
    )
    assert await cells.count() > 4
    assert await cells.evaluate_all(_BROKEN) == []
    await page.close()


async def test_pictures_are_loaded_once_somebody_asks_for_them(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    asked: list[str] = []

    async def picture(route: Route) -> None:
        asked.append(route.request.headers.get("referer", ""))
        await route.fulfill(body=_PICTURE, content_type="image/svg+xml")

    await page.route("https://pictures.example/**", picture)
    await page.goto(harness.url + "/menu")
    await expect(page.locator(".menu-dish .picture").first).to_have_text("P")
    assert not asked
    await page.get_by_role("link", name="Show pictures").click()
    await expect(page.locator(".picture img").first).to_have_js_property("naturalWidth", 8)
    assert set(asked) == {""}
    await page.close()


async def test_the_name_of_a_dish_leads_to_all_of_it_with_its_id_behind_details(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/menu")
    await expect(page.locator(".menu-dish details")).to_have_count(0)
    await page.locator(".dish-head a").first.click()
    await expect(page).to_have_url(re.compile(r"/menu\?store=main&item="))
    await expect(page.locator(".menu-dish code").first).to_be_hidden()
    await page.locator(".menu-dish summary").first.click()
    await expect(page.locator(".menu-dish code").first).to_be_visible()
    await page.close()


async def test_the_menu_of_a_moment_is_asked_for_from_an_order(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/orders/ord_1")
    await expect(page.locator("#ordered")).to_contain_text("On the menu then: as “pizza!”")
    await page.locator("#details summary").click()
    await page.get_by_role("link", name="Menu at that time").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("The menu as it was at")
    await expect(page.locator("#items tbody tr")).to_have_count(3)
    await page.get_by_label("As it was at").fill("2026-11-21T18:30")
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("6:30 PM")
    await page.goto(harness.url + "/stores/main/menu/items?at=yesterday")
    await expect(page.locator("main")).to_contain_text("This is not a date and time")
    await page.close()


async def half_the_menu(world: World) -> None:
    """Let the till forget half of its menu."""
    for number in range(1, 7):
        del world.till.rows[f"p{number}"]
    world.till.write_menu()
    await world.problem("menu.held")


async def test_a_hold_is_dismissed_and_the_next_one_released(
    browser: Browser, tmp_path: Path
) -> None:
    async with make_world(tmp_path) as world:
        await world.bridge.start()
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()
        await half_the_menu(world)
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{world.page_port}/menu")
        await expect(page.locator("#menu-1")).to_contain_text("all of Mains")
        await expect(page.locator(".menu-dish.removed")).to_have_count(6)
        await page.get_by_role("link", name="Keep the storefront as it is").click()
        await page.get_by_role("button", name="Keep the storefront as it is").click()
        await expect(page.locator("#menu-1")).to_contain_text("The storefront stays as it is")
        await world.problem("menu.held", open_=False)
        assert len(await world.storefront()) == 12
        del world.till.rows["p7"]
        world.till.write_menu()
        await world.problem("menu.held")
        await expect(page.locator("#menu-1")).to_contain_text("7 items removed")
        await page.get_by_role("link", name="Review change").click()
        await expect(page.locator(".change.removed")).to_have_count(14)
        await page.get_by_role("link", name="Publish this change").click()
        await expect(page.locator("main")).to_contain_text("7 items removed")
        await page.get_by_role("button", name="Publish this change").click()
        await expect(page.locator(".flash")).to_contain_text("Publishing: 7 items removed")
        await world.menu_is_on_sale()
        await expect(page.locator("#menu-1")).to_contain_text("5 items on the storefront")
        await expect(page.locator("#menu-history")).to_contain_text("7 removed")
        await page.close()
