"""Instants are UTC milliseconds inside and ISO 8601 outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.instant import EARLIEST_MS, LATEST_MS, end_or_never, from_iso, to_iso


def test_the_service_s_form_has_milliseconds_and_a_z() -> None:
    assert to_iso(1_795_287_720_007) == "2026-11-21T19:02:00.007Z"


@given(st.integers(-(10**12), 4 * 10**12))
def test_an_instant_survives_the_way_out_and_back(at_ms: int) -> None:
    assert from_iso(to_iso(at_ms)) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T19:02:00Z",
        "2026-11-21T20:02:00+01:00",
        "2026-11-21T19:02",
        " 2026-11-21 19:02:00 ",
    ],
)
def test_other_writings_of_the_same_instant_agree(text: str) -> None:
    assert to_iso(from_iso(text)) == "2026-11-21T19:02:00.000Z"


@pytest.mark.parametrize("text", ["", "tomorrow", "19:02", "2026-13-01T00:00:00Z"])
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_iso(text)


@given(st.integers())
def test_any_number_that_was_stored_can_be_written(at_ms: int) -> None:
    assert to_iso(at_ms).endswith("Z")


def test_an_end_after_the_century_is_none() -> None:
    assert end_or_never(None) is None
    assert end_or_never(99_999_999_999_999_999) is None
    assert end_or_never(1_795_334_400_000) == 1_795_334_400_000


@pytest.mark.parametrize(
    ("at_ms", "plausible"),
    [(1_795_334_400, False), (1_795_334_400_000, True), (1_795_334_400_000_000, False)],
)
def test_seconds_and_microseconds_are_no_milliseconds(at_ms: int, *, plausible: bool) -> None:
    assert (EARLIEST_MS <= at_ms <= LATEST_MS) is plausible
