"""The conformance suite: every check in the order in which a vendor meets them, and the levels.

Levels are data: `quality.toml` beside an adapter declares what it reaches, and is checked. A
rule is `"done"`, or exempt with a reason; a level is reached when all its rules, and those of the
levels below, are one or the other.
"""

import json
import time
import tomllib
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tillbridge.adapter.conformance import changes, content, reading, running, writing
from tillbridge.adapter.conformance.cases import (
    Case,
    CaseError,
    Difference,
    case_folders,
    compare_case,
)
from tillbridge.adapter.conformance.rig import CannotDo, Rig, RigFailed
from tillbridge.adapter.conformance.subject import (
    CAPABILITIES,
    CheckResult,
    Outcome,
    Report,
    Subject,
    Violation,
)
from tillbridge.adapter.conformance.witness import Place, Witness
from tillbridge.adapter.failures import ExportUnreadable, PosFailure
from tillbridge.adapter.registration import API_VERSION, Adapter


@dataclass(frozen=True, slots=True)
class Check:
    """One rule: `run` returns what it saw, raises Violation, or CannotDo where it does not fit.

    `about` are the methods that it tries, the first that an adapter has counting.
    """

    name: str
    title: str
    run: Callable[[Subject], str]
    about: tuple[str, ...] = ()


_CHANGES = ("read_changes",)
_READS = ("read_catalogue",)
_SOLD_OUT = ("read_availability", *_READS)
_WRITES = ("write_ticket",)
_HEALTH = ("health",)

CHECKS = (
    Check("declares", "does what it declares", running.does_what_it_declares),
    Check("reads", "reads what is sold", reading.reads_what_is_sold, _READS),
    Check("unicode", "keeps names as they are", reading.keeps_names, _READS),
    Check("rounding", "keeps prices exact", reading.keeps_prices_exact, _READS),
    Check("no_decimals", "reads yen", reading.knows_currencies_without_decimals, _READS),
    Check("three_decimals", "reads dinars", reading.knows_currencies_with_three_decimals, _READS),
    Check("variants", "reads variants with their prices", reading.reads_variants, _READS),
    Check("add_ons", "reads add-ons with their prices", reading.reads_add_ons, _READS),
    Check("identity", "keeps ids when the till exports again", reading.keeps_ids, _READS),
    Check("large_menu", "reads 5,000 items", reading.reads_five_thousand_items, _READS),
    Check("changes", "reports the same by changes", changes.reports_the_same_by_changes, _CHANGES),
    Check("half_export", "does not trust half an export", reading.distrusts_half_an_export, _READS),
    Check("sold_out", "reports what is sold out", reading.reports_sold_out_items, _SOLD_OUT),
    Check("sold_out_until", "reports until when", reading.reports_until_when, _SOLD_OUT),
    Check("tables", "reads tables", reading.reads_tables, ("read_tables",)),
    Check("same_order_twice", "same order twice, one ticket", writing.writes_one_ticket, _WRITES),
    Check("content", "writes all that was ordered", content.writes_what_was_ordered, _WRITES),
    Check("killed", "killed while writing, one ticket", writing.survives_being_killed, _WRITES),
    Check(
        "lost_answer", "timed out but applied, one ticket", writing.survives_a_lost_answer, _WRITES
    ),
    Check(
        "late_write",
        "hung while writing, one ticket left",
        writing.survives_hanging_writes,
        _WRITES,
    ),
    Check("lists", "lists tickets, cancels the one", writing.lists_its_tickets, ("list_tickets",)),
    Check("unknown_item", "refuses unknown items by name", writing.refuses_unknown_items, _WRITES),
    Check("closed", "says when the store is closed", writing.refuses_when_closed, _WRITES),
    Check("cancel", "cancels once and for all", writing.cancels_safely, ("cancel_ticket",)),
    Check(
        "news",
        "returns updates until they are handled",
        running.returns_updates_until_handled,
        ("read_updates",),
    ),
    Check("offline", "reports offline, and recovers", running.goes_offline_and_comes_back, _HEALTH),
    Check("slow", "does not hang with a slow till", running.does_not_hang, _HEALTH),
    Check("probe", "probes without side effects", running.probes_without_side_effects, _HEALTH),
)


