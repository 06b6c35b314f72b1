"""All that `tillbridge adapter check` finds out about one adapter."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tillbridge.adapter.conformance import CHECKS, CheckResult, Outcome, Report, run_check
from tillbridge.adapter.conformance.quality import DOCUMENTS, NO_LEVEL, Quality, broken_promises
from tillbridge.adapter.conformance.subject import Subject
from tillbridge.pos.documents import DOCUMENTS_TO_CHECK
from tillbridge.pos.kit import Kit


@dataclass(frozen=True, slots=True)
class KitVerdict:
    """The report, what quality.toml makes of it, and the promises it breaks."""

    report: Report
    quality: Quality | None
    broken: tuple[str, ...]
    whole: bool = True  # whether all was tried

    @property
    def passed(self) -> bool:
        """Whether the adapter is what it says it is."""
        return not self.failures and not self.broken

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """Return what failed and counts: what quality.toml says is done, or all without one."""
        return tuple(
            result
            for result in self.report.results
            if result.outcome is Outcome.FAILED and self._counts(result.check)
        )

    @property
    def level(self) -> str:
        """The level that it reaches; none where something failed, or not all was tried."""
        reached = self.whole and self.passed
        return self.quality.level if self.quality is not None and reached else NO_LEVEL

    def exemption(self, check: str) -> str:
        """Return why a check does not apply; "" where it does."""
        return "" if self.quality is None else self.quality.exempt.get(check, "")

    def standing(self, result: CheckResult) -> str:
        """Return how a result is shown: its outcome, or `exempt` or `todo` as quality.toml says."""
        if result.outcome is Outcome.PASSED or self.quality is None:
            return result.outcome.value
        if result.check in self.quality.exempt:
            return "exempt"
        return result.outcome.value if result.check in self.quality.done else "todo"

    def _counts(self, check: str) -> bool:
        return self.quality is None or check in self.quality.done

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        exempt = {} if self.quality is None else dict(self.quality.exempt)
        standings = [
            {**result.to_json(), "standing": self.standing(result)}
            for result in self.report.results
        ]
        return {
            "report_version": 1,  # docs/adapters/report.schema.json
            **self.report.to_json(),
            "checks": standings,
            "passed": self.passed,
            "level": self.level,
            "claimed_level": NO_LEVEL if self.quality is None else self.quality.level,
            "exempt": exempt,
            "broken_promises": list(self.broken),
        }


@dataclass(frozen=True, slots=True)
class Trying:
    """One thing to try of an adapter; `run` tries it."""

    name: str
    title: str
    run: Callable[[], CheckResult]
    quality: Quality | None
    promised: bool  # whether it must pass

    @property
    def reason(self) -> str:
        """Why it does not apply; "" where it does."""
        return "" if self.quality is None else self.quality.exempt.get(self.name, "")

    def complaint(self, result: CheckResult) -> str:
        """Return what is wrong, and what to do; "" where nothing is."""
        if result.outcome is Outcome.FAILED and (self.quality is None or self.promised):
            return f"{result.title}: {result.text}\n\nWhat to do: {result.fix}"
        if result.outcome is Outcome.NOT_TRIED and self.promised:
            return f"quality.toml says that {self.name} is done, and it could not be tried: " + (
                result.text
            )
        if result.outcome is Outcome.PASSED and self.reason:
            return f"quality.toml says that {self.name} is exempt, and it passes: say so."
        return ""


def tryings(kit: Kit) -> tuple[Trying, ...]:
    """Return all there is to try, in the order of the report."""
    quality = kit.quality
    done = frozenset[str]() if quality is None else quality.done
    found = []
    if kit.rig is not None:
        subject = Subject(kit.rig, None if quality is None else quality.capabilities)
        for check in CHECKS:
            run = partial(run_check, check, subject)
            found.append(Trying(check.name, check.title, run, quality, check.name in done))
    for document in DOCUMENTS_TO_CHECK:
        run = partial(document.check, kit.adapter, kit.root, kit.told)
        promised = document.name in done and kit.root is not None
        found.append(Trying(document.name, document.title, run, quality, promised))
    return tuple(found)


def verdict_of(kit: Kit, results: Sequence[CheckResult]) -> KitVerdict:
    """Return what the results mean."""
    quality = kit.quality
    report = Report(kit.adapter.name, kit.adapter.api_version, tuple(results))
    # What lies around an adapter is not there where only its wheel is.
    seen = [each for each in results if kit.root is not None or each.check not in DOCUMENTS]
    broken: list[str] = []
    if quality is not None:
        broken += broken_promises(quality, replace(report, results=tuple(seen)))
        if quality.adapter != kit.adapter.name:
            broken.append(f"quality.toml is of {quality.adapter!r}, not of {kit.adapter.name!r}.")
    whole = len(results) == len(tryings(kit))
    return KitVerdict(report, quality, tuple(broken), whole=whole)


def check_kit(
    kit: Kit,
    *,
    only: Collection[str] = (),
    on_begin: Callable[[Trying], None] = lambda _trying: None,
) -> KitVerdict:
    """Run the suite on an adapter's rig, and look at what lies around it.

    An exempt check is run all the same: one that passes needs no exemption. So is one that is
    still to do; it may fail.
    """
    results = []
    for trying in tryings(kit):
        if not only or trying.name in only:
            on_begin(trying)
            results.append(trying.run())
    return verdict_of(kit, results)
