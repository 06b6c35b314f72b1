"""The sheet beside the till: one page of paper, and words that the page has."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tillbridge.web.site.book import Action
from tillbridge.web.site.registry import EVERYTHING, NAVIGATION

SHEET = Path(__file__).resolve().parents[2] / "docs/in-the-shop.html"


@pytest.mark.browser
@pytest.mark.parametrize("paper", ["A4", "Letter"])
async def test_it_is_one_sheet_of_paper(browser: Browser, paper: str) -> None:
    page = await browser.new_page()
    await page.goto(SHEET.as_uri())
    pdf = await page.pdf(
        format=paper, margin={"top": "12mm", "bottom": "12mm", "left": "16mm", "right": "16mm"}
    )
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_its_buttons_and_pages_are_called_so_on_the_page() -> None:
    known = {line.title for line in NAVIGATION}
    known |= {str(each.title) for each in EVERYTHING if isinstance(each, Action)}
    named = re.findall(r"<b>([^<]+)</b>", SHEET.read_text("utf-8"))
    assert set(named) - {"now"} <= known
