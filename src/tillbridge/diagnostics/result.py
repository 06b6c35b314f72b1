"""What a check has found: a level, a sentence, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import Found, OpenProblem, Severity


class Level(StrEnum):
    """How a link is. `skipped`: it could not be looked at, and the text says why."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


_BAD = {Level.FAILED, Level.WARNING}


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of a check; `details` are JSON values for machines and support.

    `code` is the problem that this is; with it texts and severity are the problem's.
    """

    level: Level
    text: str
    fix: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A finding, with the check's name, its store ("" for the bridge), and how long it took."""

    name: str
    store: str
    finding: Finding
    took_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as `doctor --json` shows it."""
        return {
            "name": self.name,
            "store": self.store,
            "level": str(self.finding.level),
            "code": self.finding.code,
            "text": self.finding.text,
            "fix": self.finding.fix,
            "took_ms": self.took_ms,
            "details": dict(self.finding.details),
        }


def ok(text: str, **details: object) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, text, "", details)


def warning(text: str, fix: str, **details: object) -> Finding:
    """Return what a person should look at."""
    return Finding(Level.WARNING, text, fix, details)


def failed(text: str, fix: str, **details: object) -> Finding:
    """Return what is broken."""
    return Finding(Level.FAILED, text, fix, details)


def skipped(text: str, fix: str = "", **details: object) -> Finding:
    """Return that there was nothing to look at, or no way to."""
    return Finding(Level.SKIPPED, text, fix, details)


def level_of(severity: Severity) -> Level:
    """Return the level of a problem."""
    return Level.FAILED if severity is Severity.DOWN else Level.WARNING


def of_problem(found: Found, store: str = "", /, **details: object) -> Finding:
    """Return a problem as a finding, in the words that every other surface uses."""
    problem = OpenProblem(found.code, store, found.subject, 0, found.detail)
    level = level_of(problem.kind.severity)
    return Finding(level, problem.text, problem.fix, details, problem.code)


def coded(finding: Finding, code: str) -> Finding:
    """Return a finding that something is wrong as that of a problem, in the check's own words."""
    return replace(finding, code=code) if finding.level in _BAD else finding


def report(results: Sequence[Result]) -> dict[str, Any]:
    """Return the whole examination: `ok` is false where something failed, or a problem is open."""
    levels = [result.finding.level for result in results]
    broken, odd = levels.count(Level.FAILED), levels.count(Level.WARNING)
    problems = sum(bool(each.finding.code) and each.finding.level in _BAD for each in results)
    return {
        "ok": not broken and not problems,
        "level": "failed" if broken else "warning" if odd else "ok",
        "text": _verdict(broken, odd, problems),
        "counts": {str(level): levels.count(level) for level in Level},
        "results": [result.to_json() for result in results],
    }


def _verdict(broken: int, odd: int, problems: int) -> str:
    if broken:
        return ngettext("{n} thing is broken.", "{n} things are broken.", broken).format(n=broken)
    if problems:
        return ngettext("{n} problem is open.", "{n} problems are open.", problems).format(
            n=problems
        )
    if odd:
        return ngettext(
            "Everything works; {n} thing should be looked at.",
            "Everything works; {n} things should be looked at.",
            odd,
        ).format(n=odd)
    return _("Everything works.")
