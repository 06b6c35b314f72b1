"""Whether a store is open: one rule over all reasons, whatever order things happen in."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.status.sentences import busy_text, why_closed
from tillbridge.stores.closure import (
    BUSY_MINUTES,
    BusyMode,
    ClosureReasons,
    Pause,
    Planned,
    Status,
    Who,
    at_time,
    closure_of,
    from_json,
    paused_by,
    resumed,
    seen,
    throttled,
    to_json,
)

NOW = 1_000_000
OPEN_HOURS = Planned(closed=False, until_ms=NOW + 5000)
CLOSED_HOURS = Planned(closed=True, until_ms=NOW + 5000, reason="outside opening hours")

pauses = st.none() | st.builds(
    Pause,
    st.integers(0, NOW),
    st.none() | st.integers(NOW - 5000, NOW + 5000),
    st.text(max_size=5),
    st.text(max_size=5),
)
busy_modes = st.none() | st.builds(
    BusyMode,
    st.integers(0, NOW),
    st.integers(1, 20),
    st.none() | st.integers(NOW - 5000, NOW + 5000),
    st.text(max_size=5),
)
statuses: st.SearchStrategy[Status] = st.sampled_from(["active", "inactive"])
everything = st.builds(
    ClosureReasons,
    person=pauses,
    others=pauses.map(lambda each: each and replace(each, until_ms=None)),
    pos_away=pauses.map(lambda each: each and replace(each, until_ms=None)),
    pos_closed=pauses.map(lambda each: each and replace(each, until_ms=None)),
    full=pauses,
    scheduled=pauses,
    busy=busy_modes,
    opened_until_ms=st.none() | st.integers(NOW - 5000, NOW + 5000),
    service_status=st.none() | statuses,
    sending=st.none() | statuses,
)
plans = st.builds(Planned, st.booleans(), st.none() | st.integers(NOW + 1, NOW + 9000))


@given(everything)
def test_a_store_is_open_exactly_when_nothing_keeps_it_closed(reasons: ClosureReasons) -> None:
    stands = closure_of(reasons)
    kept = [
        reasons.person,
        reasons.others,
        reasons.pos_away,
        reasons.pos_closed,
        reasons.full,
        reasons.scheduled,
    ]
    assert (stands.status == "active") == (not any(kept)) == (stands.who is None)


@given(everything, plans)
def test_the_tills_return_never_opens_what_a_person_or_others_closed(
    reasons: ClosureReasons, planned: Planned
) -> None:
    after = at_time(replace(reasons, pos_away=None), planned, NOW)
    person = reasons.person
    if reasons.others or (person and (person.until_ms is None or person.until_ms > NOW)):
        assert closure_of(after).status == "inactive"


@given(everything, plans)
def test_a_person_who_opens_the_store_leaves_the_bridges_pause(
    reasons: ClosureReasons, planned: Planned
) -> None:
    after = at_time(resumed(reasons, planned, NOW), planned, NOW)
    assert (after.pos_away, after.pos_closed) == (reasons.pos_away, reasons.pos_closed)
    closed = Who.POS_CLOSED if reasons.pos_closed else None
    assert closure_of(after).who is (Who.POS_AWAY if reasons.pos_away else closed)


@given(everything, plans)
def test_the_schedule_ends_nobody_elses_pause(reasons: ClosureReasons, planned: Planned) -> None:
    after = at_time(reasons, planned, NOW)
    assert (after.others, after.pos_away) == (reasons.others, reasons.pos_away)
    if reasons.person is not None and (reasons.person.until_ms or NOW + 1) > NOW:
        assert after.person == reasons.person


@given(everything, plans, pauses.filter(bool))
def test_a_persons_pause_holds_whatever_else_is(
    reasons: ClosureReasons, planned: Planned, pause: Pause
) -> None:
    lasting = replace(pause, until_ms=None)
    after = at_time(paused_by(reasons, lasting), planned, NOW + 99_999)
    stands = closure_of(replace(after, pos_away=None, others=None))
    assert (stands.who, stands.by, stands.reason) == (Who.PERSON, pause.by, pause.reason)


@given(everything)
def test_a_restart_forgets_nothing(reasons: ClosureReasons) -> None:
    assert from_json(to_json(reasons)) == reasons
    assert from_json(None) == ClosureReasons()


@given(everything, plans)
def test_what_the_service_was_told_is_no_surprise(
    reasons: ClosureReasons, planned: Planned
) -> None:
    for status in (reasons.service_status, reasons.sending):
        if status is not None:
            after = seen(reasons, status, planned, NOW)
            assert (after.person, after.others, after.pos_away) == (
                reasons.person,
                reasons.others,
                reasons.pos_away,
            )


@pytest.mark.parametrize("late", ["active", "inactive"])
def test_a_call_that_arrives_late_is_nobody_elses_act(late: Status) -> None:
    wanted: Status = "inactive" if late == "active" else "active"
    pause = Pause(1) if wanted == "inactive" else None
    reasons = ClosureReasons(
        person=pause, service_status=wanted, late=late, late_until_ms=NOW + 1000
    )
    after = seen(reasons, late, OPEN_HOURS, NOW)
    assert (after.person, after.others, after.service_status) == (pause, None, late)
    assert closure_of(after).status == wanted  # and thus it is sent again
    for somebody in (replace(reasons, late_until_ms=NOW), replace(after, service_status=wanted)):
        assert seen(somebody, late, OPEN_HOURS, NOW) != after  # too late, and a second time


def test_a_store_that_others_closed_stays_closed() -> None:
    after = seen(ClosureReasons(service_status="active"), "inactive", OPEN_HOURS, NOW)
    assert closure_of(after).who is Who.OTHERS
    assert closure_of(at_time(after, OPEN_HOURS, NOW + 10**9)).who is Who.OTHERS
    again = seen(after, "active", OPEN_HOURS, NOW)
    assert closure_of(again).status == "active"


def test_a_store_that_was_never_live_is_not_opened() -> None:
    assert closure_of(seen(ClosureReasons(), "inactive", OPEN_HOURS, NOW)).who is Who.OTHERS


def test_who_opens_at_the_service_is_right_until_the_schedules_next_change() -> None:
    closed = replace(at_time(ClosureReasons(), CLOSED_HOURS, NOW), service_status="inactive")
    assert closure_of(closed).who is Who.SCHEDULE
    opened = seen(closed, "active", CLOSED_HOURS, NOW)
    assert closure_of(at_time(opened, CLOSED_HOURS, NOW + 4999)).status == "active"
    later = replace(CLOSED_HOURS, until_ms=NOW + 9000)
    assert closure_of(at_time(opened, later, NOW + 5000)).who is Who.SCHEDULE


def test_who_opens_at_the_service_does_not_open_against_an_absent_till() -> None:
    away = ClosureReasons(person=Pause(1), pos_away=Pause(2), service_status="inactive")
    stands = closure_of(seen(away, "active", OPEN_HOURS, NOW))
    assert stands.who is Who.POS_AWAY


def test_a_pause_with_an_end_ends() -> None:
    reasons = paused_by(
        ClosureReasons(service_status="active"), Pause(NOW, NOW + 10, "anna", "busy")
    )
    assert closure_of(at_time(reasons, OPEN_HOURS, NOW + 9)).until_ms == NOW + 10
    assert closure_of(at_time(reasons, OPEN_HOURS, NOW + 10)).status == "active"


def test_the_schedule_keeps_its_beginning_while_it_lasts() -> None:
    first = at_time(ClosureReasons(), CLOSED_HOURS, NOW)
    later = at_time(first, CLOSED_HOURS, NOW + 100)
    assert later.scheduled == Pause(NOW, NOW + 5000, reason="outside opening hours")


steps: st.SearchStrategy[list[Any]] = st.lists(
    st.sampled_from(["pause", "resume", "away", "back", "night", "day", "tell"]), max_size=25
)


@given(steps)
def test_no_order_of_events_loses_a_cause(happened: list[str]) -> None:
    reasons, planned = ClosureReasons(service_status="active"), OPEN_HOURS
    person = away = False
    opened = False
    for step in happened:
        match step:
            case "pause":
                reasons, person, opened = paused_by(reasons, Pause(NOW)), True, False
            case "resume":
                reasons, person = resumed(reasons, planned, NOW), False
                opened = planned.closed
            case "away":
                reasons, away = replace(reasons, pos_away=reasons.pos_away or Pause(NOW)), True
            case "back":
                reasons, away = replace(reasons, pos_away=None), False
            case "night":
                planned = CLOSED_HOURS
            case "day":
                planned, opened = OPEN_HOURS, False
            case _:
                reasons = replace(reasons, service_status=closure_of(reasons).status)
        reasons = at_time(reasons, planned, NOW)
        night = planned.closed and not opened
        assert (closure_of(reasons).status == "inactive") == (person or away or night)


WINDOW_MS = BUSY_MINUTES * 60_000


@given(everything, st.none() | st.integers(NOW - 2 * WINDOW_MS, NOW))
def test_busy_mode_closes_a_store_only_while_it_is_full(
    reasons: ClosureReasons, reached_ms: int | None
) -> None:
    after = throttled(reasons, reached_ms, NOW)
    is_full = reasons.busy is not None and reached_ms is not None and reached_ms > NOW - WINDOW_MS
    assert (after.full is not None) == is_full
    assert replace(after, full=reasons.full) == reasons, "nothing else is touched"
    if after.full is not None and reached_ms is not None:
        assert after.full.until_ms == reached_ms + WINDOW_MS
        ended = at_time(after, OPEN_HOURS, reached_ms + WINDOW_MS)
        assert ended.full is None, "it opens by itself"


def test_busy_mode_ends_at_its_time_and_takes_its_pause_along() -> None:
    busy = ClosureReasons(busy=BusyMode(NOW - 9, 3, NOW, "anna"), full=Pause(NOW - 5, NOW + 900))
    assert closure_of(busy).who is Who.BUSY
    after = at_time(busy, OPEN_HOURS, NOW)
    assert (after.busy, after.full, closure_of(after).status) == (None, None, "active")


def test_reopening_ends_a_busy_mode_that_is_full_and_no_other() -> None:
    busy = ClosureReasons(busy=BusyMode(0, 3), person=Pause(0))
    assert resumed(busy, OPEN_HOURS, NOW).busy is not None
    full = resumed(replace(busy, full=Pause(0, NOW + 900)), OPEN_HOURS, NOW)
    assert (full.busy, full.full) == (None, None)


@given(everything)
def test_every_reason_is_said_in_words(reasons: ClosureReasons) -> None:
    shown = closure_of(reasons).to_json()
    assert bool(why_closed(shown)) == (shown["status"] == "inactive")
    assert bool(busy_text(shown)) == (reasons.busy is not None)
