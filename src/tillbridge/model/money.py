"""Money: integer minor units of the store's currency; decimals only at the edges.

Specification: General conventions ("integers in minor units of the store currency").
"""

from decimal import Decimal

from tillbridge.model.amount_text import DecimalSign, read_amount
from tillbridge.model.numbers import MAX_EXPONENT, parse_decimal

# ISO 4217: the currencies whose minor unit is not a hundredth.
_EXPONENTS = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}

# Those whose minor unit is on paper only: no price in a shop has any.
_WITHOUT_CENTS = frozenset(
    "AMD COP CRC HUF IDR IQD IRR KHR KZT LAK LBP MMK MNT RSD SYP TWD TZS UZS".split()
)

MAX_PRICE = 10**12
"""In minor units. Anything above is a misplaced number, and would not fit a ledger for ever."""

_GROUP = 3  # so many digits behind a point may be thousands


def exponent(currency: str) -> int:
    """Return how many decimal digits `currency` (ISO 4217) has: USD 2, JPY 0, KWD 3."""
    return _EXPONENTS.get(currency.upper(), 2)


def has_cents(currency: str) -> bool:
    """Return whether prices in `currency` (ISO 4217) have decimals: in USD and KWD, not in COP."""
    return exponent(currency) > 0 and currency.upper() not in _WITHOUT_CENTS


def to_minor(amount: str | Decimal, currency: str, *, decimal: DecimalSign = "") -> int:
    """Return `amount`, in major units (`4.50`, `4,50`, `1.234,50`, `€ 4,50`), in minor units.

    `decimal` is the sign before the decimals in the file that a text comes from, where it is known
    (`tillbridge.adapter.prices` finds it out); without it a text that can be read in two ways
    (`25.000`) is refused. Raises ValueError for anything that is not one exact amount in
    `currency` (ISO 4217): text, a fraction of a minor unit, infinity, another currency's sign.
    """
    digits = exponent(currency)
    if isinstance(amount, str):
        # Nearly all amounts are as plain as this, and a menu has thousands.
        whole, point, part = amount.partition(".")
        if (
            amount.isascii()
            and whole.isdecimal()
            and len(part) <= digits
            and len(part) != _GROUP
            and len(whole) <= MAX_EXPONENT
            and decimal != ","
        ):
            if part.isdecimal():
                return int(whole + part.ljust(digits, "0"))
            if not point:
                return int(whole + "0" * digits)
        value = read_amount(amount, currency, decimal)
    else:
        try:
            value = parse_decimal(amount)
        except ValueError:
            msg = f"{str(amount)[:40]!r} is not an amount of money"
            raise ValueError(msg) from None
    scaled = value.scaleb(digits)
    if scaled != scaled.to_integral_value():
        msg = f"{str(amount)!r} has more than the {digits} decimals that {currency.upper()} has"
        raise ValueError(msg)
    return int(scaled)


def to_major(minor: int, currency: str) -> str:
    """Return `minor` as plain decimal text in major units: 450, USD -> `4.50`, JPY -> `450`."""
    digits = exponent(currency)
    return str(Decimal(minor).scaleb(-digits).quantize(Decimal(1).scaleb(-digits)))
