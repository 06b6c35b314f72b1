"""Timers: what is due begins, and it shows when it does not."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.order_house import SetClock
from tillbridge.clock import Clock
from tillbridge.config import StoreSettings
from tillbridge.daemon.timetable import Timetable, daily_after, hourly_after

HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [UTC, BERLIN, ZoneInfo("America/St_Johns"), ZoneInfo("Australia/Lord_Howe"), None]

instants = st.floats(1_577_836_800, 2_051_222_400).map(lambda at: datetime.fromtimestamp(at, UTC))
quarters = st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30, 45]))


@contextmanager
def running(plan: Timetable) -> Iterator[Timetable]:
    plan.start()
    try:
        yield plan
    finally:
        plan.stop()


def store(full_compare: str, zone: str | None) -> StoreSettings:
    written = {
        "location_id": "loc-1",
        "currency": "USD",
        "pos": {"adapter": "folder"},
        "menu": {"full_compare": full_compare},
    }
    return StoreSettings.model_validate(written | ({"timezone": zone} if zone else {}))


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


@given(instants, quarters, st.sampled_from(ZONES))
def test_a_day_has_one_hour_for_it(now: datetime, when: time, zone: tzinfo | None) -> None:
    due = daily_after(now, when, zone)
    assert now < due <= now + timedelta(hours=25)
    following = daily_after(due, when, zone)
    assert timedelta(hours=23) <= following - due <= timedelta(hours=25)
    local = due.astimezone(zone)
    assert local.time() == when or local.utcoffset() != (due - HOUR).astimezone(zone).utcoffset()


@given(instants, instants)
def test_an_hour_is_counted_from_the_first(now: datetime, first: datetime) -> None:
    due = hourly_after(now, first)
    assert due > now
    assert due >= first
    assert (due - first) % HOUR == timedelta(0)
    assert due - now <= HOUR or due == first


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (datetime(2026, 3, 28, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)),
        (datetime(2026, 10, 24, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)),
    ],
    ids=["left out", "after that", "brought twice", "after that again"],
)
def test_the_quiet_hour_comes_once_where_the_clocks_change(now: datetime, due: datetime) -> None:
    assert daily_after(now, time(2, 30), BERLIN) == due


async def test_a_store_is_compared_at_its_own_quiet_hour_and_once() -> None:
    clock, compared = SetClock(), list[str]()
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    soon = (now.astimezone(BERLIN) + 2 * HOUR).strftime("%H:%M")
    later = (now + 4 * HOUR).strftime("%H:%M")
    plan = Timetable(clock)
    plan.daily({"main": store(soon, "Europe/Berlin"), "east": store(later, "UTC")}, compared.append)
    with running(plan):
        plan.late_since()
        await asyncio.sleep(0.01)
        assert compared == []
        clock.wall_s = 3 * 3600
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

    plan = Timetable(Clock())
    assert plan.busy_since is None
    plan.hourly(work)
    with running(plan):
        async with asyncio.timeout(10):
            await began.wait()
            since = plan.busy_since
            assert since is not None
            go_on.set()
            while plan.busy_since is not None:
                await asyncio.sleep(0)


async def test_work_that_takes_hours_is_not_begun_beside_itself() -> None:
    began, go_on, clock = 0, asyncio.Event(), SetClock()

    async def work() -> None:
        nonlocal began
        began += 1
        await go_on.wait()

    beside = Rounds()
    plan = Timetable(clock)
    plan.hourly(work)
    plan.hourly(beside.work)
    with running(plan):
        await beside.reached(1)
        clock.wall_s = 3 * 3600
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

    plan = Timetable(Clock())
    plan.hourly(work)
    async with asyncio.timeout(10):
        with running(plan):
            await began.wait()
        await broken_off.wait()


async def test_work_that_fails_is_done_again_and_keeps_no_other_from_it() -> None:
    clock, beside, tried = SetClock(), Rounds(), 0

    async def work() -> None:
        nonlocal tried
        tried += 1
        raise OSError

    def compare(_store: str) -> None:
        raise OSError

    quiet = datetime.fromtimestamp(clock.now_ms() / 1000, UTC) + HOUR / 2
    plan = Timetable(clock)
    plan.daily({"main": store(quiet.strftime("%H:%M"), "UTC")}, compare)
    plan.hourly(work)
    plan.hourly(beside.work)
    with running(plan):
        await beside.reached(1)
        clock.wall_s = 3600
        plan.late_since()
        await beside.reached(2)
        assert tried == 2


async def test_timers_that_come_round_are_never_late() -> None:
    rounds = Rounds()
    plan = Timetable(Clock())
    plan.hourly(rounds.work)
    with running(plan):
        await rounds.reached(1)
        assert plan.late_since() is None


async def test_timers_that_do_not_come_round_show_since_when() -> None:
    clock, rounds = SetClock(), Rounds()
    plan = Timetable(clock)
    plan.hourly(rounds.work)
    with running(plan):
        clock.wall_s = 2 * 3600
        since = plan.late_since()  # the loop has not come round
        assert since is not None
        assert plan.late_since() == since


async def test_a_wall_clock_that_jumps_ahead_makes_no_timer_late_for_long() -> None:
    clock, rounds = SetClock(), Rounds()
    plan = Timetable(clock)
    plan.hourly(rounds.work)
    with running(plan):
        await rounds.reached(1)
        clock.wall_s = 5 * 3600
        async with asyncio.timeout(10):
            while plan.late_since() is not None or rounds.done < 2:
                await asyncio.sleep(0)
        assert rounds.done == 2  # made up for once
