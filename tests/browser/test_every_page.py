"""Every page of the registry in a real browser: for everybody, on any screen, with any text.

A page is loaded once for all that is looked at in it; only its sample of data differs.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, CDPSession, Page, Response

from tests.support.every_page import addresses
from tests.support.hostile import CORPUS, PlantedInTurn
from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy, crowded
from tillbridge.stores.consent import CallbackAnswer
from tillbridge.web.listener import MerchantReturn
from tillbridge.web.site.book import Page as BookPage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Scheme = Literal["light", "dark"]
FIRST = "a bad evening"
UNBREAKABLE = "a name without a place to break"  # axe has nothing to say about a name
SAMPLES: Mapping[str, Callable[[Any], None]] = {
    FIRST: lambda control: busy(control, "Pizza"),
    "more than fits": lambda control: crowded(control, "Pizza"),
    "nothing yet": lambda control: None,
    UNBREAKABLE: lambda control: busy(control, "W" * 120),
}
BUDGET = 150_000
# A test beside this one has laid or pulled a cable, and Chromium drops what it is loading.
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
NARROW, WIDE = 360, 1280
# Where words of other languages meet narrow columns.
MAIN_PAGES = (
    *("/", "/orders", "/orders/ord_1", "/menu", "/stores/main/menu/difference", "/86", "/tables"),
    *("/store", "/stores", "/fleet", "/diagnostics", "/settings", "/settings/people", "/setup"),
)
LOOKS: Sequence[tuple[int, Scheme]] = (
    (WIDE, "light"),
    (WIDE, "dark"),
    (NARROW, "dark"),
    (NARROW, "light"),
)
# Each width and each scheme is seen once: no width looks at colours, and no scheme is wider.
SEEN = (LOOKS[0], LOOKS[2])
# In which of them axe judges a page: in both where all pages are seen. Where only what differs is
# seen again, it has little more to say, and takes half of the time.
JUDGED = {FIRST: SEEN}
AT_LENGTH = pytest.mark.slow(
    reason="each width in each scheme, and axe in each; in short, each of them once"
)


async def declined(_query: object) -> CallbackAnswer:
    """Answer the page that a merchant sees after consent."""
    return CallbackAnswer(ok=False, text="The sign-in was declined.", fix="Connect again.")


@asynccontextmanager
async def furnished(sample: str) -> AsyncIterator[PageHarness]:
    async with page_harness(merchant=MerchantReturn("/oauth/callback", declined)) as harness:
        SAMPLES[sample](harness.control)
        yield harness


async def otherwise(harness: PageHarness) -> list[str]:
    """The addresses of pages that are not as they are in the first of the samples.

    What is around them says how many problems there are: it differs in each, and is seen with any.
    """
    async with furnished(FIRST) as first:
        return [
            each for each in addresses() if await main(harness, each) != await main(first, each)
        ]


async def main(harness: PageHarness, path: str) -> str:
    text = (await harness.get(path)).text.replace(harness.url, "")
    return text[text.index("<main") : text.index("</main>")]


async def visit(page: Page, harness: PageHarness, path: str) -> Response:
    answer = await page.goto(harness.url + path)
    assert answer is not None
    assert answer.status in {200, 400, 404}, path
    assert answer.status == 200 or path.startswith(("/nowhere", "/oauth")), path
    return answer


class Traffic:
    """What a page loads, without a cache, as in a browser that has never been here."""

    def __init__(self, network: CDPSession) -> None:
        self._documents: dict[str, str] = {}  # by request: the document that made it
        self._latest = ""
        self.arrived: defaultdict[str, float] = defaultdict(float)
        self.urls: list[str] = []
        network.on("Network.requestWillBeSent", self._sent)
        network.on("Network.dataReceived", self._received)

    @classmethod
    async def of(cls, page: Page) -> "Traffic":
        network = await page.context.new_cdp_session(page)
        await network.send("Network.enable")
        await network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        return cls(network)

    def faults(self, origin: str) -> list[str]:
        """What the page that was opened last loaded too much, and whatever came from elsewhere."""
        found = [url for url in self.urls if not url.startswith(origin)]
        self.urls.clear()
        assert self.arrived[self._latest] > 0
        if self.arrived[self._latest] > BUDGET:
            found.append(f"{self.arrived[self._latest]:,.0f} bytes")
        return found

    def _sent(self, event: dict[str, Any]) -> None:
        if not event["request"]["url"].startswith("data:"):  # it is in what is loaded
            self.urls.append(event["request"]["url"])
        self._documents[event["requestId"]] = event["loaderId"]
        if event["requestId"] == event["loaderId"]:
            self._latest = event["loaderId"]

    def _received(self, event: dict[str, Any]) -> None:
        self.arrived[self._documents[event["requestId"]]] += event["dataLength"]


def test_a_page_that_nobody_could_look_at_is_told() -> None:
    async def fill(visit: object) -> dict:
        return {}

    with pytest.raises(LookupError, match=r"/shelves/\{shelf\}"):
        addresses([BookPage("/shelves/{shelf}", "Shelf", "shelf.html", fill)])


@pytest.mark.parametrize(
    ("sample", "seen", "judged"),
    [
        *(pytest.param(each, SEEN, JUDGED.get(each, ()), id=each) for each in SAMPLES),
        *(
            pytest.param(each, LOOKS, judged, marks=AT_LENGTH, id=f"{each}, at length")
            for each, judged in {**dict.fromkeys(SAMPLES, LOOKS), UNBREAKABLE: ()}.items()
        ),
    ],
)
async def test_every_page_is_for_everybody_fits_its_screen_and_is_light(
    browser: Browser,
    sample: str,
    seen: Sequence[tuple[int, Scheme]],
    judged: Sequence[tuple[int, Scheme]],
) -> None:
    """Axe finds nothing that shuts anybody out, in no colours and on no screen.

    Nothing is wider than the screen or too small for a finger, the console stays silent, and
    nothing is loaded from elsewhere or is too large.
    """
    async with furnished(sample) as harness:
        page = await browser.new_page(viewport={"width": WIDE, "height": 800})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        traffic = await Traffic.of(page)
        if judged:
            await page.add_init_script(AXE_SCRIPT + EACH_LOOK_ONCE)  # 500 kB, sent once
        found: dict[str, list[str]] = {}
        frames = set[str]()
        for path in addresses() if sample == FIRST else await otherwise(harness):
            await visit(page, harness, path)
            while any(NETWORK_CHANGED in each for each in complaints):
                complaints.clear()
                await visit(page, harness, path)
            faults = traffic.faults(harness.url)
            frame = await page.evaluate(FRAME)
            where = "main" if frame in frames else "html"
            frames.add(frame)
            for width, scheme in seen:
                await page.set_viewport_size({"width": width, "height": 800})
                await page.emulate_media(color_scheme=scheme)
                told = await page.evaluate(MISFITS, scheme == "dark")
                if (width, scheme) in judged:
                    whole = (width, scheme) == LOOKS[0]
                    told += await page.evaluate(VIOLATIONS, "html" if whole else where)
                faults += [f"{width} {scheme}: {each}" for each in told]
            faults += [each for each in complaints if "400" not in each and "404" not in each]
            complaints.clear()
            if faults:
                found[path] = faults
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


@pytest.mark.parametrize(
    "share",
    [
        4,
        pytest.param(
            1, marks=pytest.mark.slow(reason="each text on each page; in short on every fourth")
        ),
    ],
)
async def test_no_name_of_an_item_or_a_guest_makes_a_phone_scroll_sideways(
    browser: Browser, share: int
) -> None:
    found = {}
    async with furnished(FIRST) as harness:
        busy(harness.control)
        page = await browser.new_page(viewport={"width": NARROW, "height": 800})
        for number, path in enumerate(addresses()):
            texts = CORPUS[number % share :: share]
            planted = PlantedInTurn(harness.control, texts)
            harness.ask(planted)
            await visit(page, harness, path)
            faults, before = await page.evaluate(WIDER), 0
            while before < planted.used < len(texts):
                before = planted.used
                faults += await page.evaluate(WIDER_WITH_OTHERS)
            if faults:
                found[path] = faults
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


@pytest.mark.parametrize("language", ["de-DE", "es-ES", "fr-FR", "it-IT"])
async def test_no_language_makes_a_phone_scroll_sideways(browser: Browser, language: str) -> None:
    found = {}
    async with furnished(FIRST) as harness:
        context = await browser.new_context(
            viewport={"width": NARROW, "height": 800}, locale=language
        )
        page = await context.new_page()
        for path in MAIN_PAGES:
            await visit(page, harness, path)
            if faults := await page.evaluate(WIDER):
                found[path] = faults
        await context.close()
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


async def test_every_page_tells_the_same_without_scripts_and_obeys_the_keyboard(
    browser: Browser,
) -> None:
    """The keyboard reaches everything, in order, and shows where it is."""
    found = {}
    async with furnished(FIRST) as harness:
        plain = await browser.new_page(java_script_enabled=False)
        page = await browser.new_page(viewport={"width": WIDE, "height": 800})
        frames = set[str]()
        for path in addresses():
            await visit(page, harness, path)
            await plain.goto(harness.url + path)
            with_scripts = set((await page.inner_text("main")).splitlines())
            faults = list(with_scripts - set((await plain.inner_text("main")).splitlines()))
            await plain.goto("about:blank")  # without scripts it loads itself again, as we leave it
            frame = await page.evaluate(FRAME)
            faults += await lost_to_the_keyboard(page, "main" if frame in frames else "html")
            frames.add(frame)
            if faults:
                found[path] = faults
    assert found == {}, "\n".join(f"{a}: {b}" for a, b in found.items())


async def lost_to_the_keyboard(page: Page, part: str) -> list[str]:
    """Go through a part of the page, from what is before it to what is after it."""
    stops = await page.evaluate(BEGIN_BEFORE, part)
    # It is held, as by somebody who goes far. The page looks where it is before each step.
    await asyncio.gather(*(page.keyboard.down("Tab") for _stop in range(stops)))
    await page.keyboard.up("Tab")
    found: list[str] = await page.evaluate("metByTheKeyboard()")
    return found


# What is around the page's own part: many pages have the same, and it is looked at once.
FRAME = """() => [...document.querySelectorAll('body > *, body > header > *')]
  .filter((each) => !each.matches('main')).map((each) => each.tagName + each.id).join()"""

# Contrast takes seven tenths of axe's time, and most texts look like others: the same tags and
# classes, in the same styles, around the text and all that it is in. Three texts of a look are
# judged, at each width and in each scheme; and more on later pages, if axe could not tell of these.
EACH_LOOK_ONCE = """
axe.configure({rules: [{id: 'color-contrast', selector: '[data-new-look]'}]});
const STYLES = ['color', 'fontSize', 'fontWeight', 'textShadow', 'backgroundColor', 'opacity',
  'backgroundImage', 'filter', 'mixBlendMode', 'display', 'visibility', 'position', 'zIndex'];
