"""The technician's page in a real browser: phone and desk, light and dark."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, async_playwright

from tests.support.pretend_control import PretendControl
from tillbridge.clock import Clock
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.snapshot import Held, StoreSnapshot
from tillbridge.status.listener import StatusListener
from tillbridge.tally import Tally

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
LONG = "W" * 120  # a name without a place to break

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
async def url() -> AsyncIterator[str]:
    control = PretendControl()
    problem = OpenProblem("pos.offline", "main", "", 0, {"detail": LONG})
    store = StoreSnapshot(
        waiting=2,
        oldest_waiting_at=0,
        held=Held(0, (LONG,)),
        facts={"pos_health": {"online": False, "since_ms": 0, "detail": LONG}},
    )
    control.facts = replace(control.facts, problems=(problem,), stores={"main": store})
    listener = StatusListener(control, token="t", tally=Tally(), clock=Clock())
    host, port = await listener.start("127.0.0.1", 0)
    yield f"http://{host}:{port}/"
    await listener.close()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_fits_and_reads_well(
    browser: Browser, url: str, width: int, scheme: str
) -> None:
    page = await browser.new_page(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(url)
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.get_by_role("status").is_visible()
    assert await page.get_by_role("heading", level=1).inner_text() == "Needs help now"
    red, green, blue = await page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).slice(0, 3)"
    )
    assert (red + green + blue < 3 * 128) == (scheme == "dark")
    assert complaints == []
    await page.close()
