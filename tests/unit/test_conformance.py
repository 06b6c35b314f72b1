"""The suite passes an honest adapter, and fails each hostile one in its named way."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.hostile_adapters import HOSTILE, Hostile
from tests.support.paper_till import PaperRig
from tillbridge.adapter.conformance import (
    CHECKS,
    LEVELS,
    Outcome,
    QualityError,
    Rig,
    RigTicket,
    capabilities_of,
    run_check,
    run_suite,
)
from tillbridge.adapter.conformance.subject import Subject
from tillbridge.adapter.conformance.suite import quality_of

HONEST = frozenset(
    {
        "catalogue",
        "catalogue_changes",
        "availability",
        "tables",
        "tickets",
        "cancel",
        "list",
        "updates",
        "health",
    }
)


def test_a_rig_that_uses_the_former_name_still_reports_progress() -> None:
    class Former(PaperRig):
        def tell(self, *_reported: object, **_more: object) -> None:
            raise NotImplementedError

    assert Former.report_progress is Former.tell


def test_an_honest_adapter_passes_every_check() -> None:
    report = run_suite(PaperRig, declared=HONEST)
    assert [(each.check, each.text) for each in report.results if each.outcome != "passed"] == []
    assert [each.check for each in report.results] == [check.name for check in CHECKS]


def test_there_is_a_hostile_adapter_for_every_check() -> None:
    assert {hostile.check for hostile in HOSTILE} == {check.name for check in CHECKS}


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_adapter_fails_its_check_in_its_named_way(hostile: Hostile) -> None:
    report = run_suite(hostile.rig(), declared=hostile.declared or HONEST, only=[hostile.check])
    (result,) = report.results
    assert (result.outcome, hostile.says in result.text) == (Outcome.FAILED, True), result.text
    assert result.fix
    assert not report.passed


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_adapter_fails_no_check_that_it_does_not_mean_to(hostile: Hostile) -> None:
    others = [
        check.name
        for check in CHECKS
        if check.name not in {hostile.check, *hostile.also, "killed", "large_menu"}
    ]
    report = run_suite(hostile.rig(), declared=hostile.declared or HONEST, only=others)
    failed = {each.check: each.text for each in report.results if each.outcome == "failed"}
    assert failed == {}


def test_what_a_rig_cannot_do_is_not_tried_and_says_why() -> None:
    class Bare(PaperRig):
        sell = Rig.sell
        tickets = Rig.tickets
        go_offline = Rig.go_offline

    results = run_suite(Bare, declared=HONEST, only=["reads", "cancel", "offline"]).by_check()
    assert {each.outcome for each in results.values()} == {Outcome.NOT_TRIED}
    assert results["reads"].text == "This rig sells nothing."


def test_a_rig_written_before_says_what_it_has_to_add() -> None:
    class Before(PaperRig):
        def tickets(self) -> Sequence[RigTicket]:
            return [RigTicket(each.key, each.counts) for each in super().tickets()]

    results = run_suite(Before, declared=HONEST, only=["same_order_twice", "content"]).by_check()
    assert results["same_order_twice"].outcome is Outcome.PASSED
    assert results["content"].outcome is Outcome.NOT_TRIED
    assert "let tickets() return RigTicket(key, lines=(TicketLine(...)" in results["content"].text


def test_what_a_till_does_not_keep_is_named_with_the_reason() -> None:
    class NoTax(PaperRig):
        def tickets(self) -> Sequence[RigTicket]:
            return [replace(each, tax=None) for each in super().tickets()]

    (content,) = [check for check in CHECKS if check.name == "content"]
    reasons = {"tax": "it works out taxes by itself"}
    lacking = run_check(content, Subject(NoTax))
    assert (lacking.outcome, "The tickets lack: tax." in lacking.text) == (Outcome.FAILED, True)
    assert "[not_kept]" in lacking.fix
    assert run_check(content, Subject(NoTax, None, reasons)).outcome is Outcome.PASSED
    assert "tax is not kept, and the till has it" in (
        run_check(content, Subject(PaperRig, None, reasons)).text
    )


def test_a_quality_file_written_before_is_read_and_lacks_the_new_rules() -> None:
    rules = {rule: "done" for level in LEVELS.values() for rule in level}
    table = {"adapter": "paper", "level": "gold", "rules": rules}
    assert not quality_of(table, "quality.toml").is_old
    del rules["content"]
    before = quality_of(table, "quality.toml")
    assert (before.is_old, before.reached, before.missing("gold")) == (True, "bronze", ("content",))
    with pytest.raises(QualityError, match="why it is not kept"):
        quality_of({**table, "not_kept": {"tax": "no"}}, "quality.toml")


def test_capabilities_are_what_the_object_has(tmp_path: object) -> None:
    assert capabilities_of(object()) == frozenset()


def test_a_report_can_be_read_by_a_machine() -> None:
    said = run_suite(PaperRig, declared=HONEST, only=["reads", "probe"]).to_json()
    assert (said["adapter"], said["passed"]) == ("paper", True)
    assert said["counts"] == {"passed": 2, "failed": 0, "not_tried": 0}
    assert [each["check"] for each in said["checks"]] == ["reads", "probe"]


def test_progress_is_told_before_each_check() -> None:
    begun: list[str] = []
    tell: Callable[..., None] = lambda check: begun.append(check.name)  # noqa: E731 -- one line says it
    run_suite(PaperRig, only=["reads", "unicode"], on_begin=tell)
    assert begun == ["reads", "unicode"]
