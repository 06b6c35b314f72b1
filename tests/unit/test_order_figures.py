"""Time to ticket, time to accept, and the share of orders that needed a hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.ledger.snapshot import Figures, OrderCourse, figures_of

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
