"""The edges of amounts: what just passes, and what just does not."""

from decimal import Decimal

import pytest

from tillbridge.model import money
from tillbridge.model.money import (
    DoubtfulAmount,
    decimal_sign_of,
    has_cents,
    read_amount,
)


def test_a_price_has_at_most_a_million_million_minor_units() -> None:
    assert money.MAX_PRICE == 1_000_000_000_000


@pytest.mark.parametrize("currency", ["AMD", "COP", "HUF", "UZS", "uzs", "JPY"])
def test_a_currency_without_coins_has_no_cents(currency: str) -> None:
    assert not has_cents(currency)


def test_the_longest_amount_is_read_and_none_beyond_it() -> None:
    assert read_amount("1" * 18, "JPY") == int("1" * 18)
    with pytest.raises(ValueError, match="not an amount"):
        read_amount("1" * 19, "JPY")
    assert read_amount(" " * 79 + "1", "JPY") == 1
    with pytest.raises(ValueError, match="not an amount"):
        read_amount(" " * 80 + "1", "JPY")


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1\u2002000,50", "1000.50"),  # the first and the last of the blanks of typesetters
        ("1\u200a000,50", "1000.50"),
        ("1．50", "1.50"),  # noqa: RUF001 -- as it is typed in Japan
        ("1，50", "1.50"),  # noqa: RUF001 -- (as above)
        ("＄4.50", "4.50"),  # noqa: RUF001 -- (as above)
        ("123 456", "123456"),
    ],
)
def test_signs_of_other_keyboards_mean_the_same(text: str, amount: str) -> None:
    assert read_amount(text, "USD") == Decimal(amount)


def test_a_letter_is_never_left_out() -> None:
    with pytest.raises(ValueError, match="not an amount"):
        read_amount("1X", "USD")


@pytest.mark.parametrize(
    ("texts", "sign"),
    [
        (["1.234.567"], ","),
        (["1,234,567"], "."),
        (["1.234.567", "4.50"], ""),  # each contradicts the other
        (["1.234.567", "4.50", "5.50"], "."),
        (["4,50", "5,50", "4.50"], ","),
    ],
)
def test_the_decimal_sign_is_that_of_most_amounts(texts: list[str], sign: str) -> None:
    assert decimal_sign_of(texts, "EUR") == sign


def test_a_blank_may_be_a_decimal_sign_where_there_are_three_decimals() -> None:
    with pytest.raises(ValueError, match="not an amount"):
        read_amount("1 500", "KWD")
    assert read_amount("1 500 000", "KWD") == 1_500_000
    assert read_amount("1 500", "EUR") == 1500


def test_an_amount_that_contradicts_its_file_is_told_with_the_files_sign() -> None:
    for text, sign, name in (("4.50", ",", "a comma"), ("4,50", ".", "a point")):
        with pytest.raises(DoubtfulAmount, match=f"which have {name} before their decimals$"):
            read_amount(text, "EUR", sign)  # type: ignore[arg-type]  # one of both