const OFF = ':disabled, [inert], [aria-disabled=true], [aria-hidden=true]';
function hashed(...parts) {
  const text = parts.join();
  let [a, b] = [1, 2];
  for (let at = 0; at < text.length; at++) {
    a = Math.imul(a ^ text.charCodeAt(at), 2654435761);
    b = Math.imul(b ^ text.charCodeAt(at), 1597334677) ^ (a >>> 15);
  }
  return `${a} ${b}`;
}
window.markNewLooks = (part) => {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const within = new Map([[null, hashed(innerWidth, dark)]]), texts = {};
  const root = document.querySelector(part);
  for (const each of document.querySelectorAll('*')) {
    const style = getComputedStyle(each), off = each.matches(OFF);
    within.set(each, hashed(within.get(each.parentElement), each.tagName,
      each.getAttribute('class'), off, ...STYLES.map((name) => style[name])));
    if (!root.contains(each)) continue;
    const text = [...each.childNodes].map((node) => node.nodeType === 3 ? node.data.trim() : '');
    const look = hashed(within.get(each), each.type, each.checkVisibility(),
      Math.min(text.join('').length, 2), !!(each.value || each.placeholder));
    texts[look] = (texts[look] || 0) + 1;
    if (look in sessionStorage || texts[look] > 3) each.removeAttribute('data-new-look');
    else each.dataset.newLook = look;
  }
  return Object.keys(texts);
}
"""

# What axe finds in a part of the page. Only that comes over, with the first places of each.
VIOLATIONS = """async (part) => {
  const looks = markNewLooks(part);
  const {violations, incomplete} = await axe.run(part,
    {resultTypes: ['violations', 'incomplete'], elementRef: true});
  const undecided = incomplete.filter(({id}) => id === 'color-contrast')
    .flatMap(({nodes}) => nodes.map(({element}) => element.dataset.newLook));
  for (const each of looks.filter((look) => !undecided.includes(look))) sessionStorage[each] = '';
  return violations.flatMap(({id, nodes}) => nodes.slice(0, 3).map((node) =>
    `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
}"""

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

# The same with the next of the texts, which take the place of those that are there.
WIDER_WITH_OTHERS = f"""async () => {{
  const text = await (await fetch(location.href)).text();
  document.body.replaceWith(new DOMParser().parseFromString(text, 'text/html').body);
  return ({WIDER})();
}}"""

# What the keyboard should reach, in the order in which it is read.
WHAT_ACTS = """(() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
  .filter((each) => each.checkVisibility() && !each.disabled))"""

# Chromium stops at day, month, year, hour, minute, and what opens the calendar.
BEGIN_BEFORE = f"""(part) => {{
  const all = {WHAT_ACTS}(), inside = (each) => each.matches(part + ' *'), faults = [];
  const first = Math.max(0, all.findIndex(inside) - 1);
  const end = all.some(inside)
    ? Math.min(all.length, all.length - [...all].reverse().findIndex(inside) + 1) : first;
  const twelve = Intl.DateTimeFormat(undefined, {{hour: 'numeric'}}).resolvedOptions().hour12;
  const stops = (each) => ({{'date': 4, 'datetime-local': twelve ? 7 : 6}}[each.type] || 1);
  let expected = first, inField = 0;
  addEventListener('keydown', () => {{
    if (inField-- > 0) return;
    const at = document.activeElement, name = at.outerHTML.slice(0, 150);
    inField = stops(at) - 1;
    if (at !== {WHAT_ACTS}()[expected++]) faults.push(`not the next: ${{name}}`);
    const style = getComputedStyle(at), box = at.getBoundingClientRect();
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2)
      faults.push(`no ring: ${{name}}`);
    if (box.bottom < 0 || box.top > innerHeight) faults.push(`out of sight: ${{name}}`);
  }}, true);
  window.metByTheKeyboard = () => {{
    if (expected !== end) faults.push(`met ${{expected}}, not ${{end}}`);
    if (part === 'html' && {WHAT_ACTS}().indexOf(document.activeElement) > 0)
      faults.push('the keyboard never leaves the page');
    return faults;
  }};
  if (end > first) all[first].focus();
  return all.slice(first, end).reduce((sum, each) => sum + stops(each), 0);
}}"""
