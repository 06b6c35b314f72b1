"""When tomorrow begins for a restaurant."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.restaurant import OpeningHours, Span, next_day_opens

BERLIN = ZoneInfo("Europe/Berlin")
DAY = (Span(11 * 60, 14 * 60), Span(17 * 60, 22 * 60))
BAR = (Span(0, 2 * 60), Span(18 * 60, 24 * 60))
LATE = (Span(0, 5 * 60), Span(20 * 60, 24 * 60))
ALWAYS = (Span(0, 24 * 60),)


def hours(*day: Span, closed: int | None = None) -> OpeningHours:
    week = [() if number == closed else day for number in range(7)]
    return OpeningHours("Europe/Berlin", tuple(week))


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1000)


@pytest.mark.parametrize(
    ("week", "now", "opens"),
    [
        (hours(*DAY), "2026-11-20T12:30", "2026-11-21T11:00"),  # not after the lunch break
        (hours(*DAY), "2026-11-20T21:30", "2026-11-21T11:00"),
        (hours(*DAY, closed=5), "2026-11-20T21:30", "2026-11-22T11:00"),
        (hours(*BAR), "2026-11-20T23:00", "2026-11-21T18:00"),
        (hours(*BAR), "2026-11-21T01:00", "2026-11-21T18:00"),  # still Friday's night
        (hours(*LATE), "2026-11-20T23:00", "2026-11-21T20:00"),
        (hours(*ALWAYS), "2026-11-20T23:00", "2026-11-21T04:00"),
        (hours(), "2026-11-20T23:00", "2026-11-21T04:00"),
        (None, "2026-11-20T03:00", "2026-11-20T04:00"),
        (None, "2026-11-20T04:00", "2026-11-21T04:00"),
    ],
)
def test_tomorrow_begins_with_the_first_opening_of_the_next_day(
    week: OpeningHours | None, now: str, opens: str
) -> None:
    assert next_day_opens(week, BERLIN, at(now)) == at(opens)


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 -- wall time
    st.sampled_from([None, hours(), hours(*DAY), hours(*BAR), hours(*LATE), hours(*ALWAYS)]),
)
def test_tomorrow_is_always_ahead(now: datetime, week: OpeningHours | None) -> None:
    now_ms = round(now.replace(tzinfo=BERLIN).timestamp() * 1000)
    opens = next_day_opens(week, BERLIN, now_ms)
    assert now_ms < opens <= now_ms + timedelta(days=3) / timedelta(milliseconds=1)
