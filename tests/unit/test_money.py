"""Money is read exactly, written back exactly, and never passes through a float."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.money import exponent, major, to_major, to_minor


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("4.50", "USD", 450),
        ("4,50", "EUR", 450),
        ("4.5", "USD", 450),
        ("4", "USD", 400),
        (" 1,234.50 ", "USD", 123450),
        ("1.234,50", "EUR", 123450),
        ("1 234,50", "CZK", 123450),
        ("1'234.50", "CHF", 123450),
        ("1,234,567", "JPY", 1234567),
        ("350", "JPY", 350),
        ("1.250", "KWD", 1250),
        ("0.1", "USD", 10),
        ("-2.00", "USD", -200),
    ],
)
def test_amounts_are_read_as_tills_write_them(text: str, currency: str, minor: int) -> None:
    assert to_minor(text, currency) == minor


@pytest.mark.parametrize(
    "text",
    [
        "",
        "free",
        "4.505",
        "4,5,0.1.2",
        "NaN",
        "Infinity",
        "1e",
        "1e3",
        "1e999999999",
        "4.50 EUR",
        "1_000",
        "--1",
        "1.2.3,4,5",
    ],
)
def test_what_is_not_one_exact_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"amount|decimals|others|currency"):
        to_minor(text, "USD")


@given(st.integers(-(10**12), 10**12), st.sampled_from(["USD", "JPY", "KWD", "CLF"]))
def test_an_amount_survives_the_way_out_and_back(minor: int, currency: str) -> None:
    assert to_minor(to_major(minor, currency), currency) == minor
    assert major(minor, currency) == Decimal(to_major(minor, currency))
    assert to_minor(major(minor, currency), currency) == minor
    assert major(None, currency) is None


@given(st.integers(0, 10**9), st.sampled_from(["USD", "KWD"]))
def test_a_decimal_comma_reads_as_a_decimal_point(minor: int, currency: str) -> None:
    text = to_major(minor, currency)
    assert to_minor(text.replace(".", ","), currency) == to_minor(text, currency)


def test_a_decimal_is_taken_as_it_is() -> None:
    assert to_minor(Decimal("12.30"), "USD") == 1230
    assert exponent("usd") == 2
