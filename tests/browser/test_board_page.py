"""The 86 board: from a tap in the kitchen to the storefront, and back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.test_table_sheet_page import scanned
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


async def test_a_tap_marks_a_dish_and_undo_takes_it_back(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))
    await page.goto(harness.url + "/86")
    await page.get_by_role("button", name="Pizza Funghi").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p1", "opening")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#said")).to_contain_text("Did restore.")
    assert list(harness.control.asked[-1]) == ["restore", "main", "p1"]
    assert len(loads) == 1, "no page is loaded for a tap"
    await page.close()


@pytest.mark.parametrize("size", [(1024, 768), (1280, 800), (1920, 1080)])
async def test_the_tiles_fill_a_tablet_and_are_read_from_two_metres(
    browser: Browser, harness: PageHarness, size: tuple[int, int]
) -> None:
    """Capitals of 20 pixels are 4 mm on a tablet: what eyes need at two metres."""
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]})
    await page.goto(harness.url + "/86")
    seen = await page.evaluate(
        """() => {
            const right = element => element.getBoundingClientRect().right;
            const end = right(document.getElementById('board'));
            const rows = [...document.querySelectorAll('.course .grid')];
            return {
                gaps: rows.map(grid => end - Math.max(...[...grid.children].map(right))),
                names: [...document.querySelectorAll('.tile b')].map(
                    name => getComputedStyle(name).fontSize
                ),
            };
        }"""
    )
    assert max(seen["gaps"]) < 8
    assert set(seen["names"]) == {"28px"}
    await page.close()


async def test_the_end_that_is_chosen_counts_and_a_size_is_sold_out_alone(
    browser: Browser, harness: PageHarness
) -> None:
    sizes = [
        {"external_id": "p2-s", "name": "small", "state": "on", "until": None},
        {"external_id": "p2-l", "name": "large", "state": "off", "until": None},
    ]
    harness.control.items.menu[2]["sizes"] = sizes
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    usual = page.get_by_role("link", name="Until tomorrow")
    await expect(usual).to_have_attribute("aria-current", "true")
    await page.get_by_role("link", name="For an hour").click()
    group = page.get_by_role("group", name="Sizes of Cola")
    await expect(group.get_by_role("button", name="large")).to_have_attribute(
        "aria-pressed", "true"
    )
    await group.get_by_role("button", name="small").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p2-s", "1h")
    await page.close()


async def test_a_wet_finger_that_taps_twice_marks_once(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    await page.get_by_role("button", name="Soup").dblclick()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert [each[0] for each in harness.control.asked if each[0] in {"86", "restore"}] == ["86"]
    await page.close()


async def test_an_undone_restore_gives_the_dish_its_old_end(
    browser: Browser, harness: PageHarness
) -> None:
    end = harness.control.items.stopped[0]["until"]
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    await page.locator("#off-1").click()
    await expect(page.locator("#said")).to_contain_text("Did restore.")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "x", end)
    await page.close()


async def test_a_dish_stays_under_the_finger_while_the_list_above_it_grows(
    browser: Browser, harness: PageHarness
) -> None:
    base = harness.control.items.menu[0]
    harness.control.items.menu = [
        {**base, "external_id": f"p{number}", "name": f"Dish {number:02}", "sizes": []}
        for number in range(40)
    ]
    sold_out = harness.control.items.stopped[1]
    harness.control.items.stopped = []
    page = await browser.new_page(viewport={"width": 1024, "height": 768})
    await page.goto(harness.url + "/86")
    dish = page.locator(".course").get_by_role("button", name="Dish 30")
    await dish.scroll_into_view_if_needed()
    before = await dish.bounding_box()
    harness.control.items.stopped = [{**sold_out, "external_id": "p30", "name": "Dish 30"}]
    await dish.click()
    await expect(page.locator("#off-title")).to_have_text("Sold out now: 1")
    await expect(dish).to_be_focused()
    after = await dish.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 2
    await page.context.set_offline(True)
    await expect(page.locator(".not-now")).to_be_in_viewport(timeout=15_000)
    await dish.click()
    await expect(page.locator("#unsaved")).to_be_in_viewport()
    await page.close()


async def test_what_is_not_saved_is_said_at_once(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    await page.context.set_offline(True)
    await page.get_by_role("button", name="Soup").click()
    await expect(page.locator("#unsaved")).to_contain_text("Not saved")
    await expect(page.locator("#unsaved")).to_contain_text("Soup")
    await expect(page.locator(".not-now")).to_be_visible()
    await expect(page.locator("#said")).to_be_empty()
    await page.context.set_offline(False)
    await expect(page.locator(".not-now")).to_be_hidden(timeout=15_000)
    await page.get_by_role("button", name="Soup").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    await expect(page.locator("#unsaved")).to_be_hidden()
    await page.close()


async def test_the_board_tells_when_guests_see_no_more_of_a_dish(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    first = harness.control.items.stopped[0]
    first["external_id"] = "p0"
    await page.get_by_role("button", name="Pizza Margherita").click()
    await expect(page.locator("#said .reach")).to_have_text("Guests still see it …")
    first |= {"reached_at": first["since"], "reached_ms": 900}
    await expect(page.locator("#said .reach")).to_have_text(
        "Hidden from guests ✓ (took 0.9 s)", timeout=15_000
    )
    await page.close()


async def test_the_screen_stays_on_unless_somebody_switches_that_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.add_init_script(
        "Object.defineProperty(navigator, 'wakeLock', {value: {request: () => {"
        "  const lock = new EventTarget();"
        "  lock.release = () => {"
        "    window.awake = false; lock.dispatchEvent(new Event('release'));"
        "  };"
        "  window.awake = true; return Promise.resolve(lock);"
        "}}});"
    )
    await page.goto(harness.url + "/86")
    switch = page.get_by_role("switch", name="Keep the screen on")
    await expect(switch).to_be_checked()
    assert await page.evaluate("window.awake") is True
    await switch.click()
    await expect(switch).not_to_be_checked()
    assert await page.evaluate("window.awake") is False
    await page.reload()
    await expect(switch).not_to_be_checked()
    await page.close()


async def test_two_keystrokes_find_a_dish_and_the_keyboard_marks_it(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))
    await page.goto(harness.url + "/86")
    await page.keyboard.type("pm")
    await expect(page.locator("#board .tile")).to_have_count(1)
    await expect(page.locator("#board")).to_contain_text("Pizza Margherita")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Pizza Margherita")).to_be_focused()
    assert ("86", "main", "p0", "opening") not in harness.control.asked
    await page.keyboard.press("Enter")
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p0", "opening")
    await expect(page.locator("#board .tile")).to_have_count(1)  # what was found stays
    assert len(loads) == 1, "no page is loaded for a key"
    await page.close()


async def test_another_end_is_chosen_with_scripts_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(harness.url + "/86")
    await page.get_by_role("link", name="For an hour").click()
    await page.get_by_role("button", name="Soup").click()
    assert harness.control.asked[-1] == ("86", "main", "p3", "1h")
    chosen = page.get_by_role("link", name="For an hour")
    await expect(chosen).to_have_attribute("aria-current", "true")
    await page.close()


async def test_a_dish_is_found_marked_and_brought_back_with_scripts_off(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page(java_script_enabled=False)
    await page.goto(harness.url + "/86")
    await page.locator("#find").fill("co")
    await page.get_by_role("button", name="Find").click()
    await expect(page.locator("#board .tile")).to_have_count(1)
    await page.get_by_role("button", name="Cola").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1] == ("86", "main", "p2", "opening")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#said")).to_contain_text("Did restore.")
    assert list(harness.control.asked[-1]) == ["restore", "main", "p2"]
    await page.close()


async def test_who_only_looks_finds_but_marks_nothing(browser: Browser) -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        busy(harness.control, "x")
        page = await browser.new_page()
        await page.goto(harness.url + "/86")
        await page.get_by_label("Name").fill("lou")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.locator("#marks")).to_contain_text("a user with the role staff")
        await expect(page.locator("#marks button:enabled")).to_have_count(0)
        await page.close()


@pytest.mark.parametrize("width", [360, 800, 1024, 1920])
async def test_what_is_tapped_is_large_and_fills_the_width(
    browser: Browser, harness: PageHarness, width: int
) -> None:
    busy(harness.control, "Pizza")
    page = await browser.new_page(viewport={"width": width, "height": 800})
    await page.goto(harness.url + "/86")
    small = await page.evaluate(
        "[...document.querySelectorAll('#marks button, #marks a')]"
        ".filter((each) => each.offsetParent && each.getBoundingClientRect().height < 52)"
        ".map((each) => each.outerHTML)"
    )
    assert small == []
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    wide = await page.evaluate("document.querySelector('.grid').getBoundingClientRect().right")
    assert width - wide < 40
    await page.close()


async def test_three_thousand_dishes_open_by_category(
    browser: Browser, harness: PageHarness
) -> None:
    base = harness.control.items.menu[0]
    harness.control.items.menu = [
        {**base, "external_id": f"p{number}", "name": f"Dish number {number}"}
        | {"category": f"c{number % 10}", "category_name": f"Course {number % 10}"}
        for number in range(3000)
    ]
    page = await browser.new_page()
    answer = await page.goto(harness.url + "/86")
    assert answer is not None
    assert len(await answer.body()) < 150_000
    await page.get_by_role("link", name="Course 7 300").click()
    await expect(page.get_by_role("heading", name="Course 7")).to_be_visible()
    assert len(await page.content()) < 150_000
    await page.get_by_role("link", name="Next").click()
    await page.locator("#board .course .tile").last.locator("> button").click()
    await expect(page.locator("#said")).to_contain_text("Did 86.")
    assert harness.control.asked[-1][2] == "p1197"
    await expect(page.get_by_role("heading", name="Course 7")).to_be_visible()
    await page.close()


async def test_the_code_on_the_tablet_page_leads_to_the_board(
    browser: Browser, harness: PageHarness
) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/86/tablet")
    code = await page.locator(".code img").screenshot()
    assert await scanned(browser, code) == {harness.url + "/86"}
    await expect(page.locator("main")).to_contain_text("only works on this computer")
    await page.close()


async def test_chromium_finds_the_board_installable(browser: Browser, harness: PageHarness) -> None:
    page = await browser.new_page()
    await page.goto(harness.url + "/86")
    network = await page.context.new_cdp_session(page)
    manifest = await network.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"] == harness.url + "/86/app.webmanifest?store=main"
    found = await network.send("Page.getInstallabilityErrors")
    # A page of a test is opened in a private window, where nothing is installed.
    others = {each["errorId"] for each in found["installabilityErrors"]} - {"in-incognito"}
    assert others == set()
    await page.close()


async def test_an_86_goes_from_the_board_to_the_storefront_and_back(
    browser: Browser, tmp_path: Path
) -> None:
    async with make_world(tmp_path) as world:
        await world.bridge.start()
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{world.page_port}/86")
        await page.get_by_role("link", name="Until I bring it back").click()
        await page.keyboard.type("d7")
        await expect(page.locator("#board .tile")).to_have_count(1)
        await page.get_by_role("button", name="Dish 7").click()
        await expect(page.locator("#said")).to_contain_text("Dish 7 is sold out")
        await page.keyboard.press("Escape")
        sold_out = page.get_by_role("region", name="Sold out now: 1")
        await expect(sold_out).to_contain_text("somebody at the page")
        await expect(sold_out).to_contain_text("Hidden from guests ✓")
        shop = await browser.new_page()
        await shop.goto(f"{world.url}/store/st_main?q=dish+7")
        await expect(shop.locator("main")).to_contain_text("sold out")
        assert (await world.storefront())["p7"]["available"] is False
        await page.wait_for_timeout(500)  # sooner, it is the second tap of a wet finger
        await sold_out.get_by_role("button", name="Dish 7").click()
        await expect(page.locator("#board")).to_contain_text("Nothing is sold out.")

        async def back() -> bool:
            return bool((await world.storefront())["p7"]["available"])

        await until("dish 7 is on sale again", back)
        await shop.close()
        await page.close()
