"""The wizard in a browser: a bridge without any configuration, a real service, the first order."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.fresh_machine import Fresh, fresh_machine, practice_service
from tests.support.world import SECRET
from tillbridge.config import load

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(tmp_path: Path) -> AsyncIterator[Fresh]:
    async with practice_service() as service, fresh_machine(tmp_path, service) as made:
        yield made


async def step(page: Page, name: str, state: str) -> None:
    await expect(page.locator(f"#state-{name}")).to_have_class(f"step-state {state}")


async def answer_the_first_steps(page: Page, fresh: Fresh, *, live: bool) -> None:
    """Take the steps up to the choice of the store."""
    await page.goto(fresh.page + "/")
    await expect(page).to_have_url(fresh.page + "/setup")
    await step(page, "service", "open")

    await page.get_by_label("The service's address").fill(f"{fresh.page}/v2")
    await page.get_by_role("button", name="Test the service").click()
    await expect(page.locator(".flash")).to_contain_text("Something that is not the ordering")
    await page.get_by_label("The service's address").fill(f"{fresh.service}/v2")
    await page.get_by_role("button", name="Test the service").click()
    await step(page, "service", "done")

    await page.get_by_label("Client id").fill("app_123")
    await page.get_by_label("Client secret").fill("not-the-right-one")
    await page.get_by_role("button", name="Test the app").click()
    await expect(page.locator(".flash")).to_contain_text("does not accept this app's client id")
    await page.get_by_label("Client id").fill("app_123")
    await page.get_by_label("Client secret").fill(SECRET)
    await page.get_by_role("button", name="Test the app").click()
    await expect(page.locator(".flash")).to_contain_text("The service knows this app.")
    assert SECRET not in await page.content()

    await page.get_by_label("The merchant's e-mail").fill("owner@example.net")
    await page.get_by_role("button", name="Ask the merchant").click()
    link = page.get_by_role("link", name="Open the ordering service's page")
    merchant = await page.context.new_page()
    await merchant.goto(str(await link.get_attribute("href")))
    await merchant.get_by_role("button", name="Allow", exact=True).click()
    await expect(merchant.locator("body")).to_contain_text("Thank you!")
    await merchant.close()
    if live:
        await step(page, "sign_in", "done")  # without anybody touching the page
    await page.goto(fresh.page + "/setup")
    await step(page, "sign_in", "done")


async def answer_the_rest(page: Page, fresh: Fresh) -> None:
    """Take the steps up to the public address."""
    await page.get_by_label("Your own id of the location").fill("loc-1")
    await page.get_by_label("Currency").fill("usd")
    await page.get_by_role("button", name="This is the store").click()
    await step(page, "store", "done")

    await page.locator("#till-menu").fill("export/nothing.csv")
    await page.get_by_role("button", name="Look what folder reads").click()
    await expect(page.locator(".flash.bad")).to_be_visible()
    assert await page.locator("#till-menu").input_value() == "export/nothing.csv"
    await page.locator("#till-menu").fill("export/menu.csv")
    await page.get_by_role("button", name="Look what folder reads").click()
    await step(page, "adapter", "done")
    await expect(page.locator("#preview")).to_be_visible()  # without another click
    await expect(page.locator("#preview")).to_contain_text("Dish 3")
    await expect(page.locator("#preview")).to_contain_text("3.50")

    await page.get_by_label("The address under which").fill("http://127.0.0.1:1")
    await page.get_by_label("Where the receiver listens").fill(f"127.0.0.1:{fresh.receiver_port}")
    await page.get_by_role("button", name="Test the address").click()
    await expect(page.locator(".flash.bad")).to_contain_text("refuses connections")
    listens = page.get_by_label("Where the receiver listens")
    assert await listens.input_value() == f"127.0.0.1:{fresh.receiver_port}"
    await page.get_by_label("The address under which").fill(
        f"http://127.0.0.1:{fresh.receiver_port}"
    )
    await page.get_by_role("button", name="Test the address").click()
    await step(page, "address", "done")


async def write_and_order(page: Page, fresh: Fresh) -> None:
    """See the difference, write it, and see the first order come."""
    written = page.locator("#written")
    await expect(written).to_contain_text('+public_url = "http://127.0.0.1:')
    await expect(written).to_contain_text("+client_secret = {vault = true}")
    await page.get_by_role("button", name="Write it and start").click()
    await fresh.bridge.logged("setup.connected", ok=True)
    await fresh.bridge.logged("menu.held")
    await page.goto(fresh.page + "/menu")
    await expect(page.locator("#menu-1")).to_contain_text("12 items, 0 sizes, 2 categories")
    await page.get_by_role("link", name="Review the change").click()
    await page.get_by_role("button", name="Release it").click()
    await expect(page.locator(".flash")).to_contain_text("is released: it adds 12 items")
    await fresh.bridge.logged("menu.pushed")
    await page.goto(fresh.page + "/setup")
    await step(page, "store", "done")
    await step(page, "adapter", "done")
    await step(page, "order", "open")
    await page.get_by_role("button", name="Place a practice order").click()
    await expect(page.locator(".flash")).to_contain_text("The order is placed")
    await expect(page.locator("#arrived")).to_contain_text("written into the till")
    await step(page, "order", "done")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scripts", [True, False], ids=["", "without scripts"])
async def test_from_nothing_to_the_first_order_in_the_till(
    browser: Browser, fresh: Fresh, scripts: bool
) -> None:
    context = await browser.new_context(
        java_script_enabled=scripts, viewport={"width": 360, "height": 740}
    )
    page = await context.new_page()
    await answer_the_first_steps(page, fresh, live=scripts)
    await answer_the_rest(page, fresh)
    if scripts:
        await write_and_order(page, fresh)
    else:
        await page.get_by_role("button", name="Write it and start").click()
        await fresh.bridge.logged("setup.connected", ok=True)
        return

    assert len(fresh.till.tickets()) == 1
    text = fresh.bridge.config.read_text("utf-8")
    assert "# Written by hand before anything was set up." in text
    assert tomllib.loads(text)["stores"]["main"]["store_id"] == "st_main"
    assert load(fresh.bridge.config).settings.stores["main"].currency == "USD"
    (copy,) = fresh.folder.glob("bridge.toml.*.bak")
    assert copy.read_text("utf-8").startswith("# Written by hand")
    for path in fresh.folder.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    code, out, err = await fresh.bridge.run("config", "check")
    assert code == 0, out + err
    code, out, err = await fresh.bridge.run("audit", "list")
    assert "setup.write" in out
    await context.close()
