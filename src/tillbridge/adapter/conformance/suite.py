"""The conformance suite: every check, in the order in which a vendor meets them."""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter.conformance import changes, reading, running, writing
from tillbridge.adapter.conformance.cases import Case, case_folders, run_case
from tillbridge.adapter.conformance.quality import Quality
from tillbridge.adapter.conformance.rig import CannotDo, Rig
from tillbridge.adapter.conformance.subject import CheckResult, Outcome, Report, Subject, Violation
from tillbridge.adapter.registration import API_VERSION, Adapter


@dataclass(frozen=True, slots=True)
class Check:
    """One rule: `run` returns what it saw, raises Violation, or CannotDo where it does not fit."""

    name: str
    title: str
    run: Callable[[Subject], str]


CHECKS = (
    Check("declares", "does what it declares", running.does_what_it_declares),
    Check("reads", "reads what is sold", reading.reads_what_is_sold),
    Check("unicode", "keeps names as they are", reading.keeps_names),
    Check("rounding", "keeps prices exact", reading.keeps_prices_exact),
    Check("no_decimals", "reads yen", reading.knows_currencies_without_decimals),
    Check("three_decimals", "reads dinars", reading.knows_currencies_with_three_decimals),
    Check("identity", "keeps ids when the till exports again", reading.keeps_ids),
    Check("large_menu", "reads 5,000 items", reading.reads_five_thousand_items),
    Check("changes", "tells the same by changes", changes.tells_the_same_by_changes),
    Check("half_export", "distrusts half an export", reading.distrusts_half_an_export),
    Check("sold_out", "tells what is sold out", reading.tells_what_is_sold_out),
    Check("tables", "reads tables", reading.reads_tables),
    Check("same_order_twice", "same order twice, one ticket", writing.writes_one_ticket),
    Check("killed", "killed while writing, one ticket", writing.survives_being_killed),
    Check("lost_answer", "timed out but applied, one ticket", writing.survives_a_lost_answer),
    Check("late_write", "hung while writing, one ticket left", writing.survives_hanging_writes),
    Check("lists", "lists tickets, cancels the one", writing.lists_its_tickets),
    Check("unknown_item", "refuses unknown items by name", writing.refuses_unknown_items),
    Check("closed", "says when the store is closed", writing.refuses_when_closed),
    Check("cancel", "cancels once and for all", writing.cancels_safely),
    Check("news", "tells news until it is handled", running.tells_news_until_handled),
    Check("offline", "says offline, and comes back", running.goes_offline_and_comes_back),
    Check("slow", "does not hang with a slow till", running.does_not_hang),
    Check("probe", "probes without side effects", running.probes_without_side_effects),
)


def run_check(check: Check, subject: Subject) -> CheckResult:
    """Run one check on a till of its own. An exception of the adapter is a failure of it."""
    began = time.monotonic()
    outcome, text, fix = _judge(check, subject)
    took_ms = round((time.monotonic() - began) * 1000)
    return CheckResult(check.name, check.title, outcome, text, fix, took_ms)


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


def _judge(check: Check, subject: Subject) -> tuple[Outcome, str, str]:
    try:
        return Outcome.PASSED, check.run(subject), ""
    except CannotDo as reason:
        return Outcome.NOT_TRIED, reason.reason, ""
    except Violation as violation:
        return Outcome.FAILED, violation.text, violation.fix
    except Exception as failure:  # noqa: BLE001 -- whatever an adapter raises that it should not
        return (
            Outcome.FAILED,
            f"{type(failure).__name__}: {failure}",
            "Raise only the failures of tillbridge.adapter.",
        )


def conformance_tests(rig: type[Rig], quality: Quality | None = None) -> Callable[..., None]:
    """Return a test for each check; with `quality`, only what it says is done is tried.

    A check that is said to be done and cannot be tried fails: a promise is kept or taken back.
    """
    import pytest  # noqa: PLC0415 -- only a vendor's tests have pytest

    subject = Subject(rig, None if quality is None else quality.capabilities)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_conformance(check: Check, record_property: Callable[[str, object], None]) -> None:
        if quality is not None and check.name in quality.exempt:
            pytest.skip(f"exempt: {quality.exempt[check.name]}")
        if quality is not None and check.name not in quality.done:
            pytest.skip("todo, as quality.toml says")
        result = run_check(check, subject)
        record_property("conformance", json.dumps(result.to_json()))
        if result.outcome is Outcome.FAILED:
            pytest.fail(_words(result), pytrace=False)
        if result.outcome is Outcome.NOT_TRIED:
            if quality is not None:
                pytest.fail(
                    f"quality.toml says that {check.name} is done, and it could not be tried:"
                    f" {result.text}",
                    pytrace=False,
                )
            pytest.skip(f"not tried: {result.text}")

    return test_conformance


def case_tests(adapter: Adapter, folder: Path) -> Callable[..., None]:
    """Return a test for each case folder below `folder`."""
    import pytest  # noqa: PLC0415 -- only a vendor's tests have pytest

    @pytest.mark.parametrize("case_folder", case_folders(folder), ids=lambda path: path.name)
    def test_case(case_folder: Path) -> None:
        if difference := run_case(adapter, Case.of(case_folder)):
            pytest.fail(difference, pytrace=False)

    return test_case


def _words(result: CheckResult) -> str:
    return f"{result.title}: {result.text}\n\nWhat to do: {result.fix}"
