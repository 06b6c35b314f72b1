"""Timers: what is due begins, and it shows when it does not."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tillbridge.daemon import housekeeping
from tillbridge.daemon.housekeeping import Housekeeping


async def test_work_that_is_being_done_shows_since_when() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        await go_on.wait()

    plan = Housekeeping()
    assert plan.busy_since is None
    plan.hourly(work)
    plan.start()
    async with asyncio.timeout(10):
        await began.wait()
        since = plan.busy_since
        assert since is not None
        go_on.set()
        while plan.busy_since is not None:
            await asyncio.sleep(0)
    plan.stop()


async def test_timers_that_come_round_are_never_late() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    plan = Housekeeping()
    plan.hourly(work)
    plan.start()
    async with asyncio.timeout(10):
        await done.wait()
    assert plan.late_since() is None
    plan.stop()


async def test_timers_that_do_not_come_round_show_since_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Later":
            return cls.fromtimestamp((datetime.now(UTC) + timedelta(hours=2)).timestamp(), UTC)

    plan = Housekeeping()
    plan.hourly(work)
    plan.start()
    monkeypatch.setattr(plan._scheduler, "wakeup", lambda: None)  # it does not wake up
    monkeypatch.setattr(housekeeping, "datetime", Later)
    since = plan.late_since()
    assert since is not None
    assert plan.late_since() == since
    plan.stop()


async def test_a_wall_clock_that_jumps_ahead_makes_no_timer_late_for_long() -> None:
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1

    plan = Housekeeping()
    plan.hourly(work)
    plan.start()
    async with asyncio.timeout(10):
        while not rounds:
            await asyncio.sleep(0)
        for job in plan._scheduler.get_jobs():  # as after a jump: due, and the scheduler asleep
            job.next_run_time = datetime.now(UTC) - timedelta(hours=1)
            plan._scheduler._jobstores["default"].update_job(job)
        while plan.late_since() is not None or rounds < 2:
            await asyncio.sleep(0)
    plan.stop()
