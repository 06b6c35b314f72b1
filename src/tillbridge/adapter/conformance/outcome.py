"""What came of the checks: values that a machine and a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


class Violation(Exception):
    """What the adapter did against the rule; `fix` says what it should do."""

    def __init__(self, text: str, *, fix: str) -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: `text` says what was found, or why it was not tried; `took_ms` is its time."""

    check: str
    title: str
    outcome: Outcome
    text: str = ""
    fix: str = ""
    took_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "check": self.check,
            "title": self.title,
            "outcome": self.outcome.value,
            "text": self.text,
            "fix": self.fix,
            "took_ms": self.took_ms,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one adapter, in the suite's order."""

    adapter: str
    api_version: int
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(each.outcome is not Outcome.FAILED for each in self.results)

    def by_check(self) -> Mapping[str, CheckResult]:
        """Return the results by the name of their check."""
        return {each.check: each for each in self.results}

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        counts = {
            outcome.value.replace(" ", "_"): sum(each.outcome is outcome for each in self.results)
            for outcome in Outcome
        }
        return {
            "adapter": self.adapter,
            "api_version": self.api_version,
            "passed": self.passed,
            "counts": counts,
            "checks": [each.to_json() for each in self.results],
        }
