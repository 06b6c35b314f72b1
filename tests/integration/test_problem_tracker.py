"""The problem tracker: transitions, memory, and what happens while nothing can be written."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.support.ledger_harness import StoppedClock, opened
from tests.support.problem_reports import report_open, report_over
from tillbridge.ledger.ledger import Storage
from tillbridge.ledger.problems import ProblemTracker, open_problems

pytestmark = pytest.mark.usefixtures("each_database")


async def test_a_problem_outlives_a_restart_with_its_words(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "pos.offline", "main", detail="no heartbeat {since}")
        await tracker.settle()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        (problem,) = tracker.current()
        assert problem.text == "The till is not taking orders: no heartbeat {since}"
        assert problem.since == clock.at_ms
        assert tracker.is_open("pos.offline", "main")
        report_over(tracker, "pos.offline", "main")
        await tracker.settle()
        assert await ledger.read(open_problems) == ()


async def test_only_transitions_are_logged_and_the_detail_keeps_up(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        with capture_logs() as logs:
            report_over(tracker, "pos.offline", "main")
            for detail in ("a", "a", "b"):
                report_open(tracker, "pos.offline", "main", detail=detail)
                clock.forward(60)
            report_open(tracker, "pos.offline", "other", detail="a")
            report_over(tracker, "pos.offline", "main")
            report_over(tracker, "pos.offline", "main")
        assert [(line["event"], line["store"]) for line in logs] == [
            ("problem.opened", "main"),
            ("problem.opened", "other"),
            ("problem.closed", "main"),
        ]
        report_open(tracker, "pos.offline", "other", detail="b")
        await tracker.settle()
        (kept,) = await ledger.read(open_problems)
        assert kept == tracker.current()[0]
        assert (kept.store, kept.detail) == ("other", {"detail": "b"})


async def test_two_of_a_kind_are_told_apart_by_their_subject(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "order.not_written", "main", "ord_1", order="ord_1", detail="x")
        report_open(tracker, "order.not_written", "main", "ord_2", order="ord_2", detail="x")
        report_over(tracker, "order.not_written", "main", "ord_1")
        await tracker.settle()
        assert [each.subject for each in await ledger.read(open_problems)] == ["ord_2"]


async def test_a_code_nobody_has_written_words_for_is_a_mistake(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        with pytest.raises(KeyError):
            report_open(tracker, "no.such_code")
        with pytest.raises(KeyError):
            report_over(tracker, "no.such_code")


async def test_a_missing_field_does_not_hide_the_problem(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "pos.offline", "main")
        assert tracker.current()[0].text == "The till is not taking orders: ?"
        await tracker.settle()


async def test_what_happens_while_nothing_can_be_written_is_written_later(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        ledger._storage_changed(Storage("disk I/O error"))
        report_open(tracker, "pos.offline", "main", detail="x")
        await tracker.settle()
        assert {each.code for each in tracker.current()} == {"ledger.unwritable", "pos.offline"}
        assert await ledger.read(open_problems) == ()
        ledger._storage_changed(Storage())
        await tracker.settle()
        assert [each.code for each in await ledger.read(open_problems)] == ["pos.offline"]


async def test_an_unwritable_ledger_of_yesterday_is_no_problem_of_today(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "ledger.unwritable", detail="x")
        await tracker.settle()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        assert tracker.current() == ()
        await tracker.settle()
        assert await ledger.read(open_problems) == ()
