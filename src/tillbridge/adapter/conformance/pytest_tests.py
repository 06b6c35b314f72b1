"""The suite as tests of pytest: one test a check, one test a case."""

import json
from collections.abc import Callable
from pathlib import Path

from tillbridge.adapter.conformance.cases import Case, case_folders, run_case
from tillbridge.adapter.conformance.outcome import CheckResult, Outcome
from tillbridge.adapter.conformance.quality import Quality
from tillbridge.adapter.conformance.rig import Rig
from tillbridge.adapter.conformance.subject import Subject
from tillbridge.adapter.conformance.suite import CHECKS, Check, run_check
from tillbridge.adapter.registration import Adapter


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
