"""The storefront in a real browser: at a phone's and a desk's width, in light and dark."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.support.sandbox_driver import STORE, Driver, driven, item
from tests.support.sandbox_hall import hall_of

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        await driver.push(
            item("tea", 300, name="Pot of tea", description="Assam", categories=["d"]),
            item("cake", 450, name="Carrot cake", categories=["f"]),
            item(
                "toast",
                700,
                name="Cheese toast with everything that the kitchen has left",
                description="Sourdough, three cheeses, pickles, and a story about each of them",
                categories=["f"],
                addon_groups=["x"],
            ),
            categories=[
                {"external_id": "d", "name": "Drinks"},
                {"external_id": "f", "name": "Food"},
            ],
            add_ons=[{"external_id": "egg", "name": "Fried egg", "price": 150}],
            addon_groups=[{"external_id": "x", "name": "On top", "add_ons": ["egg"]}],
        )
        yield driver


@pytest_asyncio.fixture(
    loop_scope="session",
    params=[(360, 740, "dark"), (1280, 800, "light")],
    ids=["phone", "desk"],
)
async def page(request: pytest.FixtureRequest, browser: Browser) -> AsyncIterator[Page]:
    width, height, scheme = request.param
    shown = await browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown.set_default_timeout(15_000)
    problems: list[str] = []
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.on(
        "console",
        lambda said: problems.append(said.text) if said.type == "error" else None,
    )
    yield shown
    assert problems == []


async def keep(page: Page, name: str) -> None:
    """A picture for a person to look at, where SANDBOX_SHOTS names a folder."""
    if folder := os.environ.get("SANDBOX_SHOTS"):
        width = await page.evaluate("innerWidth")
        await page.screenshot(path=Path(folder) / f"{name}-{width}.png", full_page=True)


async def fits(page: Page) -> bool:
    """Nothing sticks out sideways."""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    return bool(await page.evaluate(wide))


async def test_a_person_orders_and_sees_the_order_move_on(bridge: Driver, page: Page) -> None:
    await page.goto(f"{bridge.running.url}/store/st_main")
    await page.get_by_role("button", name="Add Pot of tea").click()
    await page.get_by_role("link", name="Choose").click()
    await page.get_by_label("Fried egg").check()
    await page.get_by_label("Quantity").fill("2")
    await keep(page, "item")
    assert await fits(page)
    await page.get_by_role("button", name="Add to the basket").click()
    await page.locator("#basket", has_text="Cheese toast").wait_for()
    await keep(page, "store")
    assert await fits(page)
    await page.get_by_role("button", name="Place the order").click()
    await page.get_by_text("Sent to the restaurant").wait_for()
    order_id = page.url.rsplit("/", 1)[1]
    await bridge.call("POST", f"/pos/orders/{order_id}/accept")
    await page.locator("#state", has_text="accepted").wait_for()
    await bridge.call("POST", f"/pos/orders/{order_id}/status", {"status": "preparing"})
    await bridge.call("POST", f"/pos/orders/{order_id}/ready")
    await page.get_by_role("button", name="Mark as delivered").wait_for()
    await keep(page, "order")
    assert await fits(page)
    await page.get_by_role("button", name="Mark as delivered").click()
    await page.locator("#state", has_text="completed").wait_for()


async def test_a_menu_on_screen_follows_availability(bridge: Driver, page: Page) -> None:
    await page.goto(f"{bridge.running.url}/store/st_main")
    body = {"items": [{"external_id": "tea", "available": False}]}
    await bridge.call("POST", f"{STORE}/items/availability", body)
    await page.locator("[data-external-id=tea]", has_text="sold out").wait_for()
    await keep(page, "sold-out")
    body = {"items": [{"external_id": "tea", "available": True}]}
    await bridge.call("POST", f"{STORE}/items/availability", body)
    await page.get_by_role("button", name="Add Pot of tea").wait_for()


async def test_the_first_page_and_the_consent_page_fit(bridge: Driver, page: Page) -> None:
    await bridge.place({"external_id": "tea"})
    await page.goto(bridge.running.url)
    await page.get_by_role("button", name="Next call: 503").click()
    await page.get_by_text("Switched on: error 503").wait_for()
    await keep(page, "index")
    assert await fits(page)
    await page.get_by_role("button", name="Put everything right").click()
    await page.get_by_text("No faults are switched on").wait_for()
    query = "client_id=app_123&redirect_uri=http://127.0.0.1:9/cb&email=owner@example.net&state=s"
    await page.goto(f"{bridge.running.base_url}/oauth2/authorize?{query}")
    await page.get_by_role("button", name="Allow", exact=True).wait_for()
    await keep(page, "consent")
    assert await fits(page)


async def test_a_person_orders_from_two_stores_of_a_community(page: Page) -> None:
    async with hall_of() as hall:
        address = f"{hall.bridge.running.url}/community/com_food_hall"
        await page.goto(hall.bridge.running.url)
        await keep(page, "index-community")
        assert await fits(page)
        await page.get_by_role("link", name="Food hall").click()
        await page.get_by_role("button", name="Add Item tea").click()
        await page.get_by_role("link", name="Choose Item toast").click()
        await page.get_by_label("Egg").check()
        await page.get_by_role("button", name="Add to the basket").click()
        await page.locator("#basket", has_text="Tea Room").wait_for()
        assert page.url.startswith(address)
        await hall.patch("soup", {"available": False})
        await page.locator("[data-external-id=soup]", has_text="sold out").first.wait_for()
        await keep(page, "community")
        assert await fits(page)
        await page.get_by_label("Your name").fill("Ada")
        await page.get_by_role("button", name="Place the order").click()
        await page.get_by_text("Sent to the stores").wait_for()
        (order,) = (await hall.bridge.state())["communities"]["com_food_hall"]["orders"]
        for step in ("accept", "status", "ready"):
            for child in order["child_orders"]:
                await hall.pos(child["order_id"], step)
        leave = page.get_by_role("button", name="Out for delivery")
        await leave.wait_for()
        await keep(page, "community-order")
        assert await fits(page)
        await leave.click()
        await page.get_by_role("button", name="Mark as delivered").click()
        await page.locator("#state", has_text="delivered").wait_for()
