from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sandbox_driver import Json
from tests.support.sandbox_hall import week
from tillbridge.sandbox.bodies import check_hours, is_open
from tillbridge.sandbox.orders import rolled_up, shares
from tillbridge.sandbox.validation import ServiceError

LATE = [{"open": "18:00", "close": "02:00"}]
LUNCH = [{"open": "12:00", "close": "15:00"}]


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def zoned(zone: str, **days: Json) -> dict[str, Any]:
    closed: dict[str, Any] = {day: [] for day in week()["weekly"]}
    return {"timezone": zone, "weekly": closed | days}


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("2030-07-01T09:59:59+00:00", False),  # a Monday; noon in Berlin is 10:00 UTC in summer
        ("2030-07-01T10:00:00+00:00", True),
        ("2030-07-01T12:59:59+00:00", True),
        ("2030-07-01T13:00:00+00:00", False),
        ("2030-07-02T11:00:00+00:00", False),
        ("2030-12-02T10:30:00+00:00", False),  # and 11:00 UTC in winter
        ("2030-12-02T11:00:00+00:00", True),
    ],
)
def test_hours_are_local_in_summer_and_winter(instant: str, expected: bool) -> None:
    assert is_open(zoned("Europe/Berlin", monday=LUNCH), at(instant)) is expected


def test_hours_past_midnight_belong_to_the_day_on_which_they_began() -> None:
    hours = zoned("UTC", sunday=LATE)
    assert is_open(hours, at("2030-07-08T01:59:00+00:00"))
    assert not is_open(hours, at("2030-07-08T02:00:00+00:00"))
    assert not is_open(hours, at("2030-07-07T01:00:00+00:00"))
    closed = {**hours, "overrides": [{"date": "2030-07-07", "closed": True}]}
    assert not is_open(closed, at("2030-07-08T01:00:00+00:00"))


def test_hours_past_midnight_may_not_run_into_the_next_day_even_at_the_weeks_end() -> None:
    early = [{"open": "01:00", "close": "05:00"}]
    check_hours(zoned("UTC", sunday=LATE, tuesday=early), past_midnight=True)
    for days in ({"sunday": LATE, "monday": early}, {"tuesday": LATE, "wednesday": early}):
        with pytest.raises(ServiceError, match="overlaps"):
            check_hours(zoned("UTC", **days), past_midnight=True)


def test_touching_hours_do_not_overlap() -> None:
    both = [{"open": "12:00", "close": "15:00"}, {"open": "15:00", "close": "24:00"}]
    check_hours(zoned("UTC", monday=both, tuesday=both), past_midnight=False)


def test_without_hours_a_store_is_always_open() -> None:
    assert is_open(None, 0)


@given(st.integers(0, 100_000), st.lists(st.integers(0, 10_000), min_size=1, max_size=6))
def test_an_amount_is_shared_out_whole(amount: int, weights: list[int]) -> None:
    parts = shares(amount, weights)
    assert (sum(parts), len(parts)) == (amount, len(weights))
    assert min(parts) >= 0


@pytest.mark.parametrize(
    ("current", "children", "expected"),
    [
        ("pending", ["confirmed", "pending"], "pending"),
        ("pending", ["preparing", "confirmed"], "confirmed"),
        ("confirmed", ["ready", "cancelled"], "ready"),
        ("out_for_delivery", ["ready", "delivered"], "out_for_delivery"),
        ("out_for_delivery", ["delivered", "delivered"], "delivered"),
        ("preparing", ["cancelled", "cancelled"], "cancelled"),
    ],
)
def test_a_parent_rolls_its_children_up(current: str, children: list[str], expected: str) -> None:
    assert rolled_up(current, children) == expected
