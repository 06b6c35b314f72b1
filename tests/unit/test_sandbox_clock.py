import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.sandbox.clock import Clock, as_timestamp, parse_timestamp


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_a_timestamp_reads_back_as_the_same_millisecond(at_ms: int) -> None:
    text = as_timestamp(at_ms)
    assert text.endswith("Z")
    assert parse_timestamp(text) == at_ms


@pytest.mark.parametrize("text", ["2030-01-01T10:00:00", "2030-01-01", "now", ""])
def test_a_timestamp_needs_a_zone(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_timestamp(text)


async def fired(clock: Clock, seconds: float) -> asyncio.Event:
    event = asyncio.Event()
    clock.call_later(seconds, event.set)
    return event


async def passed(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 5)


async def test_a_jump_fires_what_has_come_due_and_nothing_else() -> None:
    clock = Clock()
    hour, day = await fired(clock, 3600), await fired(clock, 86_400)
    clock.jump(3601)
    await passed(hour)
    assert not day.is_set()
    clock.stop()


async def test_a_faster_clock_moves_timers_that_already_wait() -> None:
    clock = Clock()
    hour = await fired(clock, 3600)
    clock.run_at(1_000_000)
    await passed(hour)


async def test_a_clock_that_stands_still_fires_nothing_until_it_jumps() -> None:
    clock = Clock(speed=0)
    soon = await fired(clock, 0.001)
    now = clock.now_ms()
    assert clock.now_ms() == now
    assert not soon.is_set()
    clock.jump(1)
    await passed(soon)
    assert clock.now_ms() == now + 1000


async def test_a_cancelled_timer_is_silent() -> None:
    clock = Clock()
    calls: list[str] = []
    clock.call_later(1, lambda: calls.append("cancelled")).cancel()
    later = await fired(clock, 2)
    clock.jump(3)
    await passed(later)
    assert calls == []


async def test_timers_fire_in_the_order_of_their_instants() -> None:
    clock = Clock(speed=0)
    calls: list[int] = []
    for seconds in (3, 1, 2):
        clock.call_later(seconds, partial(calls.append, seconds))
    last = await fired(clock, 4)
    clock.jump(5)
    await passed(last)
    assert calls == [1, 2, 3]


@pytest.mark.parametrize("change", [lambda clock: clock.jump(-1), lambda clock: clock.run_at(-1)])
def test_the_clock_never_runs_back(change: object) -> None:
    with pytest.raises(ValueError, match="backwards"):
        change(Clock())  # type: ignore[operator]  # parametrized callables are objects to mypy
