"""What every test in a browser needs: Debian's Chromium, or a reason to be skipped."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright, expect

expect.set_options(
    timeout=20_000
)  # a busy machine may take its time; a failure says so all the same
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    if not CHROMIUM:
        pytest.skip("the system has no Chromium")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--no-proxy-server"]
        )
        yield opened
        await opened.close()
