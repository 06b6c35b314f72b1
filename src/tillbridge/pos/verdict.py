"""All that `tillbridge adapter check` finds out about one adapter."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.adapter.conformance import (
    CHECKS,
    CannotDo,
    Check,
    CheckResult,
    Outcome,
    Report,
    Violation,
    case_folders,
    run_check,
)
from tillbridge.adapter.conformance.subject import Subject
from tillbridge.adapter.conformance.suite import (
    CASES,
    DOCUMENTS,
    NO_LEVEL,
    OF_NO_LEVEL,
    Quality,
    broken_promise,
    complaint_of,
    judged,
    look_at_case,
)
from tillbridge.adapter.conformance.witness import Witness
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.pos.kit import Kit, sample_options
from tillbridge.pos.loader import first_fault

_CANNOT = re.compile(r"^#+ .*\bcannot\b", re.IGNORECASE | re.MULTILINE)


# -- what lies around an adapter: each returns what it saw, or raises as a check


def _readme(kit: Kit, root: Path, _witness: Witness) -> str:
    path = root / "README.md"
    if not path.is_file():
        raise Violation("There is no README.md.", fix="Say what it reads, with which options.")
    text = path.read_text("utf-8")
    options = kit.adapter.options.model_fields if kit.documented is None else kit.documented
    missing = [name for name in options if f"`{name}`" not in text]
    if missing:
        raise Violation(
            f"README.md does not name the option {missing[0]}.",
            fix="Name each option as `option`, and say what it does.",
        )
    if not _CANNOT.search(text):
        raise Violation(
            "README.md does not say what the adapter cannot do.",
            fix='Add a section with "cannot" in its heading.',
        )
    return _counted(options, "option")


def _sample(kit: Kit, root: Path, _witness: Witness) -> str:
    given = sample_options(root)
    try:
        kit.adapter.options.model_validate(given)
    except ValidationError as failure:
        raise Violation(
            f"sample.toml: {first_fault(failure)}", fix="Correct the option, or the sample."
        ) from failure
    return _counted(given, "option")


def _cases(kit: Kit, root: Path, witness: Witness) -> str:
    folders = case_folders(root / "tests/cases")
    if not folders:
        raise CannotDo("There is no folder in tests/cases/.")
    for folder in folders:
        look_at_case(kit.adapter, folder, witness)
    return _counted(folders, "case")


def _counted(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


_Look = Callable[[Kit, Path, Witness], str]


def _look_at(kit: Kit, look: _Look, witness: Witness) -> str:
    if kit.root is None:
        raise CannotDo("There is no source checkout of it here.")
    return look(kit, kit.root, witness)


_AROUND: Sequence[tuple[str, str, _Look]] = (
    ("readme", "README.md names options and limits", _readme),
    ("sample", "sample.toml is right", _sample),
    ("cases", CASES, _cases),
)


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
        """Return what failed and counts: what quality.toml says is done, or all without one.

        What is exempt counts too where the adapter crashed or showed a secret.
        """
        return tuple(
            result
            for result in self.report.results
            if result.outcome is Outcome.FAILED and self._counts(result)
        )

    @property
    def level(self) -> str:
        """The level that it reaches; none where something failed, or not all was tried."""
        reached = self.whole and self.passed
        return self.quality.level if self.quality is not None and reached else NO_LEVEL

    def exemption(self, check: str) -> str:
        """Return why a check does not apply; "" where it does."""
        return "" if self.quality is None else self.quality.exempt.get(check, "")

    def shown_outcome(self, result: CheckResult) -> str:
        """Return how a result is shown: its outcome, or `exempt` or `todo` as quality.toml says."""
        if result.outcome is Outcome.PASSED or self.quality is None:
            return result.outcome.value
        if result.outcome is Outcome.NOT_TRIED and result.check in OF_NO_LEVEL:
            return result.outcome.value  # nothing is to be done for a capability that is optional
        if result.check in self.quality.exempt and not result.inexcusable:
            return "exempt"
        return result.outcome.value if self._counts(result) else "todo"

    def _counts(self, result: CheckResult) -> bool:
        if self.quality is None or result.check in self.quality.done:
            return True
        return result.check in self.quality.exempt and result.inexcusable

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        exempt = {} if self.quality is None else dict(self.quality.exempt)
        standings = [
            {**result.to_json(), "standing": self.shown_outcome(result)}
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
class PlannedCheck:
    """One check of an adapter that is to be made; `run` makes it.

    `promised` is whether quality.toml says that it passes.
    """

    name: str
    title: str
    run: Callable[[], CheckResult]
    quality: Quality | None
    promised: bool

    @property
    def exempt(self) -> str:
        """Why it does not apply, "" where it does."""
        return "" if self.quality is None else self.quality.exempt.get(self.name, "")

    def complaint(self, result: CheckResult) -> str:
        """Return what is wrong, and what to do; "" where nothing is."""
        counts = self.quality is None or self.promised or (self.exempt and result.inexcusable)
        if result.outcome is Outcome.FAILED and counts:
            return complaint_of(result)
        if self.quality is None or not (self.exempt or self.promised):
            return ""
        return broken_promise(self.quality, result)


def planned_checks(kit: Kit) -> tuple[PlannedCheck, ...]:
    """Return all checks there are for an adapter, in the order of the report."""
    quality = kit.quality
    looks: list[tuple[str, str, Callable[[], CheckResult]]] = []
    if kit.rig is not None:
        subject = Subject(kit.rig) if quality is None else quality.subject(kit.rig)
        looks = [(each.name, each.title, partial(run_check, each, subject)) for each in CHECKS]
    witness = Witness(kit.adapter, kit.rig)
    for name, title, look in _AROUND:
        check, seen = Check(name, title, lambda _subject: ""), partial(_look_at, kit, look, witness)
        looks.append((name, title, partial(judged, check, seen, witness)))
    done = frozenset() if quality is None else quality.done
    there = done if kit.root is not None else done - DOCUMENTS
    return tuple(PlannedCheck(*each, quality, each[0] in there) for each in looks)


def verdict_of(kit: Kit, results: Sequence[CheckResult]) -> KitVerdict:
    """Return what the results mean."""
    quality = kit.quality
    report = Report(kit.adapter.name, kit.adapter.api_version, tuple(results))
    # What lies around an adapter is not there where only its wheel is.
    seen = [each for each in results if kit.root is not None or each.check not in DOCUMENTS]
    broken: list[str] = []
    if quality is not None:
        broken += filter(None, (broken_promise(quality, each) for each in seen))
        if quality.is_old:
            missing = ", ".join(quality.missing(quality.level))
            broken.append(
                f"quality.toml claims {quality.level}, and its rules reach {quality.reached}: the"
                f' level has new ones ({missing}). Say of each "done", "todo", or why it is exempt.'
            )
        if quality.adapter != kit.adapter.name:
            broken.append(f"quality.toml is of {quality.adapter!r}, not of {kit.adapter.name!r}.")
    whole = len(results) == len(planned_checks(kit))
    return KitVerdict(report, quality, tuple(broken), whole=whole)


def check_kit(
    kit: Kit,
    *,
    only: Collection[str] = (),
    on_begin: Callable[[PlannedCheck], None] = lambda _check: None,
) -> KitVerdict:
    """Run the suite on an adapter's rig, and look at what lies around it.

    An exempt check is run anyway: one that passes needs no exemption. So is one that is
    still to do; it may fail.
    """
    results = []
    for check in planned_checks(kit):
        if not only or check.name in only:
            on_begin(check)
            results.append(check.run())
    return verdict_of(kit, results)


def write_report(path: Path, verdict: KitVerdict) -> None:
    """Write the JSON report, by docs/adapters/report.schema.json. Raises BridgeError."""
    _write(path, json.dumps(verdict.to_json(), indent=2, ensure_ascii=False) + "\n")


def write_junit(path: Path, verdict: KitVerdict) -> None:
    """Write the report as JUnit XML: what is exempt or to do counts as skipped."""
    _write(path, junit(verdict))


def junit(verdict: KitVerdict) -> str:
    """Return the report as JUnit XML."""
    name = f"tillbridge.{verdict.report.adapter}"
    suite = ET.Element("testsuite", name=name)
    failures = {each.check for each in verdict.failures}
    skipped = 0
    for result in verdict.report.results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=name,
            name=result.check,
            time=f"{result.took_ms / 1000:.3f}",
        )
        if result.check in failures:
            failed = ET.SubElement(case, "failure", message=_plain(result.text))
            failed.text = _plain(result.fix)
        elif result.outcome is not Outcome.PASSED:
            skipped += 1
            reason = verdict.exemption(result.check) or result.text
            ET.SubElement(case, "skipped", message=_plain(reason))
    if verdict.broken:
        case = ET.SubElement(suite, "testcase", classname=name, name="quality", time="0")
        ET.SubElement(case, "failure", message=_plain(" ".join(verdict.broken)))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(failures) + bool(verdict.broken)))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    suite.set("time", f"{sum(each.took_ms for each in verdict.report.results) / 1000:.3f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Remove what XML cannot hold: a check may quote names with control characters."""
    return "".join(each for each in text if each >= " " or each in "\n\t")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as failure:
        raise BridgeError(
            _("The report cannot be written: {detail}").format(detail=failure),
            fix=_("Choose a file in a folder that exists."),
        ) from failure
