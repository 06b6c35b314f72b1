"""Numbers, texts and JSON from outside, made fit to be stored, calculated with and shown.

`int(Decimal("1e999999999"))` and `format(..., "f")` build a billion digits, in C code that lets no
other thread run meanwhile. What is read here is safe to convert, to format and to calculate with.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_EXPONENT = 20
"""No amount, rate or count has more digits than this before the point, or zeros behind it."""

_MAX_CHARACTERS = 200
_MAX_BITS = 128
_MAX_SHOWN = 40


def parse_decimal(value: str | int | Decimal) -> Decimal:
    """Return the number.

    Raises ValueError for text that is no number, for infinity and NaN, and for a number that is
    too large or too small to mean anything (`1e999999999`).
    """
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        raise ValueError(_shown(value, "is too long for a number"))
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        msg = "a whole number is too large"
        raise ValueError(msg)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(_shown(str(value), "is not a number")) from None
    if not number.is_finite():
        raise ValueError(_shown(str(value), "is not a number"))
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise ValueError(_shown(str(value), "is too large or too small"))
    return number


def parse_json_int(text: str) -> int | str:
    """Return a whole number of a JSON document (`parse_int`); one that is too long stays text.

    Text fails the check of a field for numbers, and shows what is in the file: one such number
    costs one row, not the document.
    """
    return int(text) if len(text) <= _MAX_CHARACTERS else text


def parse_json_float(text: str) -> Decimal | str:
    """Return a fraction of a JSON document (`parse_float`); one out of range stays text."""
    try:
        return parse_decimal(text)
    except ValueError:
        return text


def parse_finite_float(text: str) -> float | None:
    """Return a fraction of a JSON document as a float; None if it is beyond all floats.

    `float("1e400")` is infinity, which `json.dumps` writes as a word that JSON does not have.
    """
    value = float(text)
    return value if math.isfinite(value) else None


def _shown(text: str, what: str) -> str:
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return f"{shown!r} {what}"


def printable(text: str, *, most: int) -> str:
    """Return one line of at most `most` characters that every encoding of Unicode can hold.

    Half a character (a lone surrogate, as `os.fsdecode` makes of bytes that are no UTF-8) and
    control characters become `?` and blanks.
    """
    clean = text[: most + 1].encode("utf-8", "replace").decode()
    line = " ".join("".join(each if each.isprintable() else " " for each in clean).split())
    return line if len(line) <= most else f"{line[: most - 1]}\u2026"


def is_storable(text: str) -> bool:
    """Return whether the text can be encoded: it holds no half of a character."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 -- any JSON value
    """Return JSON with everything changed that is neither an object nor a list (or tuple)."""
    match value:
        case Mapping():
            return {name: map_leaves(each, change) for name, each in value.items()}
        case list() | tuple():
            return [map_leaves(each, change) for each in value]
        case _:
            return change(value)


def whole(found: object) -> int | None:
    """Return the integer that a query found in JSON; None for none, or one beyond 64 bits."""
    return int(found) if isinstance(found, int | str) else None
