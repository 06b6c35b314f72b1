"""Money: integer minor units of the store's currency; decimals only at the edges.

Specification: General conventions ("integers in minor units of the store currency").
"""

from decimal import Decimal

from tillbridge.model.numbers import MAX_EXPONENT, parse_decimal

# ISO 4217: the currencies whose minor unit is not a hundredth.
_EXPONENTS = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}


def exponent(currency: str) -> int:
    """Return how many decimal digits `currency` (ISO 4217) has: USD 2, JPY 0, KWD 3."""
    return _EXPONENTS.get(currency.upper(), 2)


def to_minor(amount: str | Decimal, currency: str) -> int:
    """Return `amount`, decimal in major units (`4.50`, `4,50`), in minor units.

    A comma is a decimal comma unless a point follows it (`1,234.50`); a point before a comma
    groups thousands (`1.234,50`); blanks and apostrophes group too. Raises ValueError for
    anything that is not one exact amount: text, a fraction of a minor unit, infinity.
    """
    if isinstance(amount, str):
        # Nearly all amounts are as plain as this, and a menu has thousands.
        whole, point, part = amount.partition(".")
        digits = _EXPONENTS.get(currency.upper(), 2)
        if (
            amount.isascii()
            and whole.isdecimal()
            and len(part) <= digits
            and len(whole) <= MAX_EXPONENT
        ):
            if part.isdecimal():
                return int(whole + part.ljust(digits, "0"))
            if not point:
                return int(whole + "0" * digits)
    try:
        value = parse_decimal(_plain(amount) if isinstance(amount, str) else amount)
    except ValueError:
        msg = f"{str(amount)[:40]!r} is not an amount of money"
        raise ValueError(msg) from None
    digits = exponent(currency)
    scaled = value.scaleb(digits)
    if scaled != scaled.to_integral_value():
        msg = f"{str(amount)!r} has more than the {digits} decimals that {currency.upper()} has"
        raise ValueError(msg)
    return int(scaled)


def to_major(minor: int, currency: str) -> str:
    """Return `minor` as plain decimal text in major units: 450, USD -> `4.50`, JPY -> `450`."""
    digits = exponent(currency)
    return str(Decimal(minor).scaleb(-digits).quantize(Decimal(1).scaleb(-digits)))


def _plain(text: str) -> str:
    bare = text.strip().replace("\u00a0", "").replace("\u202f", "").replace(" ", "")
    bare = bare.replace("'", "").replace("\u2019", "")
    if any(character in bare for character in "_eE"):
        return "?"  # Decimal would read 1_000 and 1e3; no till means that
    comma, point = bare.rfind(","), bare.rfind(".")
    if comma >= 0 and point >= 0:
        group, mark = (",", ".") if point > comma else (".", ",")
        return bare.replace(group, "").replace(mark, ".") if bare.count(mark) == 1 else "?"
    return bare.replace(",", ".") if bare.count(",") <= 1 else bare.replace(",", "")
