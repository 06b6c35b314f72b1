"""When a store takes no orders by its own plan, on real clocks."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.config.hours import pause_faults, read_pauses
from tillbridge.model.restaurant import DatedHours, OpeningHours, PlannedPause, Span
from tillbridge.stores.closure import Schedule, planned_at

ROME = "Europe/Rome"
LUNCH_AND_DINNER = OpeningHours(ROME, ((Span(720, 870), Span(1110, 1350)),) * 7)


def at(text: str, zone: str = ROME, *, fold: int = 0) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return round(moment.timestamp() * 1000)


def test_outside_its_hours_the_store_is_closed_until_it_opens() -> None:
    schedule = Schedule(LUNCH_AND_DINNER, timezone=ROME)
    closed = planned_at(schedule, at("2026-06-10T15:00"))
    assert (closed.closed, closed.until_ms) == (True, at("2026-06-10T18:30"))
    assert closed.reason == "outside opening hours"
    noon = planned_at(schedule, at("2026-06-10T13:00"))
    assert (noon.closed, noon.until_ms) == (False, at("2026-06-10T14:30"))


def test_the_last_orders_come_before_closing_and_closed_is_closed_until_it_opens() -> None:
    schedule = Schedule(LUNCH_AND_DINNER, last_orders_min=30, timezone=ROME)
    assert planned_at(schedule, at("2026-06-10T13:59")).until_ms == at("2026-06-10T14:00")
    late = planned_at(schedule, at("2026-06-10T14:00"))
    assert (late.closed, late.until_ms) == (True, at("2026-06-10T18:30"))
    assert late.reason == "last orders are over"


def test_a_weekly_pause_and_one_of_a_date() -> None:
    pauses = tuple(read_pauses(["Friday 19:00-21:00", "2026-12-31 18:00-24:00"]))
    schedule = Schedule(pauses=pauses, timezone=ROME)
    friday = planned_at(schedule, at("2026-06-12T20:00"))
    assert (friday.closed, friday.until_ms) == (True, at("2026-06-12T21:00"))
    assert planned_at(schedule, at("2026-06-12T18:00")).until_ms == at("2026-06-12T19:00")
    eve = planned_at(schedule, at("2026-12-31T23:00"))
    assert (eve.closed, eve.until_ms) == (True, at("2027-01-01T00:00"))


def test_pauses_and_hours_that_touch_are_one_closed_time() -> None:
    schedule = Schedule(
        LUNCH_AND_DINNER, (PlannedPause(Span(1110, 1200), weekday=2),), timezone=ROME
    )
    told = planned_at(schedule, at("2026-06-10T15:00"))  # a Wednesday
    assert (told.closed, told.until_ms) == (True, at("2026-06-10T20:00"))


def test_a_date_on_which_the_store_is_closed() -> None:
    hours = OpeningHours(
        ROME, LUNCH_AND_DINNER.weekly, (DatedHours(date(2026, 12, 25), (), "Christmas"),)
    )
    told = planned_at(Schedule(hours, timezone=ROME), at("2026-12-25T13:00"))
    assert (told.closed, told.until_ms) == (True, at("2026-12-26T12:00"))


def test_nothing_planned_closes_nothing() -> None:
    told = planned_at(Schedule(), at("2026-06-10T15:00"))
    assert (told.closed, told.until_ms) == (False, None)


@pytest.mark.parametrize(
    ("zone", "spring", "autumn"),
    [
        (ROME, "2026-03-29", "2026-10-25"),
        ("America/New_York", "2026-03-08", "2026-11-01"),
    ],
)
def test_on_change_days_the_night_has_its_own_length(zone: str, spring: str, autumn: str) -> None:
    hours = OpeningHours(zone, ((Span(0, 60), Span(240, 1440)),) * 7)  # closed from 1 to 4
    schedule = Schedule(hours, timezone=zone)
    for day, length_h in ((spring, 2), (autumn, 4)):
        closes = at(f"{day}T01:00", zone, fold=1)
        opens = at(f"{day}T04:00", zone)
        if zone != ROME and length_h == 4:
            length_h = 3  # noqa: PLW2901 -- there the hour that comes twice is one of service
        told = planned_at(schedule, closes)
        assert (told.closed, told.until_ms) == (True, opens)
        assert opens - closes == length_h * 3_600_000


def test_a_clock_that_jumps_back_finds_the_same_day_again() -> None:
    schedule = Schedule(LUNCH_AND_DINNER, timezone=ROME)
    noon, night = at("2026-06-10T12:30"), at("2026-06-10T23:00")
    assert planned_at(schedule, noon) == planned_at(schedule, noon)
    assert planned_at(schedule, night).closed
    assert not planned_at(schedule, noon).closed


spans = st.lists(st.integers(0, 1440), max_size=4, unique=True).map(
    lambda times: tuple(
        Span(opens, closes)
        for opens, closes in zip(sorted(times)[::2], sorted(times)[1::2], strict=False)
    )
)
pauses = st.lists(
    st.builds(
        PlannedPause,
        st.builds(
            lambda a, n: Span(a, min(1440, a + n)), st.integers(0, 1400), st.integers(1, 400)
        ),
        weekday=st.integers(0, 6),
    ),
    max_size=3,
).map(tuple)


@given(
    st.tuples(*[spans] * 7).filter(any),
    pauses,
    st.sampled_from([0, 15, 90]),
    st.sampled_from([ROME, "America/New_York"]),
    st.integers(0, 365 * 24 * 60),
)
def test_what_is_said_to_hold_until_then_does(
    week: tuple[tuple[Span, ...], ...],
    planned: tuple[PlannedPause, ...],
    last: int,
    zone: str,
    minutes: int,
) -> None:
    schedule = Schedule(OpeningHours(zone, week), planned, last, zone)
    now = round((datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)).timestamp()) * 1000
    told = planned_at(schedule, now)
    if told.until_ms is None:
        return
    assert told.until_ms > now
    between = [now + (told.until_ms - now) * part // 7 for part in range(7)]
    assert all(planned_at(schedule, each).closed is told.closed for each in between)
    assert planned_at(schedule, told.until_ms).closed is not told.closed


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("firday 19:00-21:00", 'Did you mean "friday"?'),
        ("2026-02-30 19:00-21:00", "does not begin with a weekday or a date"),
        ("friday 7pm-9pm", 'Write "19:00-21:00".'),
        ("friday 21:00-19:00", "ends before it begins"),
        ("friday", "is not a time span"),
    ],
)
def test_a_pause_that_cannot_be_read_is_told_with_what_to_write(written: str, words: str) -> None:
    ((place, fault),) = pause_faults([written])
    assert place == 0
    assert words in f"{fault.text} {fault.fix}"
    assert read_pauses([written]) == []