# -- levels

# Bronze: menus can be trusted. Silver: orders can be trusted. Gold: whatever a restaurant asks for.
_RULES = {
    "bronze": "declares reads unicode rounding variants add_ons identity half_export readme sample",
    "silver": "same_order_twice content killed lost_answer cancel offline slow probe large_menu"
    " cases",
    "gold": "no_decimals three_decimals unknown_item closed sold_out sold_out_until tables news",
}
LEVELS: Mapping[str, tuple[str, ...]] = {
    level: tuple(rules.split()) for level, rules in _RULES.items()
}
# Rules about files that only a source checkout has; the suite cannot see them in a wheel.
DOCUMENTS = frozenset({"readme", "sample", "cases"})
# Checks that no level asks for: a new one is tried and shown for one minor release first.
OF_NO_LEVEL = frozenset({"changes", "late_write", "lists"})
# Rules of levels that a quality.toml written before does not name: what is missing is shown.
NEW_RULES = frozenset({"content", "variants", "add_ons", "sold_out_until"})
NO_LEVEL = "none"


class QualityError(ValueError):
    """quality.toml is not right; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What quality.toml says: `exempt` has the reason for each rule that does not apply.

    `not_kept` has the reason for each part of an order that the till does not keep.
    """

    adapter: str
    capabilities: frozenset[str]
    level: str
    done: frozenset[str]
    exempt: Mapping[str, str] = field(default_factory=dict)
    not_kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> str:
        """Return the highest level whose rules are all done or exempt."""
        reached = NO_LEVEL
        for level, rules in LEVELS.items():
            if not all(rule in self.done or rule in self.exempt for rule in rules):
                break
            reached = level
        return reached

    @property
    def is_old(self) -> bool:
        """Whether it was written before some rules, and nothing else is missing."""
        if self.level not in LEVELS:
            return False
        missing = self.missing(self.level)
        return bool(missing) and NEW_RULES.issuperset(missing)

    def subject(self, rig: type[Rig]) -> Subject:
        """Return what the checks work on."""
        return Subject(rig, self.capabilities, self.not_kept)

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
    strange = sorted(table.keys() - {"adapter", "capabilities", "level", "rules", "not_kept"})
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
    quality = Quality(
        str(table.get("adapter", "")),
        capabilities,
        str(level),
        done,
        exempt,
        _not_kept(table, place),
    )
    if quality.reached != level and not quality.is_old:
        raise QualityError(
            f"{place}: it claims the level {level}, and its rules reach {quality.reached}"
            + (f" (missing: {', '.join(quality.missing(str(level)))})." if level in LEVELS else ".")
        )
    return quality


def broken_promise(quality: Quality, result: CheckResult) -> str:
    """Return what quality.toml says of a check and its result does not bear out; "" for nothing."""
    name = result.check
    if name in quality.done and result.outcome is Outcome.NOT_TRIED:
        return f"quality.toml says that {name} is done, and it could not be tried: {result.text}"
    if name in quality.exempt and result.outcome is Outcome.PASSED:
        return f"quality.toml says that {name} is exempt, and it passes: say that it is done."
    if name in quality.exempt and result.inexcusable:
        return f"quality.toml says that {name} is exempt: that covers no crash and no secret shown."
    return ""


def _not_kept(table: Mapping[str, Any], place: str) -> Mapping[str, str]:
    reasons = table.get("not_kept", {})
    for name, reason in reasons.items():
        if name not in content.KEPT:
            raise QualityError(
                f"{place}: {name} cannot be under [not_kept]; there are {', '.join(content.KEPT)}."
            )
        if not _is_reason(reason):
            raise QualityError(
                f'{place}: {name} must be the reason: {name} = "why it is not kept".'
            )
    return dict(reasons)


