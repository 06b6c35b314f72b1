"""Whatever customers, tills and services write stays text: on every page, in every question."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from tests.support.hostile import CORPUS, PLANT, TOGETHER, Planted, shape_of
from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy
from tillbridge.web.site.book import Action, File, Page, path_of
from tillbridge.web.site.registry import EVERYTHING

PATHS = [each for each in EVERYTHING if not isinstance(each, File)]
ASKED = [each for each in PATHS if isinstance(each, Page) or each.ask is not None]
ACTIONS = [each for each in ASKED if isinstance(each, Action)]
BY_ITSELF = pytest.mark.slow(
    reason="each text of the corpus by itself; in short they come together"
)


@pytest.fixture
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        busy(made.control)
        yield made


def test_the_corpus_is_large_and_varied() -> None:
    assert len(CORPUS) >= 200
    assert len(set(CORPUS)) == len(CORPUS)


@pytest.mark.parametrize("what", ASKED, ids=lambda each: each.path)
async def test_hostile_text_leaves_the_page_as_it_is(
    harness: PageHarness, what: Page | Action
) -> None:
    await looks_the_same(harness, what, TOGETHER)


@BY_ITSELF
@pytest.mark.parametrize("what", ASKED, ids=lambda each: each.path)
async def test_each_hostile_text_leaves_the_page_as_it_is(
    harness: PageHarness, what: Page | Action
) -> None:
    await looks_the_same(harness, what, CORPUS)


async def looks_the_same(harness: PageHarness, what: Page | Action, texts: Sequence[str]) -> None:
    control = Planted(harness.control)
    harness.ask(control)
    path = path_of(what.path, dict.fromkeys(re.findall(r"\{([a-z_]+)\}", what.path), PLANT))
    harmless = await harness.get(path)
    assert harmless.status == 200, harmless.text
    shape, tags = shape_of(harmless.text), harmless.text.count("<")
    for text in texts:
        control.text = text
        page = await harness.get(path)
        assert page.status == 200, text[:80]
        if not text.strip():
            continue  # a blank text may leave out what would show it
        assert shape_of(page.text) == shape, text[:80]
        assert page.text.count("<") == tags, text[:80]


@pytest.mark.parametrize("number", range(len(ACTIONS)), ids=lambda each: ACTIONS[each].path)
async def test_a_hostile_address_is_only_an_address(harness: PageHarness, number: int) -> None:
    await is_only_an_address(harness, ACTIONS[number], CORPUS[number % 8 :: 8])


@pytest.mark.slow(reason="each text of the corpus in each address; in short each in every eighth")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.path)
async def test_each_hostile_address_is_only_an_address(
    harness: PageHarness, action: Action
) -> None:
    await is_only_an_address(harness, action, CORPUS)


async def is_only_an_address(harness: PageHarness, action: Action, texts: Sequence[str]) -> None:
    parts = re.findall(r"\{([a-z_]+)\}", action.path)
    harmless = await harness.get(path_of(action.path, dict.fromkeys(parts, PLANT)))
    shape = shape_of(harmless.text)
    for text in texts:
        if not 0 < len(text) < 300:
            continue  # no address is that long, and a part of it is never empty
        if text in {".", ".."}:
            continue  # an address without them is another one
        page = await harness.get(path_of(action.path, dict.fromkeys(parts, text)))
        assert page.status in {200, 404}, text
        if page.status == 200:
            assert shape_of(page.text) == shape, text


@pytest.mark.parametrize(
    "texts", [CORPUS[::4], pytest.param(CORPUS, marks=BY_ITSELF)], ids=["some", "all"]
)
async def test_what_an_action_answers_is_text(harness: PageHarness, texts: Sequence[str]) -> None:
    control = Planted(harness.control)
    harness.ask(control)
    harness.control.answer = PLANT
    done = await harness.post("/orders/ord_1/retry")
    shape = shape_of((await harness.get(done.headers["Location"])).text)
    for control.text in texts:
        done = await harness.post("/orders/ord_1/retry")
        page = await harness.get(done.headers["Location"])
        assert shape_of(page.text) == shape or not control.text.strip()


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", " javascript:1", "//evil.example"]
)
async def test_only_web_addresses_become_links(harness: PageHarness, link: str) -> None:
    harness.control.connect_url = link
    done = await harness.post("/stores/main/connect")
    page = await harness.get(done.headers["Location"])
    assert "Open the service" not in page.text
    assert f'href="{link}' not in page.text


async def test_names_on_the_way_to_the_password_are_text() -> None:
    from tests.support.page_harness import users
    from tillbridge.web.authenticator import AccessRules

    async with page_harness(AccessRules(users=users())) as harness:
        harmless = await harness.get(path_of("/login", {}, {"next": "/x"}))
        for text in CORPUS:
            page = await harness.get(path_of("/login", {}, {"next": text[:500]}))
            assert shape_of(page.text) == shape_of(harmless.text), text[:80]


async def test_direction_marks_do_not_turn_what_follows(harness: PageHarness) -> None:
    problem = harness.control.facts.problems[0]
    turned = replace(problem, detail={"detail": "\u202eabc\ud800"})
    harness.control.facts = replace(harness.control.facts, problems=(turned,))
    page = (await harness.get("/")).text
    assert "\u202e" not in page
    assert "\ufffdabc\ufffd" in page
