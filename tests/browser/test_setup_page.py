"""The wizard in a browser: a bridge without any configuration, a real service, the first order."""

import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.fresh_machine import Fresh, fresh_machine, practice_service
from tests.support.world import SECRET
from tillbridge.config.loading import load

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(tmp_path: Path) -> AsyncIterator[Fresh]:
    async with practice_service() as service, fresh_machine(tmp_path, service) as made:
        yield made


async def step(page: Page, name: str, state: str) -> None:
    await expect(page.locator(f"#state-{name}")).to_have_class(f"step-state {state}")


async def sign_in(page: Page, fresh: Fresh) -> None:
    """Take the steps up to the choice of the store; the page moves on by itself."""
    await page.goto(fresh.page + "/")
    await expect(page).to_have_url(fresh.page + "/setup")
    await step(page, "service", "open")
    await expect(page.locator("#state-service")).to_contain_text("1 of 7")

    address = page.get_by_label("Address of the ordering service")
    await address.fill(f"{fresh.page}/v2")
    await page.get_by_role("button", name="Test the address").click()
    await expect(page.locator("#wrong-base_url")).to_contain_text(
        "Something other than the ordering service answers"
    )
    await expect(address).to_have_value(f"{fresh.page}/v2")
    await address.fill(f"{fresh.service}/v2")
    await page.get_by_role("button", name="Test the address").click()
    await step(page, "service", "done")

    await page.get_by_label("Client id").fill("app_123")
    await page.get_by_label("Client secret").fill("not-the-right-one")
    await page.get_by_role("button", name="Test id and secret").click()
    await expect(page.locator("#wrong-client_secret")).to_contain_text("does not accept this app")
    await expect(page.get_by_label("Client id")).to_have_value("app_123")
    await page.get_by_label("Client secret").fill(SECRET)
    await page.get_by_role("button", name="Test id and secret").click()
    await expect(page.locator(".flash")).to_contain_text("The ordering service knows this app.")
    assert SECRET not in await page.content()

    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name="Open the sign-in page").click()
    merchant = await opened.value
    await expect(merchant.get_by_label("Your e-mail")).to_have_value("owner@example.net")
    await merchant.get_by_role("button", name="Allow", exact=True).click()
    await expect(merchant.locator("h1")).to_have_text("Connected")
    await merchant.get_by_role("link", name="Continue set-up").click()
    await step(merchant, "store", "open")
    await merchant.close()
    await step(page, "store", "open")  # without anybody touching the page
    await expect(page.get_by_label("Currency")).to_have_value("USD")  # the practice service's
    await page.get_by_label("Currency").fill("dollars")
    await page.get_by_role("button", name="This is my store").click()
    await expect(page.locator("#wrong-currency")).to_contain_text("Did you mean")
    await page.get_by_label("Currency").fill("usd")
    await page.get_by_role("button", name="This is my store").click()
    await step(page, "store", "done")
    await expect(page.get_by_text("in USD.")).to_have_count(1)  # what was found is said once


async def name_the_columns(page: Page, fresh: Fresh) -> None:
    """Read an export whose columns have other names."""
    (fresh.folder / "items.csv").write_text("PLU;Dish;Our price\n1;Soup;4,50\n", "utf-8")
    menu = page.locator("#till-menu")
    await menu.fill("nothing.csv")
    await page.get_by_role("button", name="Read the menu now").click()
    await expect(page.locator("#wrong-menu")).to_be_visible()
    await expect(menu).to_have_value("nothing.csv")
    await menu.fill("items.csv")
    await page.get_by_role("button", name="Read the menu now").click()
    await expect(page.locator("#wrong-columns")).to_contain_text("Choose below")
    await expect(page.get_by_label("Number or id")).to_have_value("PLU")
    await expect(page.locator("#column-price")).to_have_value("Our price")
    await page.get_by_role("button", name="Read the menu now").click()
    await step(page, "adapter", "done")
    await expect(page.locator("#state-adapter")).to_contain_text("Found 1 item in the till's menu")
    await expect(page.locator("#preview")).to_contain_text("Soup")


async def reach(page: Page, fresh: Fresh) -> None:
    """Test a public address that leads nowhere, then one that leads here."""
    await page.locator("#step-address summary").click()
    await page.get_by_label("Where the bridge listens").fill(f"127.0.0.1:{fresh.receiver_port}")
    public = page.get_by_label("Address at which the internet")
    await public.fill("http://127.0.0.1:1")
    await page.get_by_role("button", name="Test this address").click()
    await expect(page.locator("#wrong-public_url")).to_contain_text("refuses connections")
    await expect(public).to_have_value("http://127.0.0.1:1")
    await public.fill(f"http://127.0.0.1:{fresh.receiver_port}")
    await page.get_by_role("button", name="Test this address").click()
    await step(page, "address", "done")
    await step(page, "save", "open")


async def save_and_order(page: Page) -> None:
    """See the difference, save it, publish the menu, and see the first order come."""
    difference = page.locator("#difference")
    await expect(difference).to_contain_text('+public_url = "http://127.0.0.1:')
    await expect(difference).to_contain_text("+client_secret = {vault = true}")
    await page.get_by_role("button", name="Save and restart").click()
    await expect(page.locator("#setup-state")).to_contain_text("Restarting")
    await page.get_by_role("link", name="Review and publish the menu").click()
    await expect(page.get_by_role("link", name="Go back")).to_be_visible()
    await expect(page.locator("main .points")).to_contain_text("$")  # each dish with its price
    await page.locator("main form button").click()
    await expect(page).to_have_url(re.compile("/setup"))
    await step(page, "order", "open")
    for name in ("service", "sign_in", "store", "adapter", "address", "save"):
        await step(page, name, "done")
    await page.get_by_role("button", name="Place a test order").click()
    await expect(page.locator("#arrived")).to_contain_text("Accepted")
    await expect(page.locator("#arrived")).not_to_contain_text(".json")
    await step(page, "order", "done")
    await expect(page.locator("main")).to_contain_text("What next")
    again = page.locator("#all-set").get_by_role("button", name="Place a test order")
    await expect(again).to_be_visible()
    await page.get_by_role("link", name="Open the overview").click()
    await expect(page.locator(".verdict")).to_be_visible()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scripts", [True, False], ids=["", "without scripts"])
async def test_from_nothing_to_the_first_order_in_the_till(
    browser: Browser, fresh: Fresh, scripts: bool
) -> None:
    context = await browser.new_context(
        java_script_enabled=scripts, viewport={"width": 360, "height": 740}
    )
    page = await context.new_page()
    await sign_in(page, fresh)
    if scripts:
        await page.get_by_role("button", name="Use a sample till").click()
        await step(page, "adapter", "done")
    else:
        await name_the_columns(page, fresh)
    await reach(page, fresh)
    await save_and_order(page)
    if not scripts:
        assert len(list((fresh.folder / "orders").glob("*.json"))) == 1
        return

    assert len(list((fresh.folder / "sample-till/orders").glob("*.json"))) == 1
    await page.locator("#practice").get_by_role("button", name="Place a test order").click()
    await expect(page).to_have_url(re.compile("/orders$"))
    await expect(page.locator("#orders tbody tr")).to_have_count(2)
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
    code, out, err = await fresh.bridge.run("status")
    assert "Main Street (main)" in out
    await page.goto(fresh.page + "/orders")
    await page.get_by_role("link", name="1001").click()
    await expect(page.get_by_role("main")).to_contain_text("Main Street")
    await context.close()
