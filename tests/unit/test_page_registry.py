"""Every page and action of the page, whoever added it, keeps the rules."""

import re
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.support.icon_sprite import names
from tillbridge.core.actor import Role
from tillbridge.core.problems import PROBLEMS
from tillbridge.operations import OPERATIONS
from tillbridge.web.rendering import STATIC, template
from tillbridge.web.site.book import Action, File, Page, parts_of, path_of, route_of
from tillbridge.web.site.overview import PAGES
from tillbridge.web.site.registry import EVERYTHING, NAVIGATION
from tillbridge.web.site.site import SIGN_IN

TEMPLATES = sorted(Path(STATIC).with_name("templates").glob("*.html"))
PAGES_THERE = [each for each in EVERYTHING if isinstance(each, Page)]
FILES = [each for each in EVERYTHING if isinstance(each, File)]
ACTIONS = [each for each in EVERYTHING if isinstance(each, Action)]


def by_path(each: Page | File | Action) -> str:
    return each.path


def test_only_signing_in_and_the_guides_need_no_role() -> None:
    every: list[Page | File] = [*PAGES_THERE, *FILES, SIGN_IN]
    open_to_all = {each.path for each in every if not each.role}
    assert open_to_all == {
        "/login",
        "/help",
        "/help/restaurant",
        "/help/technician",
        "/help/in-the-shop.html",
    }


@pytest.mark.parametrize("action", ACTIONS, ids=by_path)
def test_every_action_needs_a_role_that_acts_and_leaves_a_trace(action: Action) -> None:
    assert action.role >= Role.STAFF
    assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)*", action.audit)
    assert set(parts_of(action.back)) <= set(parts_of(action.path))


@pytest.mark.parametrize("page", PAGES_THERE, ids=by_path)
def test_every_page_has_its_template(page: Page) -> None:
    assert template(page.template) is not None


def test_no_two_share_a_path() -> None:
    shapes = [re.sub(r"\{[a-z_]+\}", "{}", each.path) for each in EVERYTHING]
    assert len(set(shapes)) == len(shapes)


def test_every_line_of_the_navigation_has_a_path_of_its_own() -> None:
    assert len({line.path for line in NAVIGATION}) == len(NAVIGATION)


def test_every_remedy_is_an_action_or_leads_to_one() -> None:
    paths = {action.path for action in ACTIONS} | {page.path for page in PAGES_THERE}
    for kind in PROBLEMS.values():
        assert set(kind.buttons) <= paths
    assert {path for path, _text in PAGES.values()} <= {page.path for page in PAGES_THERE}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_holds_anything_inline_or_foreign(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:|\|\s*safe|Markup", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    for form in re.findall(r"<form[^>]*>", text):
        assert "method=" in form


def test_what_only_reads_looks_it() -> None:
    acting = re.compile(
        r"push|approve|cancel|retry|pause|resume|remove|delete|rotate|86|restore|set(?!up)"
    )
    reads = {name for name, each in OPERATIONS.items() if each.reads}
    assert not [name for name in reads if acting.search(name)]


def test_before_there_is_a_store_one_reads_and_sets_up() -> None:
    before = {name for name, each in OPERATIONS.items() if each.before_setup}
    acting = {name for name in before if not OPERATIONS[name].reads}
    assert {name.partition(".")[0] for name in acting} == {"setup"}
    assert {name.partition(".")[0] for name in before} == {
        "audit",
        "diagnostics",
        "setup",
        "status",
    }


@pytest.mark.parametrize("item", ["a/b ?#%", "{x}", "%2F", "ä\n", "new"])
async def test_paths_are_escaped_and_found_again(item: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    router = web.Application().router
    for path in ("/items/{store}/{item}", "/items/new"):
        router.add_get(route_of(path), answer)
    path = path_of("/items/{store}/{item}", {"store": "main", "item": item})
    found = await router.resolve(make_mocked_request("GET", path))
    assert dict(found) == {"store": "main", "item": item}
    assert not dict(await router.resolve(make_mocked_request("GET", "/items/new")))
    missing = await router.resolve(make_mocked_request("GET", "/items/main/"))
    assert missing.http_exception is not None


def old_css(text: str) -> str:
    """Return a style sheet without what a browser only reads if it says that it can."""
    without_remarks = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"@supports[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", without_remarks)


@pytest.mark.parametrize(
    "name", sorted(each.name for each in STATIC.iterdir() if each.suffix in {".css", ".js"})
)
def test_the_browser_of_an_old_till_understands_what_it_gets(name: str) -> None:
    text = (STATIC / name).read_text("utf-8")
    assert len(text) < 30_000
    if name.endswith(".js"):
        assert not re.search(r"=>|\blet\b|\bconst\b|`|\bclass\b|\basync\b|\.\.\.", text)
        assert not re.search(r"eval\(|Function\(|document\.write|https?://", text)
    else:
        text = old_css(text)
        assert not re.search(r"display:\s*grid|:has\(|:is\(|@layer|@import|url\(|inset:", text)
        assert not re.search(r"[;{]\s*(?:gap|aspect-ratio):|clamp\(|color-mix|&", text)


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.css")), ids=lambda path: path.name)
def test_a_style_sheet_uses_tokens_that_there_are_and_no_colour_of_its_own(path: Path) -> None:
    tokens = (STATIC / "style.css").read_text("utf-8")
    known = set(re.findall(r"(--[a-z0-9-]+):", tokens))
    text = path.read_text("utf-8")
    assert set(re.findall(r"var\((--[a-z0-9-]+)", text)) <= known
    rules = re.sub(r":root \{[^}]*\}", "", text)
    assert not re.search(r":[^;{}]*(?:#[0-9a-f]{3,8}\b|\brgba?\()", rules)


def test_every_icon_that_a_page_shows_is_in_the_sprite() -> None:
    known = set(names())
    used = {line.icon for line in NAVIGATION}
    for path in TEMPLATES:
        used |= set(re.findall(r"\bicon\(\s*[\"']([a-z0-9-]+)[\"']", path.read_text("utf-8")))
    assert used <= known


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_paragraph_holds_a_form_which_a_browser_would_throw_out_of_it(path: Path) -> None:
    for inside in re.findall(r"<p[ >](.*?)</p>", path.read_text("utf-8"), re.DOTALL):
        assert not re.search(r"parts\.button\(|<(?:form|div|ul|ol|table|p)[ >]", inside)
