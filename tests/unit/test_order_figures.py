"""Time to ticket, time to accept, the share of orders that needed a hand; and what a day sold."""

from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.ledger.figures import Figures, OrderCourse, TodayView, figures_of, sales_of
from tillbridge.model.order import ReasonCode
from tillbridge.status.sentences import CAUSES, causes, today_line

COURSES = st.lists(
    st.builds(
        OrderCourse,
        received_at=st.integers(1, 10_000),
        written_at=st.none() | st.integers(1, 20_000),
        accepted_at=st.none() | st.integers(1, 20_000),
        by_person=st.booleans(),
        rejected=st.booleans(),
        cancelled=st.booleans(),
        reason_code=st.sampled_from([None, "OTHER", "POS_OFFLINE", "STORE_CLOSED"]),
    ),
    max_size=40,
)


def test_nothing_is_told_of_no_orders() -> None:
    assert figures_of([]) == Figures()
    assert figures_of([]).share is None


def test_times_are_told_by_their_middle_and_their_long_end() -> None:
    courses = [OrderCourse(1_000, written_at=1_000 + 100 * number) for number in range(1, 101)]
    times = figures_of(courses).to_ticket
    assert times is not None
    assert (times.median, times.p95, times.longest, times.count) == (5.0, 9.5, 10.0, 100)


@pytest.mark.parametrize(
    ("course", "lost"),
    [
        (OrderCourse(1, cancelled=True, reason_code="POS_OFFLINE"), True),
        (OrderCourse(1, cancelled=True, reason_code="OTHER"), True),
        (OrderCourse(1, cancelled=True, reason_code="OTHER", rejected=True), False),
        (OrderCourse(1, cancelled=True, reason_code="OTHER", by_person=True), False),
        (OrderCourse(1, cancelled=True, reason_code="OTHER", written_at=5), False),
        (OrderCourse(1, cancelled=True, reason_code="ITEM_OUT_OF_STOCK"), False),
        (OrderCourse(1), False),
    ],
)
def test_an_order_is_lost_if_nobody_wanted_it_cancelled(course: OrderCourse, lost: bool) -> None:
    assert course.lost is lost
    assert figures_of([course]).needed_a_hand == lost or course.by_person


@given(COURSES)
def test_the_share_is_a_share(courses: list[OrderCourse]) -> None:
    figures = figures_of(courses)
    assert 0 <= figures.lost <= figures.needed_a_hand <= figures.orders == len(courses)
    assert figures.share is None or 0 <= figures.share <= 1
    for times in (figures.to_ticket, figures.to_accept):
        assert times is None or 0 <= times.median <= times.p95 <= times.longest


# -- sales

ROME = ZoneInfo("Europe/Rome")
HOUR = 3_600_000


def at(text: str, zone: tzinfo = ROME) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def sold(when: str, amount: int | None = 1000, **changed: Any) -> OrderCourse:  # noqa: ANN401 -- fields of several types
    return OrderCourse(at(when), amount=amount, currency="EUR", **changed)


def test_today_begins_at_the_stores_midnight_and_leaves_cancelled_orders_out_of_the_revenue() -> (
    None
):
    courses = [
        sold("2026-11-22T23:59:59"),
        sold("2026-11-23T00:00:00", 500),
        sold("2026-11-23T12:00:00", None),
        sold("2026-11-23T13:00:00", 900, cancelled=True, reason_code="POS_OFFLINE"),
        sold("2026-11-23T13:30:00", 900, refused=True),
    ]
    today = sales_of(courses, ROME, at("2026-11-23T14:00:00")).to_json()
    assert today["since"] == "2026-11-22T23:00:00.000Z"
    assert today["orders"] == 4
    assert today["revenue"] == {"EUR": 500}
    assert today["cancelled"] == {"POS_OFFLINE": 1, "": 1}


def test_the_same_day_of_last_week_counts_until_the_same_time() -> None:
    courses = [
        sold("2026-11-16T00:30:00", 300),
        sold("2026-11-16T13:59:00", 400),
        sold("2026-11-16T14:01:00", 9000),
        sold("2026-11-17T12:00:00", 9000),
    ]
    now = at("2026-11-23T14:00:00")
    today = sales_of(courses, ROME, now, courses[0].received_at).to_json()
    assert today["last_week"] == {"orders": 2, "revenue": {"EUR": 700}}
    assert today["orders"] == 0
    assert today["median_to_till_s"] is None


