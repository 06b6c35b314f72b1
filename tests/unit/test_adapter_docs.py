"""docs/adapters/writing.md names the checks, levels and capabilities there are."""

import re
from pathlib import Path

from tillbridge.adapter.conformance import CAPABILITIES, CHECKS, LEVELS
from tillbridge.adapter.conformance.suite import DOCUMENTS, OF_NO_LEVEL

PAGE = (Path(__file__).resolve().parents[2] / "docs/adapters/writing.md").read_text("utf-8")


def table(name: str) -> list[list[str]]:
    part = PAGE.split(f"<!-- {name}:", 1)[1].split(f"<!-- /{name} -->", 1)[0]
    rows = re.findall(r"^\|(.+)\|$", part, re.MULTILINE)[2:]
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


def test_every_check_is_told() -> None:
    told = {row[0].strip("`"): row[1] for row in table("checks")}
    assert {check.name: check.title for check in CHECKS}.items() <= told.items()
    assert told.keys() == {check.name for check in CHECKS} | DOCUMENTS


def test_every_level_is_told_with_its_rules() -> None:
    told = {row[0]: tuple(re.findall(r"`(\w+)`", row[1])) for row in table("levels")}
    assert told == dict(LEVELS)


def test_every_rule_is_a_check_and_every_check_a_rule() -> None:
    rules = [rule for rules in LEVELS.values() for rule in rules]
    assert sorted(rules) == sorted([*({each.name for each in CHECKS} - OF_NO_LEVEL), *DOCUMENTS])


def test_every_capability_is_told() -> None:
    assert all(f"| `{name}` |" in PAGE for name in CAPABILITIES)
