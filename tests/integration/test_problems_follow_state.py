"""Problems follow from state: a report opens what is found and closes what is not found now."""

import asyncio
from collections.abc import Awaitable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine
from structlog.testing import capture_logs

from tests.support.ledger_harness import StoppedClock, opened
from tests.support.problem_reports import report_open
from tillbridge.core.problems import Found, OpenProblem, Scope
from tillbridge.ledger.ledger import published
from tillbridge.ledger.models import metadata
from tillbridge.ledger.problems import (
    ProblemsChanged,
    ProblemTracker,
    open_problem,
    open_problems,
    past_problems,
    report,
)

pytestmark = pytest.mark.usefixtures("each_database")

CODES = frozenset({"order.not_written", "order.held"})
ALL = Scope("main", CODES)

finds = st.lists(
    st.builds(
        Found,
        st.sampled_from(sorted(CODES)),
        st.sampled_from(["ord_1", "ord_2"]),
        st.fixed_dictionaries({"detail": st.text(max_size=3)}),
    ),
    max_size=4,
    unique_by=lambda each: (each.code, each.subject),
)


def test_after_any_reports_exactly_what_was_found_last_is_open() -> None:
    @given(st.lists(finds, min_size=1, max_size=6))
    def check(rounds: list[list[Found]]) -> None:
        engine = create_engine("sqlite://")
        metadata.create_all(engine)
        with engine.connect() as connection:
            open_problem(connection, "order.held", "other", "ord_1", {}, 1)
            open_problem(connection, "order.unreadable", "main", "evt_1", {}, 2)
            seen: Mapping[tuple[str, str], int] = {}
            for at, found in enumerate(rounds, start=10):
                report(connection, ALL, found, at)
                seen = {
                    (each.code, each.subject): seen.get((each.code, each.subject), at)
                    for each in found
                }
            mine = [each for each in open_problems(connection) if ALL.covers(*key_of(each))]
            assert {(each.code, each.subject): each.since for each in mine} == seen
            texts = {(each.code, each.subject): each.detail["detail"] for each in mine}
            assert texts == {
                (each.code, each.subject): each.detail["detail"] for each in rounds[-1]
            }
            assert len(open_problems(connection)) == len(mine) + 2, "others' problems stay"
            follow: dict[tuple[str, str, str], object] = {}
            for event in published(connection):
                assert isinstance(event, ProblemsChanged)
                for each in event.over:
                    del follow[key_of(each)]
                follow |= {key_of(each): each for each in event.present}
            published(connection).clear()
            assert follow == {key_of(each): each for each in mine}

    check()


def key_of(problem: OpenProblem) -> tuple[str, str, str]:
    return (problem.code, problem.store, problem.subject)


def test_a_report_about_one_subject_leaves_the_others_alone() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        report(connection, ALL, [Found("order.held", "ord_1"), Found("order.held", "ord_2")], 1)
        report(connection, Scope("main", CODES, "ord_1"), [], 5)
        assert [each.subject for each in open_problems(connection)] == ["ord_2"]
        (past,) = past_problems(connection, ended_after=0)
        assert (past.subject, past.since, past.until) == ("ord_1", 1, 5)
        with pytest.raises(ValueError, match="outside the scope"):
            report(connection, Scope("main", CODES, "ord_1"), [Found("order.held", "ord_2")], 6)
        with pytest.raises(ValueError, match="outside the scope"):
            report(connection, ALL, [Found("pos.offline")], 6)


async def test_the_desk_knows_before_whoever_wrote_goes_on(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        rung: list[int] = []
        tracker.on_change(lambda: rung.append(len(tracker.current())))

        def found(*subjects: str) -> Awaitable[None]:
            def job(connection: Connection) -> None:
                each = [Found("order.held", subject, {"order": "7"}) for subject in subjects]
                report(connection, ALL, each, clock.now_ms())

            return ledger.write(job)

        with capture_logs() as logs:
            await found("ord_1")
            assert tracker.is_open("order.held", "main", "ord_1")
            await found("ord_1")
            await asyncio.gather(found("ord_1", "ord_2"), found("ord_2"))
            assert not tracker.is_open("order.held", "main", "ord_1")
        assert [(each["event"], each["subject"]) for each in logs] == [
            ("problem.opened", "ord_1"),
            ("problem.opened", "ord_2"),
            ("problem.closed", "ord_1"),
        ]
        assert rung == [1, 2, 1], "nothing has changed where the same is found again"
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        assert [each.subject for each in tracker.current()] == ["ord_2"]


async def test_what_is_rolled_back_was_never_reported(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)

        def fail(connection: Connection) -> None:
            report(connection, ALL, [Found("order.held", "ord_1")], 1)
            raise RuntimeError("no")

        def work(connection: Connection) -> None:
            report(connection, ALL, [Found("order.held", "ord_2")], 1)

        outcomes = await asyncio.gather(
            ledger.write(work), ledger.write(fail), return_exceptions=True
        )
        assert isinstance(outcomes[1], RuntimeError)
        assert [each.subject for each in tracker.current()] == ["ord_2"]


async def test_state_in_memory_is_reported_to_the_desk_in_the_same_way(tmp_path: Path) -> None:
    clock = StoppedClock()
    scope = Scope("main", frozenset({"pos.update_unreadable"}))
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "pos.offline", "main")
        tracker.report(
            scope, [Found("pos.update_unreadable", "a"), Found("pos.update_unreadable", "b")]
        )
        tracker.report(scope, [Found("pos.update_unreadable", "b")])
        assert [each.subject for each in tracker.current()] == ["", "b"]
        with pytest.raises(ValueError, match="outside the scope"):
            tracker.report(scope, [Found("pos.offline")])
        tracker.report(scope, [])
        assert [each.code for each in tracker.current()] == ["pos.offline"]
        await tracker.settle()


async def test_a_half_character_in_a_detail_is_no_reason_to_lose_the_write(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        found = [Found("order.held", "ord_1", {"order": "half \ud83c"})]
        await ledger.write(lambda connection: report(connection, ALL, found, 1))
        assert tracker.current()[0].detail == {"order": "half ?"}
