"""Fields of what the service sends, read leniently: what is missing or odd is None.

For dataclasses that a pydantic `TypeAdapter` reads; `Needed` is all that is insisted on. Instants
are milliseconds since the epoch. A field nobody knows does no harm.
"""

import functools
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, overload

from pydantic import BeforeValidator

from tillbridge.model.instant import from_iso
from tillbridge.model.numbers import parse_decimal


@overload
def text(value: object) -> str | None: ...


@overload
def text(value: object, otherwise: str) -> str: ...


def text(value: object, otherwise: str | None = None) -> str | None:
    """Return a text; a whole number is read as one, half a character becomes U+FFFD.

    `otherwise` is for what is empty, too.
    """
    if isinstance(value, str):
        if not value.isascii():  # no file, page or printer can hold half a character
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value or otherwise or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else otherwise


def flag(value: object) -> bool | None:
    """Return a boolean."""
    return value if isinstance(value, bool) else None


def whole(value: object) -> int | None:
    """Return a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(value: object) -> int | None:
    """Return a whole number; a list is counted."""
    return len(value) if isinstance(value, list) else whole(value)


def decimal(value: object) -> str | None:
    """Return a number as plain decimal text (`8.25`)."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        return format(parse_decimal(value), "f")
    except ValueError:
        return None


def instant(value: object) -> int | None:
    """Return a timestamp in milliseconds since the epoch."""
    written = text(value)
    try:
        return None if written is None else from_iso(written)
    except (ValueError, OverflowError):
        return None


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; anything else in it is ignored."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def an_object(value: object) -> Mapping[str, Any] | None:
    """Return an object."""
    return value if isinstance(value, Mapping) else None


def _needed(value: object) -> str:
    if not (found := text(value)):
        msg = "missing"
        raise ValueError(msg)
    return found


Text = Annotated[str | None, BeforeValidator(text)]
TextOrEmpty = Annotated[str, BeforeValidator(functools.partial(text, otherwise=""))]
Needed = Annotated[str, BeforeValidator(_needed)]
Status = Annotated[str, BeforeValidator(functools.partial(text, otherwise="success"))]
Flag = Annotated[bool | None, BeforeValidator(flag)]
Count = Annotated[int | None, BeforeValidator(count)]
DecimalText = Annotated[str | None, BeforeValidator(decimal)]
Instant = Annotated[int | None, BeforeValidator(instant)]
Texts = Annotated[tuple[str, ...], BeforeValidator(texts)]
Objects = BeforeValidator(objects)
AnObject = BeforeValidator(an_object)
