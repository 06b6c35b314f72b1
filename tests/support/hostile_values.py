"""What a till may hand over where text, a number or an instant is expected."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(
    st.characters(exclude_categories=[]) | st.sampled_from("\ud800\udfff\x00\u202e\ufffd"),
    max_size=12,
)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, 10**40, 10**5000, -1, 1_795_334_400]),
    st.floats(),
    st.sampled_from([Decimal("NaN"), Decimal("1e999999999"), Decimal("-1e-999999")]),
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    NUMBERS,
    st.none(),
    st.booleans(),
    st.binary(max_size=3),
    st.sampled_from(
        [
            "x" * 100_000,
            "1e999999999",
            datetime(2026, 1, 1),  # noqa: DTZ001 -- a naive one is what is meant
            object(),
            [],
            {},
            ["a"],
            ("a", 1),
            ("\ud800",),
            tuple("ab" * 5000),
        ]
    ),
)
"""Anything at all."""


def or_anything(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return what is good three times of four, so that some of the rest gets through."""
    return st.one_of(good, good, good, VALUES)
