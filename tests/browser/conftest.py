"""What every test in a browser needs: Debian's Chromium, or a reason to be skipped.

Its headless shell draws the same with two fifths of the processor time (decision 210).

One Chromium serves all tests of a worker, so they share an event loop. What a test opened in it
is closed after the test.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Playwright, async_playwright, expect

expect.set_options(
    timeout=20_000
)  # a busy machine may take its time; a failure says so all the same
EXECUTABLE = (
    shutil.which("chromium-headless-shell")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or ""
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests in the loop that the browser is driven from."""
    ours = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(ours) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


class Chromium:
    """Is started when a test needs it, and again after a crash."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._browser: Browser | None = None

    async def browser(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self._browser = await self._playwright.chromium.launch(
                executable_path=EXECUTABLE,
                args=["--no-sandbox", "--no-proxy-server", "--accept-lang=en-US"],
            )
        return self._browser

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Chromium]:
    if not EXECUTABLE:
        pytest.skip("the system has no Chromium")
    async with async_playwright() as playwright:
        started = Chromium(playwright)
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    opened = await chromium.browser()
    yield opened
    for context in opened.contexts:
        await context.close()
