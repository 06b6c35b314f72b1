"""When a store is paused and resumed because of its POS."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.config.store import OrderSettings
from tillbridge.stores.closure import STEADY_S, decide_pause

RULES = OrderSettings(pause_after_s=30, resume_after_s=5, max_pauses_per_hour=2)
NOW = 10_000.0


def decided(
    *,
    online: bool,
    for_s: float,
    paused: bool = False,
    pauses: tuple[float, ...] = (),
    rules: OrderSettings = RULES,
    order_lost: bool = False,
) -> Literal["pause", "resume"] | None:
    return decide_pause(
        NOW,
        online=online,
        since=NOW - for_s,
        paused_by_bridge=paused,
        pauses=[NOW - ago for ago in pauses],
        settings=rules,
        order_lost=order_lost,
    )


def test_an_order_that_was_lost_to_it_pauses_the_store_at_once() -> None:
    assert decided(online=False, for_s=0, order_lost=True) == "pause"
    assert decided(online=True, for_s=0, order_lost=True) is None
    never = OrderSettings(pause_after_s=0)
    assert decided(online=False, for_s=0, order_lost=True, rules=never) is None


def test_a_short_absence_pauses_nothing() -> None:
    assert decided(online=False, for_s=29.9) is None


def test_a_long_absence_pauses_once() -> None:
    assert decided(online=False, for_s=30) == "pause"
    assert decided(online=False, for_s=3000, paused=True) is None


def test_zero_never_pauses_but_what_was_paused_is_resumed() -> None:
    never = OrderSettings(pause_after_s=0)
    assert decided(online=False, for_s=9999, rules=never) is None
    assert decided(online=True, for_s=9999, paused=True, rules=never) == "resume"


def test_the_store_comes_back_a_little_after_its_pos() -> None:
    assert decided(online=True, for_s=4, paused=True) is None
    assert decided(online=True, for_s=5, paused=True) == "resume"


def test_a_store_that_others_paused_is_not_resumed() -> None:
    assert decided(online=True, for_s=9999) is None


def test_a_pos_that_comes_and_goes_must_be_steady_first() -> None:
    assert decided(online=True, for_s=60, paused=True, pauses=(100, 200)) is None
    assert decided(online=True, for_s=STEADY_S, paused=True, pauses=(700, 800)) == "resume"


def test_pauses_of_an_hour_ago_are_forgotten() -> None:
    assert decided(online=True, for_s=60, paused=True, pauses=(100, 3600)) == "resume"


@given(
    online=st.booleans(),
    for_s=st.floats(0, 1e5),
    paused=st.booleans(),
    pauses=st.lists(st.floats(0, 1e4), max_size=10),
    rules=st.builds(
        OrderSettings,
        pause_after_s=st.floats(0, 600),
        resume_after_s=st.floats(0, 600),
        max_pauses_per_hour=st.integers(1, 5),
    ),
)
def test_only_an_absent_pos_pauses_and_only_a_present_one_resumes(
    online: bool, for_s: float, paused: bool, pauses: list[float], rules: OrderSettings
) -> None:
    decision = decided(online=online, for_s=for_s, paused=paused, pauses=tuple(pauses), rules=rules)
    if decision == "pause":
        assert not online
        assert not paused
        assert rules.pause_after_s > 0
    if decision == "resume":
        assert online
        assert paused
        assert NOW - (NOW - for_s) >= rules.resume_after_s
    flaps = sum(1 for ago in pauses if NOW - (NOW - ago) < 3600) >= rules.max_pauses_per_hour
    if flaps and for_s < STEADY_S - 1:
        assert decision != "resume"
