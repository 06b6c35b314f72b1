"""What every test in a browser needs: Debian's Chromium, or a reason to be skipped.

One Chromium serves all tests of a worker, so they share an event loop. What a test opened in it
is closed after the test.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

expect.set_options(
    timeout=20_000
)  # a busy machine may take its time; a failure says so all the same
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests in the loop that the browser is driven from."""
    for item in items:
        if Path(__file__).parent in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    if not CHROMIUM:
        pytest.skip("the system has no Chromium")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--no-proxy-server"]
        )
        yield opened
        await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    yield chromium
    for context in chromium.contexts:
        await context.close()
