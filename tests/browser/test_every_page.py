"""Every page of the registry in a real browser: for everybody, on any screen, with any text."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

from tests.support.every_page import addresses
from tests.support.hostile import CORPUS, PlantedInTurn
from tests.support.page_house import PageHouse, page_house
from tests.support.page_sample import busy, crowded
from tillbridge.web.ports import CallbackAnswer
from tillbridge.web.site.book import Page as BookPage

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

Scheme = Literal["light", "dark"]
SAMPLES: Mapping[str, Callable[[Any], None]] = {
    "a bad evening": lambda control: busy(control, "Pizza"),
    "more than fits": lambda control: crowded(control, "Pizza"),
    "nothing yet": lambda control: None,
}
BUDGET = 150_000
NARROW, WIDE = 360, 1280


class Merchant:
    """Answers the page that a merchant sees after consent."""

    async def take(self, query: object) -> CallbackAnswer:
        return CallbackAnswer(ok=False, text="The merchant declined.", fix="Connect again.")


@asynccontextmanager
async def furnished(sample: str) -> AsyncIterator[PageHouse]:
    async with page_house() as house:
        house.listener._merchant = Merchant()  # type: ignore[assignment]  # does what a page needs
        SAMPLES[sample](house.control)
        yield house


@pytest.fixture
async def house() -> AsyncIterator[PageHouse]:
    async with furnished("a bad evening") as made:
        yield made


async def faults(
    page: Page, house: PageHouse, look: Callable[[str], Awaitable[object]]
) -> dict[str, object]:
    """What a look finds at each page that has something to find."""
    found = {}
    for path in addresses():
        answer = await page.goto(house.url + path)
        assert answer is not None
        assert answer.status in {200, 400, 404}, path
        assert answer.status == 200 or path.startswith(("/nowhere", "/oauth")), path
        if told := await look(path):
            found[path] = told
    return found


def test_a_page_that_nobody_could_look_at_is_told() -> None:
    async def fill(visit: object) -> dict:
        return {}

    with pytest.raises(LookupError, match=r"/shelves/\{shelf\}"):
        addresses([BookPage("/shelves/{shelf}", "Shelf", "shelf.html", fill)])


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
async def test_axe_finds_nothing_that_shuts_anybody_out(
    browser: Browser, sample: str, scheme: Scheme, width: int
) -> None:
    async with furnished(sample) as house:
        page = await browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)

        async def look(path: str) -> list[str]:
            told = await Axe().run(page)
            return [
                f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
                for each in told.response["violations"]
                for node in each["nodes"][:3]
            ]

        found = await faults(page, house, look)
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
async def test_every_page_fits_its_screen_and_a_finger(
    browser: Browser, scheme: Scheme, width: int
) -> None:
    async with furnished("a bad evening") as house:
        busy(house.control, "W" * 120)  # a name without a place to break
        page = await browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))

        async def look(path: str) -> list[str]:
            told: list[str] = await page.evaluate(MISFITS, scheme == "dark")
            told += [each for each in complaints if "400" not in each and "404" not in each]
            complaints.clear()
            return told

        found = await faults(page, house, look)
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


async def test_no_name_of_an_item_or_a_guest_makes_a_phone_scroll_sideways(
    browser: Browser, house: PageHouse
) -> None:
    busy(house.control)
    page = await browser.new_page(viewport={"width": NARROW, "height": 800})

    async def look(path: str) -> list[str]:
        found = []
        planted = PlantedInTurn(house.control)
        house.listener._control = planted
        house.listener._opened_site = None
        before = -1
        while before < planted.used < len(CORPUS):
            before = planted.used
            await page.goto(house.url + path)
            found += await page.evaluate(WIDER)
        return found

    found = await faults(page, house, look)
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


@pytest.mark.parametrize("sample", SAMPLES)
async def test_every_page_is_light_and_loads_nothing_from_elsewhere(
    browser: Browser, sample: str
) -> None:
    async with furnished(sample) as house:
        page = await browser.new_page()
        network = await page.context.new_cdp_session(page)
        await network.send("Network.enable")
        # A browser that has never been here.
        await network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        arrived: list[float] = []
        network.on("Network.dataReceived", lambda told: arrived.append(told["dataLength"]))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))

        async def look(path: str) -> list[str]:
            await page.goto("about:blank")  # what the page before still does ends here
            arrived.clear()
            asked.clear()
            await page.goto(house.url + path, wait_until="load")
            told = [url for url in asked if not url.startswith(house.url)]
            if sum(arrived) > BUDGET:
                told.append(f"{sum(arrived):,.0f} bytes")
            return told

        assert await faults(await browser.new_page(), house, look) == {}


async def test_with_scripts_off_every_page_tells_the_same(
    browser: Browser, house: PageHouse
) -> None:
    plain = await browser.new_page(java_script_enabled=False)
    page = await browser.new_page()

    async def look(path: str) -> set[str]:
        await plain.goto(house.url + path)
        with_scripts = set((await page.inner_text("main")).splitlines())
        return with_scripts - set((await plain.inner_text("main")).splitlines())

    found = await faults(page, house, look)
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


async def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(
    browser: Browser, house: PageHouse
) -> None:
    page = await browser.new_page(viewport={"width": WIDE, "height": 800})

    async def look(path: str) -> list[str]:
        told = []
        count: int = await page.evaluate(BEGIN_AT_THE_TOP)
        for expected in range(count):
            told += await page.evaluate(WHERE_THE_KEYBOARD_IS, expected)
            stops = 1
            if await page.evaluate("document.activeElement.type") == "datetime-local":
                # Chromium stops at day, month, year, hour, minute, and what opens the calendar.
                stops = 7 if await page.evaluate(TWELVE_HOURS) else 6
            for _stop in range(stops):
                await page.keyboard.press("Tab")
        if await page.evaluate(f"{WHAT_ACTS}().indexOf(document.activeElement) > 0"):
            told.append("the keyboard never leaves the page")
        return told

    found = await faults(page, house, look)
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


TWELVE_HOURS = "Intl.DateTimeFormat(undefined, {hour: 'numeric'}).resolvedOptions().hour12"

MISFITS = """(dark) => {
  const told = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) told.push(`wide: ${root.scrollWidth}`);
  if (document.querySelectorAll('h1').length !== 1) told.push('not one heading');
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  if ((r + g + b < 3 * 128) !== dark) told.push('the other colours');
  for (const each of document.querySelectorAll(
      'main a.button, main a.target, main button, main summary, main select, main input, nav a')) {
    const {width, height} = each.getBoundingClientRect();
    const tiny = /checkbox|radio/.test(each.type) ? 24 : 44;
    if (!each.checkVisibility() || each.type === 'hidden') continue;
    if (height < tiny - 0.1 || width < tiny - 0.1)
      told.push(`small for a finger, ${width} x ${height}: ${each.outerHTML.slice(0, 200)}`);
  }
  return told;
}"""

# What reaches beyond the screen, with its text.
WIDER = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  return [...document.querySelectorAll('body *')]
    .filter((each) => each.getBoundingClientRect().right > root.clientWidth + 0.5)
    .slice(-1).map((each) => escape(each.outerHTML.slice(0, 300)));
}"""

# What the keyboard should reach, in the order in which it is read.
WHAT_ACTS = """(() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary')]
  .filter((each) => each.checkVisibility() && !each.disabled))"""

BEGIN_AT_THE_TOP = f"""() => {{
  const all = {WHAT_ACTS}();
  if (all.length) all[0].focus();
  return all.length;
}}"""

WHERE_THE_KEYBOARD_IS = f"""(expected) => {{
  const at = document.activeElement, told = [];
  const name = at.outerHTML.slice(0, 150);
  if (at !== {WHAT_ACTS}()[expected]) told.push(`not the next: ${{name}}`);
  const style = getComputedStyle(at);
  if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2)
    told.push(`no ring: ${{name}}`);
  const box = at.getBoundingClientRect();
  if (box.bottom < 0 || box.top > innerHeight) told.push(`out of sight: ${{name}}`);
  return told;
}}"""
