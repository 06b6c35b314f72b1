"""What rounds are asked for, which calls clash, and how long drift waits."""

import gc

import pytest

from tillbridge.menu.lane import CallsInFlight, SyncRequest, gc_paused
from tillbridge.menu.sync import DRIFT_CALM_S, DRIFTS_AT_ONCE, DriftPauses
from tillbridge.model.catalogue import Availability

ON, OFF = Availability(available=True), Availability(available=False)


@pytest.mark.parametrize("menu_first", [True, False])
def test_items_of_which_two_calls_at_once_say_unlike_things_clash(menu_first: bool) -> None:
    flight = CallsInFlight()
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


def test_requests_join() -> None:
    joined = SyncRequest(whole=True, since=5.0) | SyncRequest(full=True, since=3.0)
    assert joined == SyncRequest(whole=True, full=True, since=3.0)


def test_the_collector_works_again_after_its_pauses() -> None:
    with gc_paused(), gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
