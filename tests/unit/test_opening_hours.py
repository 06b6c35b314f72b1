"""When a restaurant is open on a real clock, change days included."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.restaurant import (
    DAY_MINUTES,
    DatedHours,
    OpeningHours,
    Span,
    missing_time,
    opening_at,
    openings,
    week_json,
)

ROME, NEW_YORK = "Europe/Rome", "America/New_York"
CHANGES = {
    ROME: (date(2026, 3, 29), date(2026, 10, 25)),
    NEW_YORK: (date(2026, 3, 8), date(2026, 11, 1)),
}


def every_day(*spans: tuple[int, int], zone: str = ROME) -> OpeningHours:
    return OpeningHours(zone, (tuple(Span(*span) for span in spans),) * 7)


def at(text: str, zone: str = ROME, *, fold: int = 0) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return round(moment.timestamp() * 1000)


def test_open_and_closed_with_the_next_change() -> None:
    hours = every_day((720, 870), (1110, 1350))
    noon = opening_at(hours, at("2026-06-10T12:00"))
    assert (noon.is_open, noon.until_ms) == (True, at("2026-06-10T14:30"))
    pause = opening_at(hours, at("2026-06-10T14:30"))
    assert (pause.is_open, pause.until_ms) == (False, at("2026-06-10T18:30"))


def test_midnight_does_not_close_who_is_open_on_both_sides() -> None:
    late = opening_at(every_day((0, 120), (1080, 1440)), at("2026-06-10T23:59"))
    assert late.until_ms == at("2026-06-11T02:00")
    assert opening_at(every_day((0, 1440)), at("2026-06-10T12:00")).until_ms is None
    assert opening_at(every_day(), at("2026-06-10T12:00")).until_ms is None


def test_a_dated_exception_counts_for_its_day_only() -> None:
    hours = OpeningHours(
        ROME, every_day((720, 870)).weekly, (DatedHours(date(2026, 6, 10), (), "Holiday"),)
    )
    told = opening_at(hours, at("2026-06-10T13:00"))
    assert (told.is_open, told.until_ms) == (False, at("2026-06-11T12:00"))


def test_the_day_on_which_an_hour_is_missing() -> None:
    for zone, (spring, _autumn) in CHANGES.items():
        ((start, end),) = openings(every_day((60, 240), zone=zone), spring, spring)
        assert end - start == 2 * 3_600_000
        ((start, end),) = openings(every_day((150, 240), zone=zone), spring, spring)
        assert start == at(f"{spring}T03:00", zone)  # 02:30 counts from the jump
        assert openings(every_day((125, 170), zone=zone), spring, spring) == []
        assert missing_time(zone, spring, 150) == "03:00"
        assert missing_time(zone, spring, 60) is None


def test_the_day_on_which_an_hour_comes_twice() -> None:
    for zone, (_spring, autumn) in CHANGES.items():
        twice = 2 if zone == ROME else 1  # the hour that comes twice
        ((start, end),) = openings(
            every_day((twice * 60 + 30, (twice + 1) * 60), zone=zone), autumn, autumn
        )
        assert start == at(f"{autumn}T0{twice}:30", zone, fold=0)
        assert end == at(f"{autumn}T0{twice + 1}:00", zone)
        assert end - start == 90 * 60_000
        ((start, end),) = openings(every_day((0, twice * 60 + 30), zone=zone), autumn, autumn)
        assert end == at(f"{autumn}T0{twice}:30", zone, fold=1)


spans = st.lists(st.integers(0, DAY_MINUTES), max_size=6, unique=True).map(
    lambda times: tuple(
        Span(opens, closes)
        for opens, closes in zip(sorted(times)[::2], sorted(times)[1::2], strict=False)
    )
)
weeks = st.tuples(*[spans] * 7)


@given(
    weeks,
    st.sampled_from([ROME, NEW_YORK, "UTC", "Australia/Lord_Howe"]),
    st.integers(0, 400 * 24 * 60),
)
def test_openings_never_overlap_and_opening_at_agrees(
    week: tuple[tuple[Span, ...], ...], zone: str, minutes: int
) -> None:
    hours = OpeningHours(zone, week)
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    day = now.astimezone(ZoneInfo(zone)).date()
    found = openings(hours, day - timedelta(days=1), day + timedelta(days=8))
    for (_start, end), (start, _end) in pairwise(found):
        assert end < start
    now_ms = round(now.timestamp() * 1000)
    told = opening_at(hours, now_ms)
    assert told.is_open == any(start <= now_ms < end for start, end in found)
    if told.until_ms is not None:
        assert told.until_ms > now_ms
        assert opening_at(hours, told.until_ms).is_open is not told.is_open
        assert opening_at(hours, told.until_ms - 1).is_open is told.is_open


@given(weeks)
def test_the_week_as_the_service_reads_it_loses_nothing(
    week: tuple[tuple[Span, ...], ...],
) -> None:
    told = week_json(week)
    assert [len(day) for day in told.values()] == [len(day) for day in week]
    assert [f"{each['open']}-{each['close']}" for day in told.values() for each in day] == [
        str(span) for day in week for span in day
    ]
