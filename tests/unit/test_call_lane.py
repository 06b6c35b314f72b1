"""Lanes: blocking calls one after the other, in threads that all stores share."""

import asyncio
import os
import threading
from concurrent.futures import CancelledError
from decimal import Decimal, getcontext
from functools import partial

import pytest

from tillbridge.pos.call_lane import _MOST_IDLE, CallLane

WAIT_S = 10


def test_calls_run_in_their_order_each_after_the_one_before() -> None:
    lane, seen = CallLane("store-reading"), list[int]()
    go = threading.Event()
    first = lane.submit(lambda: go.wait(WAIT_S))
    futures = [lane.submit(partial(seen.append, number)) for number in range(50)]
    dropped = futures[7].cancel()
    assert (dropped, seen) == (True, [])
    go.set()
    assert first.result(WAIT_S)
    futures[-1].result(WAIT_S)
    assert seen == [number for number in range(50) if number != 7]
    with pytest.raises(CancelledError):
        futures[7].result(WAIT_S)


def test_a_call_that_hangs_delays_its_own_lane_only() -> None:
    go = threading.Event()
    hanging = [CallLane(f"{number}") for number in range(3 * _MOST_IDLE)]
    held = [lane.submit(lambda: go.wait(WAIT_S)) for lane in hanging]
    behind = hanging[0].submit(lambda: "behind")
    try:
        assert CallLane("another").submit(lambda: "at once").result(WAIT_S) == "at once"
        assert not behind.done()
    finally:
        go.set()
    assert behind.result(WAIT_S) == "behind"
    assert all(future.result(WAIT_S) for future in held)


def test_hundreds_of_stores_that_are_idle_need_a_few_threads() -> None:
    for number in range(200):
        CallLane(f"{number}-reading").submit(lambda: None).result(WAIT_S)
    mine = [each for each in threading.enumerate() if each.name.endswith(("-reading", "lane"))]
    assert len(mine) <= _MOST_IDLE + 1


def test_what_one_adapter_sets_for_its_thread_is_not_set_for_another() -> None:
    def careless() -> int:
        getcontext().prec = 3
        return threading.get_ident()

    def divide() -> Decimal:
        return Decimal(1) / 3

    before = divide()
    for number in range(20):
        CallLane(f"{number}").submit(careless).result(WAIT_S)
        assert CallLane(f"{number}").submit(divide).result(WAIT_S) == before


def test_a_failure_is_raised_where_the_call_is_awaited() -> None:
    def fails() -> None:
        raise StopIteration("x")

    lane = CallLane("store")
    with pytest.raises(RuntimeError, match="StopIteration: x"):
        lane.submit(fails).result(WAIT_S)
    assert lane.submit(lambda: 1).result(WAIT_S) == 1


async def test_a_call_that_takes_long_is_reported_and_so_is_its_end() -> None:
    reported = asyncio.Queue[tuple[str, float | None]]()
    go = threading.Event()
    lane = CallLane("store", hangs_after_s=0.05, on_hang=lambda *what: reported.put_nowait(what))
    future = lane.submit(lambda: go.wait(WAIT_S), "read_menu")
    async with asyncio.timeout(WAIT_S):
        name, ran_s = await reported.get()
        assert name == "read_menu"
        assert ran_s is not None
        assert ran_s >= 0.05
        go.set()
        assert await reported.get() == ("read_menu", None)
    assert future.result(WAIT_S)
    lane.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_begins_with_threads_of_its_own() -> None:
    CallLane("before").submit(lambda: None).result(WAIT_S)
    child = os.fork()
    if not child:
        try:
            os._exit(CallLane("after").submit(lambda: 7).result(WAIT_S))
        finally:
            os._exit(1)
    _pid, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
