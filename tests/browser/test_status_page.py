"""The page in a real browser: phone and desk, light and dark, live, by keyboard, scripts off."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.support.page_house import PASSWORD, PageHouse, page_house, users
from tests.support.page_sample import busy
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.status.doorkeeper import AccessRules

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
LONG = "W" * 120  # a name without a place to break
PATHS = [
    "/",
    "/tables",
    "/store",
    "/86",
    "/menu",
    "/stores/main/menu/items",
    "/stores/main/menu/difference",
    "/stores/main/menu/history",
    "/stores/main/menu/dismiss",
    "/orders",
    "/orders/ord_1",
    "/orders/ord_1/payload",
    "/orders/ord_1/cancel",
    "/orders/ord_1/done",
    "/stores/main/pause",
    "/stores/main/menu/approve",
    "/login",
    "/nowhere",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="the system has no Chromium"),
]


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--no-proxy-server"]
        )
        yield opened
        await opened.close()


@pytest.fixture
async def house() -> AsyncIterator[PageHouse]:
    async with page_house() as made:
        busy(made.control, LONG)
        yield made


async def change(house: PageHouse) -> None:
    """Tell the page's streams that something has changed, as the ledger does."""
    async with asyncio.timeout(10):
        while not house.changed:
            await asyncio.sleep(0.02)
    for tell in house.changed:
        tell()


async def heard(page: Page) -> list[str]:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_fits_and_reads_well(
    browser: Browser, house: PageHouse, path: str, width: int, scheme: str
) -> None:
    page = await browser.new_page(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    complaints = await heard(page)
    await page.goto(house.url + path)
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.get_by_role("heading", level=1).count() == 1
    red, green, blue = await page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).slice(0, 3)"
    )
    assert (red + green + blue < 3 * 128) == (scheme == "dark")
    assert [each for each in complaints if "404" not in each] == []
    small = await page.evaluate(
        "[...document.querySelectorAll('main a.button, main button, nav a')]"
        ".filter((each) => each.getBoundingClientRect().height < 43.9)"
        ".map((each) => each.outerHTML)"
    )
    assert small == [], "too small for a finger"
    await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_stands_out_from_what_is_behind_it(
    browser: Browser, house: PageHouse, scheme: str
) -> None:
    """WCAG AA: 4.5 to 1 for every text that is shown."""
    page = await browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    for path in PATHS:
        await page.goto(house.url + path)
        assert await page.evaluate(FAINT) == []
    await page.close()


async def test_a_page_is_light_and_loads_nothing_from_elsewhere(
    browser: Browser, house: PageHouse
) -> None:
    page = await browser.new_page()
    sizes: dict[str, int] = {}

    async def count(response: object) -> None:
        sizes[response.url] = len(await response.body())  # type: ignore[attr-defined]  # playwright's

    page.on("response", count)
    await page.goto(house.url, wait_until="domcontentloaded")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.wait_for_timeout(200)
    assert all(url.startswith(house.url) for url in sizes)
    assert sum(sizes.values()) < 150_000
    await page.close()


async def test_a_problem_appears_and_goes_by_itself(browser: Browser, house: PageHouse) -> None:
    before = house.control.facts
    house.control.facts = replace(before, problems=())
    page = await browser.new_page()
    await page.goto(house.url)
    await expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
    offline = OpenProblem("pos.offline", "main", "", house.control.now_ms, {"detail": "unplugged"})
    house.control.facts = replace(before, problems=(offline,))
    await change(house)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Needs help now")
    await expect(page.locator("#problems")).to_contain_text("The till cannot be reached: unplugged")
    await expect(page).to_have_title("Down · tillbridge")
    house.control.facts = replace(before, problems=())
    await change(house)
    await expect(page.locator("#problems")).to_be_empty()
    await page.close()


async def test_what_is_typed_or_focused_outlives_a_refresh(
    browser: Browser, house: PageHouse
) -> None:
    page = await browser.new_page()
    await page.goto(house.url)
    button = page.get_by_role("link", name="Look at it and release it")
    await button.focus()
    house.control.facts = replace(
        house.control.facts, version="9.9.9", problems=house.control.facts.problems[1:]
    )
    await change(house)
    await expect(page.locator("#problems li")).to_have_count(3)
    await expect(button).to_be_focused()
    await page.close()


