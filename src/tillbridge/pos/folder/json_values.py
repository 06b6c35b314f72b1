"""What the values of a JSON menu may be. Specification: Menu push body.

Each function takes an object and the name of a field, and returns the field's value or raises
`BadCell`. Nothing is guessed: a price of 4.5 or "450" is refused, since either may mean two things.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell

_MAX_RATE_DIGITS = 20


def text(thing: Mapping[str, Any], field: str) -> str:
    """Return text of one line, "" where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(field, value, "text")
    return cells.text(field, value)


def needed(thing: Mapping[str, Any], field: str) -> str:
    """Return text that is not empty."""
    value = thing.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(field, value, "text")
    return cells.needed(field, value or "")


def paragraph(thing: Mapping[str, Any], field: str) -> str:
    """Return text that may have several lines, "" where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(field, value, "text")
    return cells.paragraph(value)


def external_id(thing: Mapping[str, Any]) -> str:
    """Return the id; a whole number is taken as its digits."""
    value = thing.get("external_id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return needed(thing, "external_id")


def id_if_any(thing: Mapping[str, Any]) -> str:
    """Return the id as far as it can be told, "" where it cannot."""
    try:
        return external_id(thing)
    except BadCell:
        return ""


def price(thing: Mapping[str, Any], field: str = "price") -> int:
    """Return a price in minor units."""
    value = thing.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(
            field, value, "a whole number of minor units (450 for 4.50 EUR, 1500 for 1500 JPY)"
        )
    return cells.checked_price(field, value, shown=value)


def count(thing: Mapping[str, Any], field: str) -> int:
    """Return a whole number that is not negative, 0 where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise _wrong(field, value, "a whole number that is not negative")
    return value


def flag(thing: Mapping[str, Any], field: str, *, missing: bool) -> bool:
    """Return true or false; `missing` where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return missing
    if not isinstance(value, bool):
        raise _wrong(field, value, "true or false")
    return value


def ids(thing: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return a list of external ids, each once, empty where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(field, value, "a list of external ids")
    return tuple(dict.fromkeys(cells.needed(field, each) for each in value))


def things(thing: Mapping[str, Any], field: str) -> list[Any]:
    """Return a list, empty where the field is missing or null."""
    value = thing.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(field, value, "a list")
    return value


def as_object(field: str, value: object) -> Mapping[str, Any]:
    """Return `value`, which must be an object."""
    if not isinstance(value, dict):
        raise _wrong(field, value, "an object")
    return value


def percent(thing: Mapping[str, Any], field: str) -> str:
    """Return a rate as plain decimal text."""
    value = thing.get(field)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        rate = Decimal(value)
        digits = abs(rate.adjusted()) + len(rate.as_tuple().digits)
        if rate.is_finite() and rate >= 0 and digits < _MAX_RATE_DIGITS:
            return format(rate, "f")
    raise _wrong(field, value, "a rate in percent, such as 8.25")


def _wrong(field: str, value: object, wanted: str) -> BadCell:
    if value is None:
        return BadCell(field, "", f"{field} is missing.", f"It must be {wanted}.")
    return BadCell(field, value, f"{field} is {_shown(value)}.", f"It must be {wanted}.")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:80] if isinstance(value, str) else str(value)[:80]
