"""The page in a real browser: live, by keyboard, with scripts off, and safe.

What holds for each page is in test_every_page.py.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tests.support.page_sample import busy, crowded
from tests.support.world import make_world
from tillbridge.core.problems import OpenProblem
from tillbridge.web.authenticator import AccessRules

LONG = "W" * 120  # a name without a place to break
pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control, LONG)
        yield made


async def change(harness: PageHarness) -> None:
    """Tell the page's streams that something has changed, as the ledger does."""
    async with asyncio.timeout(10):
        while not harness.changed:
            await asyncio.sleep(0.02)
    for tell in harness.changed:
        tell()


async def test_a_problem_appears_and_goes_by_itself(browser: Browser, harness: PageHarness) -> None:
    before = harness.control.facts
    harness.control.facts = replace(before, problems=())
    page = await browser.new_page()
    await page.goto(harness.url)
    await expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
    offline = OpenProblem(
        "pos.offline", "main", "", harness.control.now_ms, {"detail": "unplugged"}
    )
    harness.control.facts = replace(before, problems=(offline,))
    await change(harness)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Needs help now")
    await expect(page.locator("#problems")).to_contain_text(
        "The till is not taking orders: unplugged"
    )
    await expect(page).to_have_title("(1) Needs help · tillbridge")
    await expect(page.locator("#icon")).to_have_attribute("href", re.compile("icon-down.svg"))
    await expect(page.locator("#pages .count")).to_contain_text("1")
    harness.control.facts = replace(before, problems=())
    await change(harness)
    await expect(page.locator("#problems")).to_be_empty()
    await page.close()


async def test_a_broken_export_is_told_while_one_looks_and_so_is_its_end(
    browser: Browser, tmp_path: Path
) -> None:
    async with make_world(tmp_path) as world:
        await world.bridge.start()
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()
        page = await browser.new_page()
        loads: list[str] = []
        page.on("load", lambda loaded: loads.append(loaded.url))
        await page.goto(f"http://127.0.0.1:{world.page_port}/")
        await expect(page.locator("#problems")).to_be_empty()
        (world.till.export / "menu.csv").write_text("no,header,of,ours\n1,2,3,4\n")
        problem = page.locator("#problems code")
        await expect(problem).to_have_text("export.unreadable")
        await expect(page.get_by_role("heading", level=1)).not_to_have_text("All is well")
        world.till.write_menu()
        await expect(page.locator("#problems")).to_be_empty(timeout=20_000)
        await expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
        assert len(loads) == 1, "the page was never reloaded"
        await page.close()


async def test_what_is_typed_or_focused_outlives_a_refresh(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url)
    button = page.get_by_role("link", name="Review change")
    await button.focus()
    harness.control.facts = replace(
        harness.control.facts, version="9.9.9", problems=harness.control.facts.problems[1:]
    )
    await change(harness)
    await expect(page.locator("#problems li")).to_have_count(3)
    await expect(button).to_be_focused()
    await page.close()


async def test_what_is_opened_stays_open_when_the_page_refreshes(
    browser: Browser, harness: PageHarness
) -> None:
    crowded(harness.control, "Pizza")
    page = await browser.new_page()
    await page.goto(harness.url + "/menu?item=p1")  # dishes with their details
    shut, opened = (page.locator(".ids").nth(place) for place in (0, 5))
    await shut.locator("summary").click()
    await shut.locator("summary").click()
    await opened.locator("summary").click()
    harness.control.menu.page["groups"][0]["items"][0]["name"] = "Calzone"
    await change(harness)
    await expect(page.locator("#dishes")).to_contain_text("Calzone")
    assert await shut.get_attribute("open") is None
    assert await opened.get_attribute("open") == ""
    await expect(opened.locator("summary")).to_be_focused()
    await page.close()