async def test_a_bridge_that_is_gone_is_told(browser: Browser, house: PageHouse) -> None:
    page = await browser.new_page()
    await page.goto(house.url)
    await change(house)
    await house.listener.close()
    await expect(page.locator("#not-live")).to_contain_text("Not live since", timeout=15_000)
    await page.close()


async def test_a_hidden_page_keeps_no_stream(browser: Browser, house: PageHouse) -> None:
    page = await browser.new_page()
    await page.goto(house.url)
    await change(house)
    hub = house.listener._hub
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
    browser: Browser, house: PageHouse
) -> None:
    page = await browser.new_page()
    await page.add_init_script(
        "delete window.EventSource;"
        "const slow = window.setInterval;"
        "window.setInterval = (work, ms) => slow(work, ms > 9000 ? 100 : ms);"
    )
    await page.goto(house.url)
    house.control.facts = replace(house.control.facts, problems=())
    await expect(page.get_by_role("heading", level=1)).to_have_text("All is well")
    await page.close()


async def test_everything_is_read_and_done_with_scripts_off(
    browser: Browser, house: PageHouse
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(house.url)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Needs help now")
    await expect(page.get_by_role("img", name="Orders by the hour")).to_be_visible()
    await page.get_by_role("link", name="Look at it and release it").click()
    await page.get_by_role("button", name="Release it").click()
    await expect(page.locator(".flash")).to_contain_text("Did approve.")
    assert house.control.asked[-1] == ("approve", "main")
    await page.close()


async def test_an_action_is_done_by_keyboard_alone(browser: Browser, house: PageHouse) -> None:
    page = await browser.new_page()
    await page.goto(house.url)
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("To the content")).to_be_focused()
    reached = ""
    for _ in range(30):
        await page.keyboard.press("Tab")
        reached = await page.evaluate("document.activeElement.textContent.trim()")
        ring = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid", reached
        if reached == "Look at it and release it":
            break
    assert reached == "Look at it and release it"
    await page.keyboard.press("Enter")
    release = page.get_by_role("button", name="Release it")
    await expect(release).to_be_visible()
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await release.evaluate("each => each === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page.locator(".flash")).to_contain_text("Did approve.")
    assert "said=" not in page.url
    await page.reload()
    await expect(page.locator(".flash")).to_have_count(0)
    await page.close()


async def test_signing_in_and_out_in_a_browser(browser: Browser) -> None:
    async with page_house(AccessRules(users=users())) as house:
        page = await browser.new_page()
        await page.goto(house.url + "/stores/main/connect")
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
        await page.goto(house.url)
        await expect(page.get_by_label("Password")).to_be_visible()
        await page.close()


async def test_another_sites_form_does_nothing(browser: Browser, house: PageHouse) -> None:
    page = await browser.new_page()
    await page.route(
        "http://evil.example/",
        lambda route: route.fulfill(
            content_type="text/html",
            body=f"<form method=post action='{house.url}/orders/x/retry'>"
            "<button>Win</button></form>",
        ),
    )
    await page.goto("http://evil.example/")
    await page.get_by_role("button").click()
    await expect(page.locator("main")).to_contain_text("nothing was done")
    assert house.control.asked == []
    await page.close()


# Every text whose colour is too near to what is behind it.
FAINT = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return {r, g, b, a};
  };
  const light = ({r, g, b}) => [r, g, b].map((c) => {
    c /= 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.a > 0.99) return found;
    }
    return {r: 255, g: 255, b: 255, a: 1};
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  while (walker.nextNode()) {
    const each = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !each.offsetParent || each.closest('svg')) continue;
    const a = light(parse(getComputedStyle(each).color)), b = light(behind(each));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(each.outerHTML.slice(0, 120) + ' ' + ratio.toFixed(2));
  }
  return faint;
}"""
