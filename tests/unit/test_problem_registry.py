"""Every code of a problem is registered, explained, and raised somewhere; no other is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import problem_reference
from tillbridge.core.problems import (
    PROBLEMS,
    Ends,
    OpenProblem,
    ProblemKind,
    anchor,
    help_of,
    index,
)
from tillbridge.web.site.overview import PAGES

pytestmark = pytest.mark.xdist_group("problem registry")  # the source is read once
ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/tillbridge"
# Where codes stand that are only shown, not found.
SHOWING = {SOURCE / each for each in ("status/document.py", "web/site/overview.py")}
PAGE = (ROOT / "docs/problems.md").read_text("utf-8")
KINDS = list(PROBLEMS.values())
COMMANDS = set(
    re.findall(
        r"^## (tillbridge(?: [a-z0-9-]+)+)",
        (ROOT / "docs/commands.md").read_text("utf-8"),
        re.MULTILINE,
    )
)


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """The files that may find each problem."""
    files: dict[str, set[str]] = {}
    for path, tree in sources():
        if path not in SHOWING:
            for text in texts(tree):
                if text in PROBLEMS:
                    files.setdefault(text, set()).add(path.name)
    return files


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.code))
def test_every_problem_is_found_somewhere(kind: ProblemKind, found: dict[str, set[str]]) -> None:
    # That nothing runs is seen by whoever asks, not by what does not run.
    assert found.get(kind.code) or kind.code == "bridge.stopped"


def test_every_code_that_is_reported_is_registered() -> None:
    unknown, asked_at = [], 0
    for path, tree in sources():
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and asks_for_code(ast.unparse(node.func)):
                asked_at += 1
                first = node.args[0]
                code = constants.get(first.id) if isinstance(first, ast.Name) else None
                code = first.value if isinstance(first, ast.Constant) else code
                if code is not None and code not in PROBLEMS:
                    unknown.append(f"{path.name}:{node.lineno}: {code!r}")
    assert unknown == []
    assert asked_at > 20, "the names by which problems are reported were changed"


def asks_for_code(function: str) -> bool:
    """Whether the first argument of a call of this function is a problem's code."""
    return function in {"Found", "Scope.of"} or function.endswith(
        ("tracker.is_open", "problems.is_open")
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.code))
def test_every_problem_says_what_it_means_what_to_do_and_when_it_ends(kind: ProblemKind) -> None:
    assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", kind.code)
    page = help_of(kind.code)
    assert page.title.rstrip(".") == page.title
    assert page.means.endswith(".")
    assert page.why.endswith(".")
    assert page.closes
    assert page.restaurant
    assert page.technician


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.code))
def test_a_help_page_is_whole_sentences_with_commands_that_exist(kind: ProblemKind) -> None:
    page = help_of(kind.code, "main")
    for text in (page.title, page.means, page.why, *page.restaurant, *page.technician):
        assert not re.search(r"[{}]", text)
        assert text.count("`") % 2 == 0, text
        for typed in re.findall(r"`(tillbridge [^`]+)`", text):
            words = [each for each in typed.split() if re.fullmatch(r"[a-z0-9-]+", each)]
            assert any(" ".join(words[:n]) in COMMANDS for n in (2, 3, 4)), typed
    assert not [each for each in page.restaurant if "`tillbridge" in each]


def test_every_problem_is_in_one_group_of_the_index() -> None:
    listed = [code for _name, topics in index() for code, _title in topics]
    assert sorted(listed) == sorted(PROBLEMS)


def test_what_the_documentation_says_is_what_the_bridge_shows() -> None:
    assert problem_reference.text() == PAGE, "run: make reference"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.code))
def test_a_problem_is_plain_words_without_the_fields_of_its_finder_too(kind: ProblemKind) -> None:
    bare = OpenProblem(kind.code, "main", "", 1)
    for text in (bare.text, bare.fix):
        assert text
        assert not re.search(r"[{}]", text)
    assert kind.text[0].isupper() or kind.text[0] == "{"


def test_what_only_ends_by_a_person_is_what_has_happened_once() -> None:
    noted = {kind.code for kind in KINDS if kind.ends is Ends.NOTE}
    assert noted == {"ledger.rebuilt", "order.cancelled", "order.ticket_taken_back"}


def test_anchors_are_those_of_the_page_and_differ() -> None:
    anchors = [anchor(code) for code in PROBLEMS]
    assert len(set(anchors)) == len(anchors)
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert sorted(anchors) == sorted(re.sub(r"[^\w-]", "", each.lower()) for each in headings)


def test_beside_a_button_no_command_is_named() -> None:
    for kind in KINDS:
        if kind.buttons or kind.ends is Ends.NOTE:
            assert "tillbridge " not in (kind.fix_on_page or kind.fix), kind.code
        else:
            assert not kind.fix_on_page, kind.code


def test_every_page_that_tells_more_is_about_a_problem_that_exists() -> None:
    for begin in PAGES:
        assert any(code.startswith(begin) for code in PROBLEMS), begin


@pytest.mark.parametrize(
    ("code", "detail", "text"),
    [
        (
            "menu.items_refused",
            {"count": 1, "detail": "p3"},
            "The ordering service refused an item: p3",
        ),
        (
            "menu.items_refused",
            {"count": 2, "detail": "p3"},
            "The ordering service refused 2 items; the first: p3",
        ),
        (
            "receiver.certificate_ending",
            {"days": 1},
            "The certificate of the public address expires in a day.",
        ),
    ],
)
def test_one_of_something_is_told_as_one(code: str, detail: dict[str, object], text: str) -> None:
    assert OpenProblem(code, "main", "", 1, detail).text == text