def _is_reason(text: object) -> bool:
    return isinstance(text, str) and len(text.split()) > 2


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
            case {"exempt": reason} if _is_reason(reason):
                exempt[rule] = reason
            case _:
                raise QualityError(
                    f'{place}: {rule} must be "done", "todo", or {{ exempt = "why it cannot be" }}.'
                )
    return frozenset(done), exempt


# -- running them


def run_check(check: Check, subject: Subject) -> CheckResult:
    """Run one check on a new till. An exception in the adapter is a failure."""
    return judged(check, lambda: check.run(subject), subject.witness)


def judged(check: Check, look: Callable[[], str], witness: Witness) -> CheckResult:
    """Return the result of a check by what `look` returns or raises."""
    began = time.monotonic()
    outcome, text, fix, place, way = Outcome.FAILED, "", "", "", ""
    crashed = False
    with witness.listening():
        try:
            outcome, text = Outcome.PASSED, look()
        except CannotDo as reason:
            outcome, text = Outcome.NOT_TRIED, reason.reason
        except Violation as violation:
            text, fix = violation.text, violation.fix
            place = place_of(violation, witness, check.about)
        except Exception as failure:  # noqa: BLE001 -- whatever an adapter raises that it should not
            witness.check_value(failure)
            way = "".join(traceback.format_exception(failure))
            raised_at = witness.place_of(failure)
            crashed = not _is_foreseen(failure, raised_at)
            place, text, fix = _raised(failure, raised_at)
            if not place and not isinstance(failure, RigFailed) and hasattr(failure, "fix"):
                # of a program, in its own language
                place = witness.place_in_stderr() or witness.place_of_method(
                    filter(None, (witness.last_method(), *check.about))
                )
    if outcome is Outcome.FAILED and (tail := witness.stderr_tail()):
        text += f"\nThe program wrote last: {tail}"
    witness.check_stderr()
    if witness.leaks:
        outcome, place = Outcome.FAILED, witness.leaked_at
        text = "\n".join([f"{'; '.join(witness.leaks)}.", *([text] if fix else [])])
        fix = f"Show no secret: log neither options nor addresses with keys in them. {fix}".strip()
    elif place:
        text = f"{place}: {text}"
    return CheckResult(
        check.name,
        check.title,
        outcome,
        witness.without_secrets(text),
        fix,
        round((time.monotonic() - began) * 1000),
        place.partition(" ")[0],
        witness.without_secrets(way),
        crashed or bool(witness.leaks),
    )


def place_of(violation: Violation, witness: Witness, about: Iterable[str] = ()) -> str:
    """Return the place of the vendor's code that a violation is about; "" where none is known."""
    cause = violation.__cause__
    asked = witness.last_method() if cause else ""
    return (
        witness.refused.get(violation.of_row, "")
        or (_where(witness.place_of(cause)) or witness.place_in_stderr() if cause else "")
        or witness.place_of_method(filter(None, (violation.method, asked, *about)))
    )


_RIGS_FAULT = "This is the rig's fault, not the adapter's"


def _where(place: Place | None) -> str:
    return "" if place is None else f"{place} in {place.function}"


def _is_foreseen(failure: Exception, place: Place | None) -> bool:
    """Whether it is a failure of the API, or the rig's and not the adapter's."""
    if isinstance(failure, RigFailed) or (place is not None and place.in_rig):
        return True
    return isinstance(failure, PosFailure | ExportUnreadable)


