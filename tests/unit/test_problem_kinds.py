"""What an entry of the registry of problems comes to, and what an open problem says."""

import pytest

from tillbridge.core import problems
from tillbridge.core.i18n import Text
from tillbridge.core.problems import Ends, OpenProblem, ProblemKind, Scope, Severity, anchor


def kind(**fields: object) -> ProblemKind:
    return ProblemKind.of("x.y", {"severity": "warning", "text": "T", "fix": "F", **fields})


def opened(patch: pytest.MonkeyPatch, of: ProblemKind, **detail: object) -> OpenProblem:
    patch.setitem(problems.PROBLEMS, "x.y", of)
    return OpenProblem("x.y", "main", "p1", 7, detail)


def test_an_entry_becomes_a_kind_with_all_that_it_says() -> None:
    texts = {"text": "T", "one": "O", "fix": "F", "fix_on_page": "P"}
    entry = {"severity": "down", "ends": "day", "defaults": {"a": "x"}, "buttons": ["/b"], **texts}
    made = ProblemKind.of("x.y", entry)
    assert made == ProblemKind(
        "x.y", Severity.DOWN, "T", "F", Ends.DAY, "O", {"a": "x"}, ("/b",), "P"
    )
    shown = (made.text, made.one, made.fix, made.fix_on_page, made.defaults["a"])
    assert all(isinstance(each, Text) for each in shown), "in the reader's language"


def test_an_entry_that_says_little_ends_with_its_cause() -> None:
    assert kind() == ProblemKind("x.y", Severity.WARNING, "T", "F")
    assert kind().ends is Ends.CAUSE
    assert kind().buttons == ()


def test_the_words_of_the_registry_are_those_of_its_file() -> None:
    assert [each.value for each in Severity] == ["down", "warning"]
    assert [each.value for each in Ends] == ["cause", "day", "handled", "settled", "note"]


@pytest.mark.parametrize(
    ("ends", "seen"),
    [("cause", False), ("day", True), ("handled", False), ("settled", False), ("note", True)],
)
def test_what_is_over_once_it_is_seen(ends: str, seen: bool) -> None:
    assert kind(ends=ends).ends_when_seen is seen


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope("main", frozenset({"x.y", "x.z"})), True),
        (Scope("main", frozenset({"x.y"}), "p1"), True),
        (Scope("main", frozenset({"x.y"}), "p2"), False),
        (Scope("main", frozenset({"x.y"}), ""), False),
        (Scope("main", frozenset({"x.z"})), False),
        (Scope("other", frozenset({"x.y"})), False),
        (Scope.of_one("x.y", "main", "p1"), True),
        (Scope.of_one("x.y", "main"), False),
        (Scope.of_one("x.z", "main", "p1"), False),
    ],
)
def test_a_scope_answers_for_its_store_its_codes_and_its_subject(
    scope: Scope, covered: bool
) -> None:
    assert scope.covers("x.y", "main", "p1") is covered


def test_the_scope_of_a_code_alone_is_the_bridges_own() -> None:
    assert Scope.of_one("x.y") == Scope("", frozenset({"x.y"}), "")


def test_an_open_problem_is_told_by_code_store_and_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = opened(monkeypatch, kind())
    assert problem.key == ("x.y", "main", "p1")
    assert problem.kind.code == "x.y"


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        ({"count": 1}, "one in main"),
        ({"days": 1}, "one in main"),
        ({"count": 2}, "2 in main, p1"),
        ({"count": 0}, "0 in main, p1"),
        ({}, "? in main, p1"),
    ],
)
def test_a_text_is_filled_in_and_one_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, detail: dict[str, object], text: str
) -> None:
    several = kind(text="{count} in {store}, {subject}", one="one in {store}")
    assert opened(monkeypatch, several, **detail).text == text
    assert opened(monkeypatch, kind(text="{count}"), count=1).text == "1", "it has no text for one"


def test_a_default_stands_where_the_finder_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    of = kind(fix="ask {who}", defaults={"who": "anybody"})
    assert opened(monkeypatch, of).fix == "ask anybody"
    assert opened(monkeypatch, of, who="anna").fix == "ask anna"
    assert opened(monkeypatch, kind(text="{store}"), store="the finder's").text == "the finder's"


def test_a_fix_names_the_command_that_restarts_this_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "command_to", lambda act: f"systemctl {act}")
    of = kind(text="not {restart}", fix="run {restart}")
    assert opened(monkeypatch, of).fix == "run systemctl restart"
    assert opened(monkeypatch, kind(text="not {restart}")).text == "not "


def test_an_anchor_is_the_code_without_its_points() -> None:
    assert anchor("menu.held_twice") == "menuheld_twice"
