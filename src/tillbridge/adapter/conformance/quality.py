"""Levels, kept as data: `quality.toml` beside an adapter says what it reaches, and is checked.

A rule is `"done"`, or exempt with a reason; a level is reached when all its rules, and those of the
levels below, are one or the other.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tillbridge.adapter.conformance.subject import CAPABILITIES, Outcome, Report

# Bronze: menus can be trusted. Silver: orders can be trusted. Gold: whatever a restaurant asks for.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "bronze": (
        "declares",
        "reads",
        "unicode",
        "rounding",
        "identity",
        "half_export",
        "readme",
        "sample",
    ),
    "silver": (
        "same_order_twice",
        "killed",
        "lost_answer",
        "cancel",
        "offline",
        "slow",
        "probe",
        "large_menu",
        "cases",
    ),
    "gold": (
        "no_decimals",
        "three_decimals",
        "unknown_item",
        "closed",
        "sold_out",
        "tables",
        "news",
    ),
}
# Rules about files that only a source checkout has; the suite cannot see them in a wheel.
DOCUMENTS = frozenset({"readme", "sample", "cases"})
# Checks that no level asks for: a new one is tried and shown for one minor release first.
OF_NO_LEVEL = frozenset({"changes", "late_write", "lists"})
NO_LEVEL = "none"


class QualityError(ValueError):
    """quality.toml is not right; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What quality.toml says: `exempt` has the reason for each rule that does not apply."""

    adapter: str
    capabilities: frozenset[str]
    level: str
    done: frozenset[str]
    exempt: Mapping[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> str:
        """Return the highest level whose rules are all done or exempt."""
        reached = NO_LEVEL
        for level, rules in LEVELS.items():
            if not all(rule in self.done or rule in self.exempt for rule in rules):
                break
            reached = level
        return reached

    def missing(self, level: str) -> tuple[str, ...]:
        """Return the rules between this adapter and a level."""
        wanted = [
            rule for name in list(LEVELS)[: list(LEVELS).index(level) + 1] for rule in LEVELS[name]
        ]
        return tuple(rule for rule in wanted if rule not in self.done and rule not in self.exempt)


def read_quality(path: Path) -> Quality:
    """Read quality.toml. Raises QualityError."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise QualityError(f"{path}: {failure}") from failure
    return quality_of(table, str(path))


def quality_of(table: Mapping[str, Any], place: str) -> Quality:
    """Return what a parsed quality.toml says. Raises QualityError."""
    strange = sorted(table.keys() - {"adapter", "capabilities", "level", "rules"})
    if strange:
        raise QualityError(f"{place}: {strange[0]} is nothing that quality.toml knows.")
    level = table.get("level")
    if level != NO_LEVEL and level not in LEVELS:
        raise QualityError(f'{place}: level must be one of {", ".join(LEVELS)}, or "{NO_LEVEL}".')
    capabilities = frozenset(table.get("capabilities", ()))
    if odd := sorted(capabilities - CAPABILITIES.keys()):
        raise QualityError(
            f"{place}: {odd[0]} is no capability; there are {', '.join(CAPABILITIES)}."
        )
    done, exempt = _rules(table.get("rules", {}), place)
    quality = Quality(str(table.get("adapter", "")), capabilities, str(level), done, exempt)
    if quality.reached != level:
        raise QualityError(
            f"{place}: it claims the level {level}, and its rules reach {quality.reached}"
            + (f" (missing: {', '.join(quality.missing(str(level)))})." if level in LEVELS else ".")
        )
    return quality


def broken_promises(quality: Quality, report: Report) -> tuple[str, ...]:
    """Return what quality.toml says and the checks do not bear out, one sentence each."""
    found = []
    for result in report.results:
        promised = result.check in quality.done
        if promised and result.outcome is Outcome.NOT_TRIED:
            found.append(
                f"{result.check} is said to be done, and could not be tried: {result.text}"
            )
        if result.outcome is Outcome.PASSED and result.check in quality.exempt:
            found.append(f"{result.check} is said to be exempt, and passes: say that it is done.")
    return tuple(found)


def _rules(table: Mapping[str, Any], place: str) -> tuple[frozenset[str], Mapping[str, str]]:
    known = {rule for rules in LEVELS.values() for rule in rules}
    done, exempt = set(), {}
    for rule, value in table.items():
        if rule not in known:
            raise QualityError(f"{place}: {rule} is no rule; there are {', '.join(sorted(known))}.")
        match value:
            case "done":
                done.add(rule)
            case "todo":
                pass
            case {"exempt": str(reason)} if len(reason.split()) > 2:
                exempt[rule] = reason
            case _:
                raise QualityError(
                    f'{place}: {rule} must be "done", "todo", or {{ exempt = "why it cannot be" }}.'
                )
    return frozenset(done), exempt
