"""Whatever customers, tills and services write stays text: on every page, in every question."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.hostile import CORPUS, PLANT, Planted, shape_of
from tests.support.page_house import PageHouse, page_house
from tests.support.page_sample import busy
from tillbridge.web.site.book import Action, File, Page, path_of
from tillbridge.web.site.registry import everything

PATHS = [each for each in everything() if not isinstance(each, File)]
ASKED = [each for each in PATHS if isinstance(each, Page) or each.ask is not None]


@pytest.fixture
async def house() -> AsyncIterator[PageHouse]:
    async with page_house() as made:
        busy(made.control)
        yield made


def test_the_corpus_is_large_and_varied() -> None:
    assert len(CORPUS) >= 200
    assert len(set(CORPUS)) == len(CORPUS)


@pytest.mark.parametrize("what", ASKED, ids=lambda each: each.path)
async def test_hostile_text_leaves_the_page_as_it_is(house: PageHouse, what: Page | Action) -> None:
    control = Planted(house.control)
    house.ask(control)
    path = path_of(what.path, dict.fromkeys(re.findall(r"\{([a-z_]+)\}", what.path), PLANT))
    harmless = await house.get(path)
    assert harmless.status == 200, harmless.text
    shape, tags = shape_of(harmless.text), harmless.text.count("<")
    for text in CORPUS:
        control.text = text
        page = await house.get(path)
        assert page.status == 200, text[:80]
        if not text.strip():
            continue  # a blank text may leave out what would show it
        assert shape_of(page.text) == shape, text[:80]
        assert page.text.count("<") == tags, text[:80]


@pytest.mark.parametrize(
    "action", [e for e in ASKED if isinstance(e, Action)], ids=lambda e: e.path
)
async def test_a_hostile_address_is_only_an_address(house: PageHouse, action: Action) -> None:
    parts = re.findall(r"\{([a-z_]+)\}", action.path)
    harmless = await house.get(path_of(action.path, dict.fromkeys(parts, PLANT)))
    shape = shape_of(harmless.text)
    for text in CORPUS:
        if not 0 < len(text) < 300:
            continue  # no address is that long, and a part of it is never empty
        if text in {".", ".."}:
            continue  # an address without them is another one
        page = await house.get(path_of(action.path, dict.fromkeys(parts, text)))
        assert page.status in {200, 404}, text
        if page.status == 200:
            assert shape_of(page.text) == shape, text


async def test_what_an_action_answers_is_text(house: PageHouse) -> None:
    control = Planted(house.control)
    house.ask(control)
    house.control.answer = PLANT
    done = await house.post("/orders/ord_1/retry")
    shape = shape_of((await house.get(done.headers["Location"])).text)
    for control.text in CORPUS:
        done = await house.post("/orders/ord_1/retry")
        page = await house.get(done.headers["Location"])
        assert shape_of(page.text) == shape or not control.text.strip()


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", " javascript:1", "//evil.example"]
)
async def test_only_web_addresses_become_links(house: PageHouse, link: str) -> None:
    house.control.connect_url = link
    done = await house.post("/stores/main/connect")
    page = await house.get(done.headers["Location"])
    assert "Open the service" not in page.text
    assert f'href="{link}' not in page.text


async def test_names_on_the_way_to_the_password_are_text() -> None:
    from tests.support.page_house import users
    from tillbridge.web.authenticator import AccessRules

    async with page_house(AccessRules(users=users())) as house:
        harmless = await house.get(path_of("/login", {}, {"next": "/x"}))
        for text in CORPUS:
            page = await house.get(path_of("/login", {}, {"next": text[:500]}))
            assert shape_of(page.text) == shape_of(harmless.text), text[:80]


async def test_direction_marks_do_not_turn_what_follows(house: PageHouse) -> None:
    problem = house.control.facts.problems[0]
    turned = replace(problem, detail={"detail": "\u202eabc\ud800"})
    house.control.facts = replace(house.control.facts, problems=(turned,))
    page = (await house.get("/")).text
    assert "\u202e" not in page
    assert "\ufffdabc\ufffd" in page
