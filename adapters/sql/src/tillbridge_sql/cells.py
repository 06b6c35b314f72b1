"""What stands in a row of the database, as the model has it.

Drivers give what they like: numbers for ids, a byte for a bit, a float for money, blanks at the end
of a CHAR.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from tillbridge.adapter.prices import BadPrice, PriceReader, amount_fault
from tillbridge.adapter.texts import _
from tillbridge.model.money import BadAmount, exponent, to_minor
from tillbridge.model.numbers import MAX_EXPONENT, parse_decimal

Row = Mapping[str, object]

_NO = frozenset({"", "0", "n", "no", "f", "false", "off"})
_YES = frozenset({"1", "y", "yes", "t", "true", "on"})
_MAX_NAME = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CellError(ValueError):
    """A value that cannot be: the column, what is wrong, the value as text, and what to do."""

    def __init__(
        self,
        column: str,
        text: str,
        value: object = "",
        fix: str = _("Correct it in the till, or in the query."),
    ) -> None:
        super().__init__(text)
        self.column = column
        self.text = text
        self.fix = fix
        self.value = "" if value is None else str(value)[:100]


def text_of(row: Row, column: str) -> str:
    """Return the text; "" for NULL and for a column that the query does not have."""
    return _text(row.get(column))


def name_of(row: Row, column: str = "name") -> str:
    """Return one line of text that is not empty. Raises CellError."""
    name = " ".join(_printable(text_of(row, column)).split())
    if not name:
        raise CellError(column, _("It has no {column}.").format(column=column))
    if "\ufffd" in name:  # of bytes in another encoding than UTF-8
        raise CellError(
            column,
            _("{field} holds a character that cannot be read (U+{code:04X}).").format(
                field=column, code=0xFFFD
            ),
            name,
        )
    if len(name) > _MAX_NAME:
        raise CellError(
            column,
            _("Its {column} is longer than {most} characters.").format(
                column=column, most=_MAX_NAME
            ),
            name,
        )
    return name


def paragraph_of(row: Row, column: str) -> str:
    """Return text that may have several lines, without control characters."""
    lines = text_of(row, column).splitlines()
    return "\n".join(_printable(line).rstrip() for line in lines).strip()


def id_of(row: Row, column: str = "external_id") -> str:
    """Return an id. Raises CellError for none."""
    found = text_of(row, column).strip()
    if not found:
        raise CellError(column, _("It has no {column}.").format(column=column))
    return found


def price_of(row: Row, prices: PriceReader, column: str = "price") -> int:
    """Return minor units. A float is rounded, as the till's screen does; anything else is exact.

    `prices` reads those that are text. Raises CellError.
    """
    value = row.get(column)
    if value is None:
        raise CellError(column, _("It has no {column}.").format(column=column))
    if isinstance(value, bool | bytes | date):
        raise CellError(column, _("Its {column} is no amount.").format(column=column), value)
    try:
        match value:
            case float():
                minor = _rounded(value, prices.currency)
            case int() | Decimal():
                minor = to_minor(Decimal(value), prices.currency)
            case _:
                name = text_of(row, "name") or text_of(row, "variant_name")
                minor = prices.read(str(value), column=column, name=name.strip())
    except BadPrice as bad:
        raise CellError(bad.column, bad.text, bad.value, bad.fix) from bad
    except ValueError as failure:
        raise CellError(
            column,
            _("{column}: {what}.").format(column=column, what=amount_fault(failure)),
            value,
        ) from failure
    if minor < 0:
        raise CellError(
            column, _("Its {column} is less than nothing.").format(column=column), value
        )
    return minor


def flag_of(row: Row, column: str, *, default: bool) -> bool:
    """Return yes or no; the default for NULL and for a column that is not there. CellError."""
    value = row.get(column)
    if value is None:
        return default
    if isinstance(value, bool | int | float | Decimal):
        return bool(value)
    if isinstance(value, bytes):
        return any(value)
    word = str(value).strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise CellError(column, _("Its {column} is neither yes nor no.").format(column=column), value)


def number_of(row: Row, column: str) -> int | None:
    """Return a whole number; None for NULL. Raises CellError."""
    value = row.get(column)
    if value is None or value == "":
        return None
    try:
        number = parse_decimal(str(value).strip())
        if number == int(number):
            return int(number)
    except ValueError:
        pass
    raise CellError(column, _("Its {column} is no whole number.").format(column=column), value)


def rate_of(row: Row, column: str = "rate") -> str:
    """Return a tax rate in percent as decimal text. Raises CellError."""
    value = row.get(column)
    if value is None:
        raise CellError(column, _("It has no {column}.").format(column=column))
    try:
        rate = parse_decimal(repr(value) if isinstance(value, float) else str(value)).quantize(
            Decimal("0.000001")
        )
    except (ArithmeticError, ValueError):
        raise CellError(
            column, _("Its {column} is no rate.").format(column=column), value
        ) from None
    plain = format(rate, "f")
    return plain.rstrip("0").rstrip(".") or "0"


def instant_of(row: Row, column: str) -> int | None:
    """Return ms since the epoch; a time without a zone is UTC. None for NULL. CellError."""
    value = row.get(column)
    if value is None or value == "":
        return None
    try:
        # The year 9999, as databases write for ever, is a time like any other here.
        moment = (
            value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
        )
    except ValueError:
        raise CellError(
            column, _("Its {column} is no time.").format(column=column), value
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return value.decode("utf-8", "replace")
        case float() if value.is_integer():
            return str(int(value))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= MAX_EXPONENT:
            return str(int(value)) if value == value.to_integral_value() else str(value)
        case _:
            return str(value)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _rounded(value: float, currency: str) -> int:
    try:
        scaled = parse_decimal(repr(value)).scaleb(exponent(currency))
    except ValueError:
        raise BadAmount("{amount!r} is not an amount of money", amount=repr(value)) from None
    return int(scaled.quantize(Decimal(1), ROUND_HALF_UP))
