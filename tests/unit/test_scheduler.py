"""Timers: what is due begins, and it shows when it does not."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from unittest.mock import Mock, call
from zoneinfo import ZoneInfo

import pytest
from apscheduler.schedulers import base

from tillbridge.core import scheduler
from tillbridge.core.clock import Clock
from tillbridge.core.problems import Found, Scope
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Job, Supervisor

HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")
BRIDGE, MAIN = Supervisor("", Mock()), Supervisor("main", Mock())


class Wall:
    """The wall clock, put forward by as much as a test says. Durations count on as they are."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def set(self, now: datetime) -> None:
        self.ahead = now - datetime.now(UTC)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    clock = Wall()

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Shifted":
            return super().now(tz) + clock.ahead

    for module in (base, scheduler):
        monkeypatch.setattr(module, "datetime", Shifted)
    return clock


async def settled(plan: Scheduler) -> None:
    """Let everything that is due begin, and what needs no waiting be done."""
    plan.late_since()
    for _ in range(10):
        await asyncio.sleep(0)


@contextmanager
def running(plan: Scheduler) -> Iterator[Scheduler]:
    plan.start()
    try:
        yield plan
    finally:
        plan.stop()


class Rounds:
    """Work that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0

    async def work(self) -> None:
        self.done += 1

    async def reached(self, number: int) -> None:
        async with asyncio.timeout(10):
            while self.done < number:
                await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("before", "when", "times"),
    [
        (datetime(2026, 3, 29, 0, 59, tzinfo=UTC), "02:30", 1),
        (datetime(2026, 10, 25, 0, 29, tzinfo=UTC), "02:30", 1),
        (datetime(2026, 10, 26, 1, 29, tzinfo=UTC), "02:30", 1),
        (datetime(2026, 10, 26, 1, 31, tzinfo=UTC), "02:30", 0),
    ],
    ids=["left out", "brought twice", "the day after", "past already"],
)
async def test_the_quiet_hour_comes_once_where_the_clocks_change(
    wall: Wall, before: datetime, when: str, times: int
) -> None:
    compared = list[str]()

    def comparing(store: str) -> Job:
        async def compare() -> None:
            compared.append(store)

        return compare

    wall.set(before)
    plan = Scheduler(Clock(), BRIDGE)
    plan.daily("compare", when, "Europe/Berlin", comparing("main"), supervisor=MAIN)
    with running(plan):
        await settled(plan)
        assert compared == []
        for quarter in range(1, 13):
            wall.set(before + quarter * HOUR / 4)
            await settled(plan)
        assert compared == ["main"] * times
        wall.set(before + 24 * HOUR)
        await settled(plan)
        assert len(compared) <= times + 1
        wall.set(before + 27 * HOUR)
        await settled(plan)
        assert compared == ["main"] * (times + 1)


async def test_a_store_is_compared_at_its_own_quiet_hour_and_once(wall: Wall) -> None:
    compared = list[str]()

    def comparing(store: str) -> Job:
        async def compare() -> None:
            compared.append(store)

        return compare

    now = datetime.now(UTC)
    soon = (now.astimezone(BERLIN) + 2 * HOUR).strftime("%H:%M")
    later = (now + 4 * HOUR).strftime("%H:%M")
    plan = Scheduler(Clock(), BRIDGE)
    plan.daily("compare", soon, "Europe/Berlin", comparing("main"), supervisor=MAIN)
    plan.daily("compare", later, "UTC", comparing("east"), supervisor=Supervisor("east", Mock()))
    with running(plan):
        plan.late_since()
        await asyncio.sleep(0.01)
        assert compared == []
        wall.ahead = 3 * HOUR
        async with asyncio.timeout(10):
            while not compared:
                plan.late_since()
                await asyncio.sleep(0)
        for _ in range(3):
            plan.late_since()
            await asyncio.sleep(0)
    assert compared == ["main"]


async def test_work_that_is_being_done_shows_since_when() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        await go_on.wait()

    plan = Scheduler(Clock(), BRIDGE)
    assert plan.busy_since is None
    plan.every("work", 3600, work)
    with running(plan):
        async with asyncio.timeout(10):
            await began.wait()
            since = plan.busy_since
            assert since is not None
            go_on.set()
            while plan.busy_since is not None:
                await asyncio.sleep(0)


async def test_work_that_takes_hours_is_not_begun_beside_itself(wall: Wall) -> None:
    began, go_on = 0, asyncio.Event()

    async def work() -> None:
        nonlocal began
        began += 1
        await go_on.wait()

    beside = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("work", 3600, work)
    plan.every("beside", 3600, beside.work)
    with running(plan):
        await beside.reached(1)
        wall.ahead = 3 * HOUR
        plan.late_since()
        await beside.reached(2)
        assert began == 1


async def test_work_that_is_not_done_is_broken_off_at_the_end() -> None:
    began, broken_off = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            broken_off.set()
            raise

    plan = Scheduler(Clock(), BRIDGE)
    plan.every("work", 3600, work)
    async with asyncio.timeout(10):
        with running(plan):
            await began.wait()
        await broken_off.wait()


async def test_work_that_fails_is_done_again_and_keeps_no_other_from_it(wall: Wall) -> None:
    beside, tried = Rounds(), 0

    async def work() -> None:
        nonlocal tried
        tried += 1
        raise OSError

    async def compare() -> None:
        raise OSError

    quiet = datetime.now(UTC) + HOUR / 2
    plan = Scheduler(Clock(), BRIDGE)
    plan.daily("compare", quiet.strftime("%H:%M"), "UTC", compare, supervisor=MAIN)
    plan.every("work", 3600, work)
    plan.every("beside", 3600, beside.work)
    with running(plan):
        await beside.reached(1)
        await settled(plan)
        wall.ahead = HOUR
        plan.late_since()
        await beside.reached(2)
        assert tried == 2


async def test_timers_that_come_round_are_never_late() -> None:
    rounds = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("rounds", 3600, rounds.work)
    with running(plan):
        await rounds.reached(1)
        assert plan.late_since() is None


async def test_timers_that_do_not_come_round_show_since_when(wall: Wall) -> None:
    rounds = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("rounds", 3600, rounds.work)
    with running(plan):
        wall.ahead = 2 * HOUR
        since = plan.late_since()  # the loop has not come round
        assert since is not None
        assert plan.late_since() == since


async def test_a_wall_clock_that_jumps_ahead_makes_no_timer_late_for_long(wall: Wall) -> None:
    rounds = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("rounds", 3600, rounds.work)
    with running(plan):
        await rounds.reached(1)
        wall.ahead = 5 * HOUR
        async with asyncio.timeout(10):
            while plan.late_since() is not None or rounds.done < 2:
                await asyncio.sleep(0)
        assert rounds.done == 2  # made up for once


async def test_a_clock_that_jumps_is_noticed_without_a_watchdog(
    wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_LONGEST_SLEEP_S", 0.01)
    rounds = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("rounds", 3600, rounds.work)
    with running(plan):
        await rounds.reached(1)
        wall.ahead = 5 * HOUR
        await rounds.reached(2)


async def test_a_clock_that_is_set_back_delays_no_job_by_more_than_its_interval(wall: Wall) -> None:
    rounds = Rounds()
    plan = Scheduler(Clock(), BRIDGE)
    plan.every("rounds", 60, rounds.work)
    with running(plan):
        await rounds.reached(1)
        wall.ahead = -5 * HOUR
        await settled(plan)
        assert rounds.done == 1
        wall.ahead = -5 * HOUR + timedelta(seconds=62)
        plan.late_since()
        await rounds.reached(2)


async def test_work_that_says_when_it_is_due_again_is_done_then(wall: Wall) -> None:
    done = 0

    async def work() -> float:
        nonlocal done
        done += 1
        return 5.0

    plan = Scheduler(Clock(), BRIDGE)
    plan.every("work", 3600, work, first_s=10)
    with running(plan):
        for seconds, times in ((9, 0), (11, 1), (14, 1), (17, 2)):
            wall.ahead = timedelta(seconds=seconds)
            await settled(plan)
            assert done == times, seconds


async def test_work_that_fails_is_a_problem_and_tried_before_its_time(wall: Wall) -> None:
    problems, tried = Mock(), 0

    async def work() -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise OSError(5, "broken")

    plan = Scheduler(Clock(), BRIDGE)
    plan.every("look", 3600, work, supervisor=Supervisor("main", problems))
    with running(plan):
        await settled(plan)
        scope = Scope.of_one("store.step_failed", "main", "look")
        detail = {"step": "look", "detail": "OSError: [Errno 5] broken"}
        failed = call(scope, [Found("store.step_failed", "look", detail)])
        assert problems.report.mock_calls == [failed]
        wall.ahead = timedelta(seconds=2)
        await settled(plan)
        assert tried == 2
        assert problems.report.mock_calls == [failed, call(scope, ())]
