"""The help of a problem: what the file says, with its fields filled in, and where it is found."""

import tomllib

import pytest

from tillbridge.core import problems
from tillbridge.core.problems import (
    HELP_FILE,
    PROBLEMS,
    Ends,
    help_of,
    index,
    title_of,
)

ENTRIES = tomllib.loads(HELP_FILE.read_text("utf-8"))
TEXTS = {
    code: [
        *(entry[name] for name in ("title", "means", "why")),
        *(*entry["restaurant"], *entry["technician"]),
    ]
    for code, entry in ENTRIES.items()
}
CLOSES = {
    Ends.CAUSE: "By itself, as soon as the cause is gone.",
    Ends.DAY: "When you acknowledge it, or by itself after a day.",
    Ends.HANDLED: "When you mark the order as handled.",
    Ends.SETTLED: "When the ordering service accepts the update, the order is cancelled or "
    "completed, or you mark it as handled.",
    Ends.NOTE: "When you acknowledge it.",
}


def shown(code: str, *names: str) -> list[str]:
    found = help_of(code, *names)
    return [found.title, found.means, found.why, *found.restaurant, *found.technician]


@pytest.mark.parametrize("code", PROBLEMS)
def test_help_is_what_the_file_says_for_this_store(code: str) -> None:
    assert shown(code, "bar", "NOW") == [
        each.format(store="bar", restart="NOW") for each in TEXTS[code]
    ]
    assert help_of(code).code == code
    assert str(help_of(code).closes) == CLOSES[PROBLEMS[code].ends]
    assert str(title_of(code)) == ENTRIES[code]["title"]


def test_a_store_that_is_not_named_is_to_be_filled_in_and_this_bridge_is_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restart = "systemctl restart here"
    monkeypatch.setattr(problems, "command_to", {"restart": restart}.__getitem__)
    for code, texts in TEXTS.items():
        assert shown(code) == [each.format(store="STORE", restart=restart) for each in texts]


def test_an_unknown_code_is_its_own_title() -> None:
    assert title_of("no.such") == "no.such"


def test_each_code_is_in_one_group_under_its_title() -> None:
    listed = [entry for _group, entries in index() for entry in entries]
    assert sorted(listed) == sorted((code, title_of(code)) for code in PROBLEMS)
    for group, entries in index():
        assert group
        assert entries, group
