"""The guides of docs/ as the page serves them: to anybody, with their pictures, leading on."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.page_harness import PageHarness, page_harness, users
from tillbridge.core.problems import PROBLEMS, anchor, title_of
from tillbridge.web.authenticator import AccessRules
from tillbridge.web.rendering import HEADERS, PICTURES
from tillbridge.web.site import help_pages as guides
from tillbridge.web.site.book import Page, route_of
from tillbridge.web.site.help_pages import NAMES, chapter_of, guide
from tillbridge.web.site.registry import EVERYTHING

OURS = [re.compile(re.sub(r"\{\w+:(.*?)\}", r"\1", route_of(each.path))) for each in EVERYTHING]
PATHS = ["/help", *(f"/help/{name}" for name in NAMES), "/help/in-the-shop.html"]
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
async def stranger() -> AsyncIterator[PageHarness]:
    """Somebody who has not signed in, where one has to."""
    async with page_harness(AccessRules(users=users())) as made:
        yield made


def ids(text: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', text))


@pytest.mark.parametrize("path", PATHS)
async def test_help_is_for_whoever_cannot_sign_in_and_tells_nothing_of_the_restaurant(
    stranger: PageHarness, path: str
) -> None:
    answer = await stranger.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert stranger.control.asked == []
    assert (await stranger.get("/help/pos.offline")).status == 303


async def test_a_guide_keeps_the_policy_of_the_page(stranger: PageHarness) -> None:
    for name in NAMES:
        answer = await stranger.get(f"/help/{name}")
        assert {each: answer.headers[each] for each in HEADERS} == HEADERS
        assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=", answer.text)


async def test_the_sheet_has_its_own_style_and_nothing_else(stranger: PageHarness) -> None:
    answer = await stranger.get("/help/in-the-shop.html")
    assert answer.text == (DOCS / "in-the-shop.html").read_text("utf-8")
    policy = answer.headers["Content-Security-Policy"]
    assert re.search(r"style-src 'sha256-[\w+/=]{44}';", policy)
    assert "unsafe" not in policy


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", PATHS)
async def test_help_is_only_read(stranger: PageHarness, path: str, method: str) -> None:
    async with stranger.session.request(method, stranger.url + path) as answer:
        assert answer.status == 405
    async with stranger.session.head(stranger.url + path) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("name", NAMES)
async def test_every_link_of_a_guide_leads_somewhere(stranger: PageHarness, name: str) -> None:
    text = (await stranger.get(f"/help/{name}")).text
    for href in re.findall(r'<a [^>]*href="([^"]*)"', text):
        to = urlsplit(href)
        assert not to.netloc, href
        assert not to.path or any(each.fullmatch(to.path) for each in OURS), href
        if to.fragment:
            other = (await stranger.get(to.path)).text if to.path else text
            assert to.fragment in ids(other), href


@pytest.mark.parametrize("name", NAMES)
async def test_every_picture_of_a_guide_is_served(stranger: PageHarness, name: str) -> None:
    text = (await stranger.get(f"/help/{name}")).text
    shown = re.findall(r'<source media="[^"]*dark\)" srcset="([^"]+)"><img src="([^"]+)"', text)
    named = re.findall(r"!\[[^\]]+\]\(images/guide/", (DOCS / f"{name}.md").read_text("utf-8"))
    assert len(shown) == len(named) == text.count("<img ")
    for address in (each for pair in shown for each in pair):
        async with stranger.session.get(stranger.url + address) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "image/png"
            assert "immutable" in answer.headers["Cache-Control"]
            assert len(await answer.read()) < 40_000


@pytest.mark.parametrize(
    "path",
    [
        "/static/restaurant.md",
        "/static/%2e%2e%2frestaurant.md",
        "/static/..%2f..%2frestaurant.md",
        "/static/guide%2fsetup.png",
        "/help/images/guide/setup.png",
        "/help/restaurant/",
    ],
)
async def test_nothing_else_of_the_guides_folder_is_served(path: str) -> None:
    async with page_harness() as harness:
        answer = await harness.get(path)
    assert answer.status == 404
    assert "git clone" not in answer.text


@pytest.mark.parametrize("code", PROBLEMS)
async def test_the_page_of_a_problem_leads_to_the_chapter_about_it(code: str) -> None:
    chapter = chapter_of(code)
    assert chapter is not None
    async with page_harness() as harness:
        found = (await harness.get(f"/help/{code}")).text
        assert f'href="/help/technician#{chapter.anchor}"' in found
        there = (await harness.get("/help/technician")).text
    assert chapter.anchor in ids(there)
    part = there.split(f'id="{chapter.anchor}"', 1)[1].partition("<h3")[0]
    assert f'href="/help/{code}"' in part


def test_a_guide_calls_problems_what_the_page_calls_them() -> None:
    text = (DOCS / "technician.md").read_text("utf-8")
    named = re.findall(r"\[([^\]]+)\]\(problems\.md#(\w+)\)", text)
    codes = {anchor(code): code for code in PROBLEMS}
    assert [(each, codes[to]) for each, to in named if each != title_of(codes[to])] == []
    assert len(named) == len(PROBLEMS), "each once"


@pytest.mark.parametrize("name", NAMES)
def test_no_two_chapters_have_one_address(name: str) -> None:
    anchors = [each.anchor for each in guide(name).chapters]
    assert len(anchors) == len(set(anchors))


def test_a_guide_is_found_in_the_list_by_the_title_that_it_has() -> None:
    titles = {each.path: each.title for each in EVERYTHING if isinstance(each, Page)}
    assert all(titles[f"/help/{name}"] == guide(name).title for name in NAMES)


def test_html_in_a_document_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# Title\n\n<script>x</script> <b>y</b> [z](javascript:alert(1))\n\n<div>\n\n`<i>`\n"
    (tmp_path / "restaurant.md").write_text(text, "utf-8")
    monkeypatch.setattr(guides, "GUIDES", tmp_path)
    made = guide.__wrapped__("restaurant").html
    assert set(re.findall(r"<(\w+)", made)) == {"p", "code"}
    assert "&lt;script&gt;x&lt;/script&gt;" in made


def test_every_picture_has_one_for_dark_screens() -> None:
    names = {each.name for each in PICTURES.iterdir()}
    light = {each for each in names if not each.endswith("-dark.png")}
    assert names - light == {each.replace(".png", "-dark.png") for each in light}
