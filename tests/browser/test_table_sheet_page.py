"""The sheet of QR codes as a browser shows and prints it, read back by a scanner."""

import base64
import re
from pathlib import Path

import pytest
import zxingcpp
from playwright.async_api import Browser, Page

from tillbridge.qr_sheets import Paper, QrTable, make_sheet

NAMES = ["Table 1", "<b>Bar</b> & 'co'", "W" * 120, "Stammtisch am Fenster ganz links", "طاولة ٤"]
GREY = """async (png) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + png;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
  canvas.drawImage(image, 0, 0);
  const {data, width, height} = canvas.getImageData(0, 0, image.width, image.height);
  let grey = '';
  for (let at = 0; at < data.length; at += 4) grey += String.fromCharCode(data[at]);
  return [width, height, btoa(grey)];
}"""

pytestmark = pytest.mark.browser


async def scanned(browser: Browser, picture: bytes) -> set[str]:
    """The texts of all codes that a scanner finds in a PNG."""
    page = await browser.new_page()
    width, height, grey = await page.evaluate(GREY, base64.b64encode(picture).decode())
    await page.close()
    pixels = memoryview(base64.b64decode(grey)).cast("B", shape=[height, width])
    return {found.text for found in zxingcpp.read_barcodes(pixels)}


async def spilling(page: Page) -> list[str]:
    """The texts on cards that reach beyond their card."""
    told: list[str] = await page.evaluate(
        """() => [...document.querySelectorAll('.card > *, .name')].filter((part) => {
             const inner = part.getBoundingClientRect();
             const card = part.closest('.card').getBoundingClientRect();
             return inner.left < card.left - 1 || inner.right > card.right + 1
                 || inner.top < card.top - 1 || inner.bottom > card.bottom + 1;
           }).map((part) => part.className + ': ' + part.textContent)"""
    )
    return told


@pytest.mark.parametrize(
    ("size", "per_page"),
    [
        (Paper.A4, 6),
        (Paper.A4, 1),
        (Paper.A4, 30),
        (Paper.LETTER, 12),
        pytest.param(Paper.LETTER, 6, marks=pytest.mark.slow(reason="as A4 with 6; 12 are above")),
    ],
)
async def test_the_printed_codes_lead_to_their_tables(
    browser: Browser, tmp_path: Path, size: Paper, per_page: int
) -> None:
    tables = [
        QrTable(f"t{n}", name, zone, f"https://order.example.net/s?table=qrt_{zone}{n:032x}")
        for zone in ("Hall", "Garden")
        for n, name in enumerate(NAMES)
    ]
    sheet = make_sheet(tables, "Trattoria Sant'Ambrogio", size=size, per_page=per_page)
    path = tmp_path / "sheet.html"
    path.write_text(sheet.html, encoding="utf-8")
    # One code a page is large enough to be read at a quarter of the pixels.
    page = await browser.new_page(
        viewport={"width": 900, "height": 1200}, device_scale_factor=1 if per_page == 1 else 2
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(path.as_uri())
    await page.emulate_media(media="print")
    assert asked == [path.as_uri()]
    assert await spilling(page) == []

    found: set[str] = set()
    for section in await page.locator(".page").all():
        found |= await scanned(browser, await section.screenshot())
    assert found == {each.url for each in tables}

    pdf = await page.pdf(prefer_css_page_size=True)
    count = max(int(each) for each in re.findall(rb"/Count (\d+)", pdf))  # of the whole tree
    assert count == sheet.pages
    width, height = (float(each) / 72 * 25.4 for each in _media_box(pdf))
    assert (width, height) == pytest.approx(size.size, abs=0.5)


def _media_box(pdf: bytes) -> tuple[bytes, bytes]:
    found = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert found is not None
    return found[1], found[2]
