"""Amounts of Odoo, which are floating-point numbers in major units, as minor units. Pure."""

from decimal import ROUND_HALF_UP, Decimal

from tillbridge.model.money import exponent

_NOISE = Decimal("1e-9")  # 5.1000000000000005 is 5.10


def decimal_of(value: object) -> Decimal:
    """Return a number of Odoo's; 0 for the False that stands for none. Raises ValueError."""
    if value is False or value is None:
        return Decimal(0)
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return Decimal(value)
    raise ValueError(f"{value!r} is not a number")


def rounded(amount: Decimal, currency: str) -> Decimal:
    """Return an amount in major units as the currency has it; halves are rounded away from 0."""
    plain = amount.quantize(_NOISE, ROUND_HALF_UP)
    return plain.quantize(Decimal(1).scaleb(-exponent(currency)), ROUND_HALF_UP)


def minor(amount: Decimal, currency: str) -> int:
    """Return an amount in major units in minor units."""
    return int(rounded(amount, currency).scaleb(exponent(currency)))


def plain(value: Decimal) -> str:
    """Return a number as text without needless zeros: 8.25, 15."""
    return f"{value.normalize():f}"
