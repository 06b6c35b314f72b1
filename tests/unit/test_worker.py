"""A worker: woken, it takes its next step; what fails is reported and tried again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from unittest.mock import Mock, call

import pytest

from tillbridge.core import worker as core_worker
from tillbridge.core.clock import Clock
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Supervisor, Worker


class Ahead(Clock):
    """A clock that a test puts forward, or whose wall is set."""

    ahead_s = 0.0
    wall_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.wall_ms

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


class Steps:
    """Counts the steps; each returns what the test says, or raises it."""

    def __init__(self, *answers: float | Exception | None) -> None:
        self.taken = 0
        self._answers = list(answers)

    async def __call__(self) -> float | None:
        self.taken += 1
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def reach(self, number: int) -> None:
        async with asyncio.timeout(5):
            while self.taken < number:
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    step: Callable[[], Awaitable[float | None]],
    problems: Mock | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Worker]:
    worker = Worker("tax", step, Supervisor("main", problems or Mock()), clock or Clock())
    task = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_worker_does_nothing_until_it_is_woken() -> None:
    steps = Steps()
    async with running(steps) as worker:
        await asyncio.sleep(0.01)
        assert steps.taken == 0
        worker.wake()
        await steps.reach(1)
        await asyncio.sleep(0.01)
        assert steps.taken == 1


async def test_what_wakes_it_while_it_works_counts_for_the_next_step() -> None:
    taken = list[float | None]()

    async def step() -> None:
        taken.append(worker.busy_since)
        if len(taken) == 1:
            worker.wake()
            worker.wake()

    async with running(step) as worker:
        worker.wake()
        async with asyncio.timeout(5):
            while len(taken) < 2:
                await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert len(taken) == 2
        assert None not in taken
        assert worker.busy_since is None


async def test_a_step_says_when_the_next_one_is_due_and_may_be_woken_before() -> None:
    steps = Steps(0.001, 3600.0, None)
    async with running(steps) as worker:
        worker.wake()
        await steps.reach(2)
        await asyncio.sleep(0.01)
        assert steps.taken == 2
        worker.wake()
        await steps.reach(3)


async def test_one_that_sleeps_hears_of_an_earlier_time() -> None:
    steps = Steps(3600.0)
    async with running(steps) as worker:
        worker.wake()
        await steps.reach(1)
        worker.wake_in(0.001)
        await steps.reach(2)


async def test_an_instant_replaces_another_and_comes_by_the_wall_clock() -> None:
    steps, clock = Steps(), Ahead()
    async with running(steps, clock=clock) as worker:
        worker.wake_at(clock.now_ms() + 1)
        worker.wake_at(clock.now_ms() + 3_600_000)
        await asyncio.sleep(0.01)
        assert steps.taken == 0
        worker.wake_at(None)
        clock.wall_ms = 4_000_000
        worker.wake_at(clock.now_ms())
        await steps.reach(1)
        await asyncio.sleep(0.01)
        assert steps.taken == 1


async def test_a_step_that_raises_is_a_problem_and_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_worker, "FIRST_PAUSE_S", 0.001)
    problems, steps = Mock(), Steps(OSError(5, "broken"))
    async with running(steps, problems) as worker:
        worker.wake()
        await steps.reach(2)
        await asyncio.sleep(0)
    scope = Scope.of_one("store.step_failed", "main", "tax")
    detail = {"step": "tax", "detail": "OSError: [Errno 5] broken"}
    failed = call(scope, [Found("store.step_failed", "tax", detail)])
    assert problems.report.mock_calls == [failed, call(scope, ())]


async def test_who_wakes_it_does_not_make_a_step_that_raises_spin() -> None:
    steps, clock = Steps(*(OSError() for _ in range(99))), Ahead()
    async with running(steps, clock=clock) as worker:
        for crashes in range(1, 8):
            worker.wake()
            await steps.reach(crashes)
            worker.wake()
            await asyncio.sleep(0.005)
            assert steps.taken == crashes
            clock.ahead_s += min(2.0 ** (crashes - 1), 15.0)


async def test_expected_failures_wait_longer_each_time_and_begin_anew_after_a_good_step() -> None:
    waits: list[float | None] = []
    good = 6

    async def step() -> None:
        waits.append(None if len(waits) == good else worker.back_off(cap_s=15.0))

    async with running(step) as worker:
        for taken in range(1, 9):
            worker.wake()
            async with asyncio.timeout(5):
                while len(waits) < taken:
                    await asyncio.sleep(0.001)
    assert waits.pop(good) is None
    for bound, wait in zip((1, 2, 4, 8, 15, 15, 1), waits, strict=False):
        assert wait is not None
        assert bound / 2 <= wait <= bound


async def test_one_that_is_drained_ends_its_step_and_takes_no_more() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()
    taken = list[int]()

    async def step() -> float:
        taken.append(1)
        begun.set()
        await goes_on.wait()
        return 0.0

    async with running(step) as worker:
        worker.wake()
        await begun.wait()
        draining = asyncio.create_task(worker.drain())
        await asyncio.sleep(0.01)
        assert not draining.done(), "a step is under way"
        goes_on.set()
        await draining
        worker.wake()
        await asyncio.sleep(0.01)
        assert taken == [1]
        await worker.drain()  # there is nothing to wait for
