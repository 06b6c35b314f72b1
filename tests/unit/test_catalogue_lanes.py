"""When rounds are due, which calls clash, and how long drift waits."""

import asyncio
import gc
from array import array

import pytest

from tests.support.service_link import HandClock
from tillbridge.core.clock import Clock
from tillbridge.menu.collector import collector_at_rest
from tillbridge.menu.known import KnownFingerprints
from tillbridge.menu.lane import LONGEST_BACKOFF_S, Lane
from tillbridge.menu.precedence import InFlight
from tillbridge.menu.wishes import DRIFT_CALM_S, DRIFTS_AT_ONCE, DriftPauses, Wish
from tillbridge.model.catalogue import Availability

ON, OFF = Availability(available=True), Availability(available=False)


async def due(lane: Lane) -> bool:
    try:
        async with asyncio.timeout(0.05):
            await lane.wait()
    except TimeoutError:
        return False
    return True


async def test_many_pokes_are_one_round() -> None:
    lane = Lane(Clock())
    lane.poke()
    lane.poke()
    assert await due(lane)
    assert not await due(lane)


async def test_a_round_is_due_after_a_while_or_at_an_instant() -> None:
    clock = HandClock()
    lane = Lane(clock)
    lane.poke_in(10)
    assert not await due(lane)
    clock.pass_s(11)
    assert await due(lane)
    lane.poke_at(clock.now_ms() + 5000)
    assert not await due(lane)
    clock.wall_ms += 5000
    assert await due(lane)
    assert not await due(lane)


async def test_failures_wait_longer_each_time_up_to_the_cap() -> None:
    clock = HandClock()
    lane = Lane(clock, cap_s=60)
    for _failure in range(20):
        lane.failed()
        clock.pass_s(60)
        assert await due(lane)
    lane.worked()
    lane.failed()
    clock.pass_s(1)
    assert await due(lane)


async def test_a_lane_notices_soon_that_a_service_is_back() -> None:
    clock = HandClock()
    lane = Lane(clock)
    for _failure in range(20):
        lane.failed()
        clock.pass_s(LONGEST_BACKOFF_S)
        assert await due(lane)
    assert LONGEST_BACKOFF_S <= 15


@pytest.mark.parametrize("menu_first", [True, False])
def test_items_of_which_two_calls_at_once_say_unlike_things_clash(menu_first: bool) -> None:
    flight = InFlight()
    menu = {"a": ON, "b": OFF, "c": ON, "d": None}
    words = {"b": OFF, "c": OFF, "d": OFF, "e": OFF}
    if menu_first:
        with flight.menu(menu), flight.availability(words) as clashed:
            assert clashed == {"c", "d"}
    else:
        with flight.availability(words) as clashed, flight.menu(menu):
            assert clashed == {"c", "d"}
    with flight.availability({"a": OFF}) as clashed:
        assert not clashed


def test_drift_is_pushed_at_once_a_few_times_and_then_ever_later() -> None:
    pauses = DriftPauses()
    assert [pauses.pause(0) for _ in range(DRIFTS_AT_ONCE)] == [0] * DRIFTS_AT_ONCE
    later = [pauses.pause(each) for each in range(1, 12)]
    assert later == sorted(later)
    assert later[0] > 0
    assert max(later) == DRIFT_CALM_S / 2
    assert pauses.pause(11 + 2 * DRIFT_CALM_S) == 0


def test_wishes_join() -> None:
    joined = Wish(whole=True, since=5.0).joined(Wish(full=True, since=3.0))
    assert joined == Wish(whole=True, full=True, since=3.0)


def test_known_fingerprints_are_a_set() -> None:
    known = KnownFingerprints(array("q", [-5, 0, 7]))
    assert 7 in known
    assert 6 not in known
    assert object() not in known
    assert set(known) == {-5, 0, 7}
    assert known - {0} == {-5, 7}


def test_the_collector_works_again_after_its_rest() -> None:
    with collector_at_rest(), collector_at_rest():
        assert not gc.isenabled()
    assert gc.isenabled()