def _raised(failure: Exception, place: Place | None) -> tuple[str, str, str]:
    """Return where it was raised, what is wrong, and what to do."""
    kind, where = type(failure).__name__, _where(place)
    if isinstance(failure, RigFailed):
        return failure.place or where, str(failure), failure.fix or f"{_RIGS_FAULT}: mend the rig."
    said = f"{kind}: {failure}".removesuffix(": ")
    if place is not None and place.in_rig:
        return where, said, f"{_RIGS_FAULT}: mend {place.file}, line {place.line}."
    if isinstance(failure, PosFailure | ExportUnreadable):
        fix = (
            f"Correct what this line asks the till, or what the rig answers. {kind} is for another"
            " case: docs/adapters/writing.md, section 5."
        )
        return where, f"raised {kind} while the till was there and could do it: {failure}", fix
    mend = "" if place is None else f"Mend {place.file}, line {place.line}. "
    fix = f"{mend}Let nothing out but the failures of tillbridge.adapter."
    return where, said, getattr(failure, "fix", "") or fix


def run_suite(
    rig: type[Rig],
    *,
    declared: frozenset[str] | None = None,
    only: Collection[str] = (),
    on_begin: Callable[[Check], None] = lambda _check: None,
) -> Report:
    """Run all checks, or those named in `only`, on tills of this kind."""
    subject = Subject(rig, declared)
    results = []
    for check in CHECKS:
        if not only or check.name in only:
            on_begin(check)
            results.append(run_check(check, subject))
    return Report(rig.adapter.name, API_VERSION, tuple(results))


def conformance_tests(rig: type[Rig], quality: Quality | None = None) -> Callable[..., None]:
    """Return a test for each check; with `quality`, only for those that it declares done.

    A check that is declared done but cannot be tried fails.
    """
    import pytest  # noqa: PLC0415 -- only a vendor's tests have pytest

    subject = Subject(rig) if quality is None else quality.subject(rig)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_conformance(check: Check, record_property: Callable[[str, object], None]) -> None:
        if quality is not None and check.name in quality.exempt:
            pytest.skip(f"exempt: {quality.exempt[check.name]}")
        if quality is not None and check.name not in quality.done:
            pytest.skip("todo, as quality.toml says")
        result = run_check(check, subject)
        record_property("conformance", json.dumps(result.to_json()))
        if result.outcome is Outcome.FAILED:
            pytest.fail(complaint_of(result), pytrace=False)
        if quality is not None and (broken := broken_promise(quality, result)):
            pytest.fail(broken, pytrace=False)
        if result.outcome is Outcome.NOT_TRIED:
            pytest.skip(f"not tried: {result.text}")

    return test_conformance


def case_tests(adapter: Adapter, folder: Path) -> Callable[..., None]:
    """Return a test for each case folder below `folder`."""
    import pytest  # noqa: PLC0415 -- only a vendor's tests have pytest

    @pytest.mark.parametrize("case_folder", case_folders(folder), ids=lambda path: path.name)
    def test_case(case_folder: Path) -> None:
        witness = Witness(adapter)
        check = Check("cases", CASES, lambda _subject: "")
        result = judged(check, lambda: look_at_case(adapter, case_folder, witness), witness)
        if result.outcome is Outcome.FAILED:
            pytest.fail(complaint_of(result), pytrace=False)

    return test_case


CASES = "case folders are read as expected"


def look_at_case(adapter: Adapter, folder: Path, witness: Witness) -> str:
    """Read a case. Raises Violation where it is read differently, or is not right."""
    try:
        case = Case.of(folder)
        difference = compare_case(adapter, case, witness.opened)
    except CaseError as failure:
        raise Violation(str(failure), fix="Correct the case.") from None
    if difference.text:
        raise violation_of(case, difference)
    return folder.name


def violation_of(case: Case, difference: Difference) -> Violation:
    """Return what is wrong where a case is read differently."""
    violation = Violation(
        f"{case.folder.name} is read differently:\n{difference.text}",
        fix="Correct the adapter; or, if the reading is right, expected.json.",
        method=f"read_{difference.part}",
        of_row=difference.refused,
    )
    violation.__cause__ = difference.failure
    return violation


def complaint_of(result: CheckResult) -> str:
    """Return what is wrong, and what to do, of a check that failed."""
    return f"{result.title}: {result.text}\n\nWhat to do: {result.fix}"