def test_a_bridge_that_is_younger_than_a_week_compares_with_nothing() -> None:
    course = sold("2026-11-20T12:00:00")
    now = at("2026-11-23T14:00:00")
    assert sales_of([course], ROME, now, course.received_at).last_week is None
    assert sales_of([], ROME, now).last_week is None


def test_last_week_is_counted_by_the_clock_on_the_wall_when_it_was_changed_since() -> None:
    """Rome's clocks went back on 25 October: 14:00 then was an hour earlier by UTC."""
    now = at("2026-10-26T14:00:00")
    courses = [
        sold("2026-10-19T00:15:00"),
        sold("2026-10-19T13:30:00"),
        sold("2026-10-19T14:30:00"),
    ]
    sales = sales_of(courses, ROME, now, courses[0].received_at)
    assert sales.last_week is not None
    assert sales.last_week.orders == 2
    assert sales.today.from_ms - sales.last_week.from_ms == 7 * 24 * HOUR + HOUR


def test_an_hour_that_is_there_twice_is_two_bars() -> None:
    now = at("2026-10-25T10:20:00")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ROME)
    second = first.replace(fold=1)
    courses = [OrderCourse(round(each.timestamp() * 1000)) for each in (first, second)]
    counted = [each for each in sales_of(courses, ROME, now).hours if each.orders]
    assert [each.orders for each in counted] == [1, 1]
    assert {datetime.fromtimestamp(each.from_ms / 1000, ROME).hour for each in counted} == {2}


def test_days_are_as_long_as_the_clock_has_them() -> None:
    days = sales_of([], ROME, at("2026-10-26T10:00:00")).days
    lengths = [after.from_ms - day.from_ms for day, after in pairwise(days)]
    assert [length // HOUR for length in lengths] == [24, 24, 24, 24, 24, 25]


@given(
    st.lists(st.tuples(st.integers(0, 8 * 24 * HOUR), st.booleans()), max_size=60),
    st.sampled_from(["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    st.integers(1_767_225_600_000, 1_798_761_600_000),
)
def test_every_order_of_the_week_is_in_one_day_and_each_of_today_in_both(
    ages: list[tuple[int, bool]], zone: str, now_ms: int
) -> None:
    courses = [
        OrderCourse(now_ms - age, cancelled=cancelled, amount=100, currency="EUR")
        for age, cancelled in ages
    ]
    sales = sales_of(courses, ZoneInfo(zone), now_ms, 0)
    assert len(sales.hours) == 24
    assert len(sales.days) == 7
    assert sales.days[-1] == sales.today
    within = [each for each in courses if each.received_at >= sales.days[0].from_ms]
    assert sum(each.orders for each in sales.days) == len(within)
    hours = [each for each in courses if each.received_at >= sales.hours[0].from_ms]
    assert sum(each.orders for each in sales.hours) == len(hours)
    assert sum(sales.causes.values()) == sales.today.cancelled
    sold_today = sales.today.orders - sales.today.cancelled
    assert sales.today.revenue.get("EUR", 0) == 100 * sold_today
    assert sales.last_week is not None


# -- in words


def day(**changed: Any) -> TodayView:  # noqa: ANN401 -- (as above)
    empty = sales_of([], ROME, at("2026-11-23T14:00:00")).to_json()
    return cast("TodayView", {**empty, **changed})


def test_a_day_is_told_in_one_line_beside_last_weeks() -> None:
    then = {"orders": 1, "revenue": {"EUR": 900}}
    assert today_line(day()) == "0 orders"
    assert (
        today_line(day(orders=2, revenue={"USD": 500, "EUR": 700}, last_week=then))
        == "2 orders, €7.00, $5.00; last week by this time 1 order, €9.00"
    )


def test_causes_of_cancelled_orders_are_words_the_commonest_first() -> None:
    told = causes(day(cancelled={"": 1, "POS_OFFLINE": 2, "NEWS": 1}))
    assert told == "till offline 2, by the guest or the ordering service 1, other reasons 1"
    assert causes(day()) == ""


def test_every_reason_code_has_its_words() -> None:
    assert {*ReasonCode, ""} == set(CAUSES)
