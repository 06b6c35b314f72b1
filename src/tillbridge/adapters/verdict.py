"""All that `tillbridge adapter check` finds out about one adapter."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from tillbridge.adapter.conformance import Check, CheckResult, Outcome, Report, run_suite
from tillbridge.adapter.conformance.quality import NO_LEVEL, Quality, broken_promises
from tillbridge.adapters.documents import document_results
from tillbridge.adapters.kit import Kit


@dataclass(frozen=True, slots=True)
class KitVerdict:
    """The report, what quality.toml makes of it, and the promises it breaks."""

    report: Report
    quality: Quality | None
    broken: tuple[str, ...]

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
        """The level that it reaches; none where something failed."""
        return self.quality.level if self.quality is not None and self.passed else NO_LEVEL

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
            **self.report.to_json(),
            "checks": standings,
            "passed": self.passed,
            "level": self.level,
            "claimed_level": NO_LEVEL if self.quality is None else self.quality.level,
            "exempt": exempt,
            "broken_promises": list(self.broken),
        }


def check_kit(
    kit: Kit,
    *,
    only: Collection[str] = (),
    on_begin: Callable[[Check], None] = lambda _check: None,
) -> KitVerdict:
    """Run the suite on an adapter's rig, and look at what lies around it.

    An exempt check is run all the same: one that passes needs no exemption. So is one that is
    still to do; it may fail.
    """
    quality = kit.quality
    results: list[CheckResult] = []
    if kit.rig is not None:
        declared = None if quality is None else quality.capabilities
        results += run_suite(kit.rig, declared=declared, only=only, on_begin=on_begin).results
    if not only:
        results += document_results(kit.adapter, kit.root, kit.told)
    report = Report(kit.adapter.name, kit.adapter.api_version, tuple(results))
    broken = [] if quality is None else list(broken_promises(quality, report))
    if quality is not None and quality.adapter != kit.adapter.name:
        broken.append(f"quality.toml is of {quality.adapter!r}, not of {kit.adapter.name!r}.")
    return KitVerdict(report, quality, tuple(broken))
