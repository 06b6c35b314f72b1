"""Nothing that a person reads on the page stays English: every page in a language of marks.

In it each text is its English between ⟦ and ⟧. What stands outside of them on a page is a value (a
name, an id, an amount), or a text that nobody can translate.
"""

import gettext
import re
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser

import pytest

from tests.support.every_page import addresses
from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy, crowded
from tillbridge.core import i18n

_SILENT = {"script", "style", "code", "pre", "svg", "time", "option", "kbd", "samp"}
_VOID = {"br", "hr", "img", "input", "wbr"}
_READ = {"title", "placeholder", "alt", "aria-label", "data-label"}
_WORD = re.compile(r"[A-Za-z]{3}")
# What the samples hold, and names: of the program, of formats, of papers, of events, of times.
_VALUES = re.compile(
    r"H ?ARMLESS2?|P-1|Cola|Water|Drinks|Kitchen|1 check failed\.|Connect again"
    r"|The bridge is running|3 GB are free|It is made anew|are free:|price(?= 4)|Title|Meaning"
    r"|Look at|Type|By itself|\.host,|anna|Harbour|Pizza|ledger-\d\.db|\(\d+ Tage\)"
    r"|Cause|Whole|preparing|ready|tillbridge|JSON|HTTP|main|hall|folder|A4Letter|EUR|USD|Gastronomy"
    r"|[\w.-]+@[\w.]+|https?://\S*|\w+=\S+|[a-z]+\.[a-z_]+|vor \d+ Tagen|\bmin\b"
    r"|^(?:info|warning|error|external_id|name|price|category|stock|bridge|disk)$|(?<=main)menu"
    r"|bridge|other|^order\.$|page:|staff|[A-Z][a-z]+tag|Mittwoch|Europe/Rome|store-\d"
)


class _Marks(gettext.NullTranslations):
    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


class _Reader(HTMLParser):
    """Gathers what is read of a page: its text in one piece, and some attributes.

    What the page itself says is English, as the guides are, is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.silent = 0
        self.english: list[str] = []  # the elements that are open, from the one that says so
        self.text = ""
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in _SILENT
        if self.english or dict(attrs).get("lang") == "en":
            self.english += [tag] if tag not in _VOID else []
            return
        self.attributes += [value for name, value in attrs if name in _READ and value]

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in _SILENT
        if tag in self.english:
            while self.english.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.text += "" if self.silent or self.english else data


def _outside(text: str) -> str:
    """Return what stands outside of the marks, which may stand in each other."""
    while text != (text := re.sub("⟦[^⟦⟧]*⟧", "", text)):
        pass
    return "\n".join(_VALUES.sub("", line.strip()) for line in text.splitlines())


@pytest.fixture
def _marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(i18n, "catalogue", lambda language: _Marks())
    monkeypatch.setattr(i18n, "languages", lambda: ("en", "de"))
    i18n._of_header.cache_clear()
    yield
    i18n._of_header.cache_clear()


@pytest.fixture
async def harness(_marked: None) -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control)
        yield made


async def _english_on(harness: PageHarness, address: str) -> list[str]:
    page = await harness.get(address, **{"Accept-Language": "de"})
    found = _Reader()
    found.feed(page.text)
    lines = [line.strip() for line in _outside(found.text).splitlines()]
    english = [line for line in lines if _WORD.search(line)]
    return english + [each for each in map(_outside, found.attributes) if _WORD.search(each)]


@pytest.mark.parametrize("address", addresses())
async def test_all_that_is_read_on_a_page_can_be_translated(
    harness: PageHarness, address: str
) -> None:
    english = await _english_on(harness, address)
    assert not english, "\n".join(english)


@pytest.mark.parametrize("sample", ["crowded", "empty"])
@pytest.mark.usefixtures("_marked")
async def test_so_can_pages_with_more_than_fits_and_with_nothing_yet(sample: str) -> None:
    async with page_harness() as harness:
        if sample == "crowded":
            crowded(harness.control, "Pizza")
        found = {each: await _english_on(harness, each) for each in addresses()}
    assert {each: english for each, english in found.items() if english} == {}
