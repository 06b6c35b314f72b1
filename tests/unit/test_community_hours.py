"""Opening hours as a community takes them show what the file says, on every day of a week."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.communities.hours import digest, hours_body, local_date
from tillbridge.model.instant import from_iso
from tillbridge.model.restaurant import WEEKDAYS, DatedHours, OpeningHours, Span, week_json
from tillbridge.sandbox.bodies import Hours, check_hours

TODAY = date(2026, 11, 21)  # a Saturday
LUNCH, DINNER = Span(720, 900), Span(1080, 1440)

spans = st.sampled_from([(), (LUNCH,), (DINNER,), (LUNCH, DINNER), (Span(0, 1440),)])
days = st.integers(-10, 30).map(lambda offset: TODAY + timedelta(days=offset))
overrides = st.lists(
    st.builds(DatedHours, days, spans, st.sampled_from(["", "Holiday"])),
    max_size=6,
    unique_by=lambda each: each.day,
)
weeks = st.builds(
    OpeningHours,
    st.just("Europe/Prague"),
    st.tuples(*([spans] * 7)),
    overrides.map(tuple),
)


def shown(body: dict, day: date) -> list:
    """What the service shows for a date."""
    if any(each["date"] == day.isoformat() and each["closed"] for each in body["overrides"]):
        return []
    own: dict = next((each for each in body["overrides"] if each["date"] == day.isoformat()), {})
    return list(own.get("hours", body["weekly"][WEEKDAYS[day.weekday()]]))


def said(hours: OpeningHours, day: date) -> list:
    return week_json((hours.on(day), *([()] * 6)))["monday"]


@given(weeks)
def test_for_a_week_from_today_the_community_shows_what_the_file_says(hours: OpeningHours) -> None:
    body = hours_body(hours, TODAY)
    for offset in range(7):
        day = TODAY + timedelta(days=offset)
        assert shown(body, day) == said(hours, day)


@given(weeks)
def test_closed_dates_are_told_however_far_they_are(hours: OpeningHours) -> None:
    body = hours_body(hours, TODAY)
    for each in hours.overrides:
        if each.day >= TODAY and not each.spans:
            assert shown(body, each.day) == []
    assert all(each["closed"] and each["date"] >= TODAY.isoformat() for each in body["overrides"])


@given(weeks)
def test_what_is_sent_is_what_the_service_takes(hours: OpeningHours) -> None:
    body = hours_body(hours, TODAY)
    Hours.model_validate(body)
    check_hours(body, past_midnight=False)


@given(weeks)
def test_with_a_field_for_them_all_dated_hours_are_told_at_once(hours: OpeningHours) -> None:
    body = hours_body(hours, TODAY, hours_field="hours")
    for offset in range(31):
        day = TODAY + timedelta(days=offset)
        assert shown(body, day) == said(hours, day)
    assert body["weekly"] == week_json(hours.weekly)


@given(weeks)
def test_the_order_of_dates_changes_nothing(hours: OpeningHours) -> None:
    turned = OpeningHours(hours.timezone, hours.weekly, hours.overrides[::-1])
    assert digest(hours_body(hours, TODAY)) == digest(hours_body(turned, TODAY))


def test_usual_hours_come_back_once_the_date_is_over() -> None:
    special = DatedHours(TODAY, (LUNCH,))
    hours = OpeningHours("Europe/Prague", ((DINNER,),) * 7, (special,))
    assert hours_body(hours, TODAY)["weekly"]["saturday"] == [{"open": "12:00", "close": "15:00"}]
    after = hours_body(hours, TODAY + timedelta(days=1))
    assert after["weekly"]["saturday"] == [{"open": "18:00", "close": "24:00"}]
    assert after["overrides"] == []


def test_the_date_is_that_of_the_place_on_both_sides_of_a_clock_change() -> None:
    # Prague sets its clocks back on 2026-10-25 at 03:00 summer time.
    assert local_date("Europe/Prague", from_iso("2026-10-24T21:59:59.000Z")) == date(2026, 10, 24)
    assert local_date("Europe/Prague", from_iso("2026-10-24T22:00:00.000Z")) == date(2026, 10, 25)
    assert local_date("Europe/Prague", from_iso("2026-10-25T22:59:59.000Z")) == date(2026, 10, 25)
    assert local_date("Europe/Prague", from_iso("2026-10-25T23:00:00.000Z")) == date(2026, 10, 26)
    assert local_date("Pacific/Auckland", from_iso("2026-10-25T12:00:00.000Z")) == date(
        2026, 10, 26
    )