async def test_a_bridge_that_is_gone_is_told(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url)
    await change(harness)
    await harness.listener.close()
    await expect(page.locator("#not-live")).to_contain_text("The bridge has not answered since")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text(
        re.compile(r"The bridge has not answered since \d\d:\d\d:\d\d")
    )
    await expect(page).to_have_title(re.compile(r"No answer since \d\d:\d\d:\d\d"))
    await expect(page.locator("#icon")).to_have_attribute("href", re.compile("icon-dead.svg"))
    grey = "element => getComputedStyle(element).filter"
    assert "grayscale" in await page.locator("#chart").evaluate(grey), "what was known is no more"
    assert await page.locator("#verdict").evaluate(grey) == "none"
    await page.close()


async def test_a_bridge_that_is_back_has_its_colours_again(
    browser: Browser, harness: PageHarness
) -> None:
    harness.control.facts = replace(harness.control.facts, problems=())
    page = await browser.new_page()
    await page.goto(harness.url)
    await page.route("**/*", lambda route: route.abort())
    await change(harness)
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text(re.compile("has not answered"))
    await page.unroute("**/*")
    await change(harness)
    await expect(heading).to_have_text("All is well")
    await expect(page).to_have_title("All is well · tillbridge")
    await expect(page.locator("#icon")).to_have_attribute("href", re.compile("/icon.svg"))
    await expect(page.locator("body")).not_to_have_class(re.compile("stale"))
    await page.close()


async def test_a_hidden_page_keeps_no_stream(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url)
    await change(harness)
    hub = harness.listener._hub
    assert hub is not None
    await page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    async with asyncio.timeout(10):
        while hub.streams:
            hub.change()
            await asyncio.sleep(0.05)
    await page.close()


async def test_a_browser_without_events_refreshes_by_itself(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.add_init_script(
        "delete window.EventSource;"
        "const slow = window.setInterval;"
        "window.setInterval = (work, ms) => slow(work, ms > 9000 ? 100 : ms);"
    )
    await page.goto(harness.url)
    harness.control.facts = replace(harness.control.facts, problems=())
    await expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
    await page.close()


async def test_everything_is_read_and_done_with_scripts_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(harness.url)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Needs help now")
    await expect(page.get_by_role("list", name="Orders by hour")).to_be_visible()
    await page.get_by_role("link", name="Review change").click()
    await page.get_by_role("link", name="Publish this change").click()
    await page.get_by_role("button", name="Publish this change").click()
    await expect(page.locator(".flash")).to_contain_text("Did approve.")
    assert harness.control.asked[-1] == ("approve", "main")
    await page.close()


async def test_an_action_is_done_by_keyboard_alone(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url)
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("To the content")).to_be_focused()
    reached = ""
    for _ in range(30):
        await page.keyboard.press("Tab")
        reached = await page.evaluate("document.activeElement.textContent.trim()")
        ring = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid", reached
        if reached == "Keep the storefront as it is":
            break
    assert reached == "Keep the storefront as it is"
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="Go back").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name=reached)).to_be_focused()
    await page.keyboard.press("Enter")
    release = page.get_by_role("button", name=reached)
    await expect(release).to_be_visible()
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await release.evaluate("each => each === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page.locator(".flash")).to_contain_text("Did dismiss.")
    await expect(page.locator(".flash")).to_be_focused()
    assert "said=" not in page.url
    await page.reload()
    await expect(page.locator(".flash")).to_have_count(0)
    await page.close()


async def test_signing_in_and_out_in_a_browser(browser: Browser) -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        page = await browser.new_page()
        await page.goto(harness.url + "/stores/main/connect")
        await page.get_by_label("Name").fill("tea")
        await page.get_by_label("Password").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("is wrong")
        await expect(page.get_by_label("Name")).to_have_value("tea")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Connect main")).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Password")).to_be_visible()
        await page.goto(harness.url)
        await expect(page.get_by_label("Password")).to_be_visible()
        await page.close()


async def test_another_sites_form_does_nothing(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.route(
        "http://evil.example/",
        lambda route: route.fulfill(
            content_type="text/html",
            body=f"<form method=post action='{harness.url}/orders/x/retry'>"
            "<button>Win</button></form>",
        ),
    )
    await page.goto("http://evil.example/")
    await page.get_by_role("button").click()
    await expect(page.locator("main")).to_contain_text("nothing was done")
    assert harness.control.asked == []
    await page.close()
