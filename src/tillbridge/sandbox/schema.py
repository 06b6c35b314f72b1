"""A small strict checker of request bodies, which names the first field that is wrong.

A check takes a value and returns nothing, or raises `BodyError`. Paths are put together only while
an error travels upwards, which keeps a menu of 20,000 items quick.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from tillbridge.sandbox.clock import parse_timestamp
from tillbridge.sandbox.errors import ServiceError

#: Whatever JSON holds.
Json: TypeAlias = Any

Check = Callable[[Json], None]

# As an escape, or as the three bytes that json.loads lets pass; two of them may be a whole one.
_HALF_A_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


class BodyError(Exception):
    """What is wrong with one field; `path` leads to it from the outside in."""

    def __init__(self, problem: str, *, code: str = "request.validation") -> None:
        super().__init__(problem)
        self.problem = problem
        self.code = code
        self.path: list[str | int] = []

    def under(self, step: str | int) -> "BodyError":
        """The same error, seen from one step further out."""
        self.path.insert(0, step)
        return self

    @property
    def field(self) -> str:
        """The path as text, such as `items[3].price`."""
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text or "body"


def wrong(path: str, problem: str) -> ServiceError:
    """A validation failure found outside a schema (references, duplicates, paths that disagree)."""
    return ServiceError("request.validation", f"{path}: {problem}")


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def text(*, empty: bool = False, at_most: int = 10_000) -> Check:
    """A string; neither empty nor only spaces, unless `empty`."""

    def check(value: Json) -> None:
        if not isinstance(value, str):
            raise BodyError(f"must be a string, not {_shown(value)}")
        if not empty and not value.strip():
            raise BodyError("must not be empty")
        if len(value) > at_most:
            raise BodyError(f"must not be longer than {at_most} characters")

    return check


def boolean() -> Check:
    """True or false, and nothing that resembles it."""

    def check(value: Json) -> None:
        if value is not True and value is not False:
            raise BodyError(f"must be true or false, not {_shown(value)}")

    return check


def integer(*, minimum: int | None = None, unit: str = "") -> Check:
    """A whole number; `unit` is for the message."""
    expected = "must be an integer" + (f" {unit}" if unit else "")

    def check(value: Json) -> None:
        # bool is an int in Python, and 4.0 an integer to some JSON readers; neither is one here.
        if type(value) is not int:
            raise BodyError(f"{expected}, not {_shown(value)}")
        if minimum is not None and value < minimum:
            raise BodyError(f"{expected} of at least {minimum}, not {value}")

    return check


def money() -> Check:
    """An amount in minor units, not below zero."""
    return integer(minimum=0, unit="in minor units")


def number(*, minimum: float | None = None) -> Check:
    """A whole or decimal number."""

    def check(value: Json) -> None:
        if type(value) not in (int, float):
            raise BodyError(f"must be a number, not {_shown(value)}")
        if minimum is not None and value < minimum:
            raise BodyError(f"must be at least {minimum}, not {value}")

    return check


def one_of(values: Collection[str]) -> Check:
    """One of some strings."""
    allowed = ", ".join(values)

    def check(value: Json) -> None:
        if not isinstance(value, str) or value not in values:
            raise BodyError(f"must be one of {allowed}, not {_shown(value)}")

    return check


def pattern(regex: str, expected: str) -> Check:
    """A string that matches as a whole; `expected` is for the message."""
    compiled = re.compile(regex)

    def check(value: Json) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise BodyError(f"must be {expected}, not {_shown(value)}")

    return check


def instant() -> Check:
    """An ISO 8601 instant with a zone."""

    def check(value: Json) -> None:
        try:
            parse_timestamp(value)
        except (TypeError, ValueError, OverflowError):
            raise BodyError(
                "must be an ISO 8601 instant with a zone, such as 2030-01-31T18:00:00.000Z, "
                f"not {_shown(value)}"
            ) from None

    return check


def url(*, empty: bool = False) -> Check:
    """An absolute http or https URL; with `empty`, "" too."""

    def check(value: Json) -> None:
        if empty and value == "":
            return
        if not isinstance(value, str) or not _is_http_url(value):
            raise BodyError(f"must be an absolute http or https URL, not {_shown(value)}")

    return check


def _is_http_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def email() -> Check:
    """Something that looks like an e-mail address."""

    def check(value: Json) -> None:
        if not isinstance(value, str) or not _EMAIL.fullmatch(value):
            raise BodyError(f"must be an e-mail address, not {_shown(value)}")

    return check


def array(of: Check, *, at_least: int = 0) -> Check:
    """An array whose elements all pass."""

    def check(value: Json) -> None:
        if not isinstance(value, list):
            raise BodyError(f"must be an array, not {_shown(value)}")
        if len(value) < at_least:
            raise BodyError(f"must hold at least {at_least}")
        for index, element in enumerate(value):
            try:
                of(element)
            except BodyError as error:
                raise error.under(index) from None

    return check


def record(
    fields: Mapping[str, Check], required: Collection[str] = (), *, other_fields: bool = False
) -> Check:
    """An object with these fields and, unless `other_fields`, no others."""
    known = frozenset(fields)
    accepted = ", ".join(fields) or "none"

    def check(value: Json) -> None:
        if not isinstance(value, dict):
            raise BodyError(f"must be an object, not {_shown(value)}")
        for name in value:
            if name == "app_id" and name not in known:
                raise _unknown("is never sent: the token says which app is calling", name)
            if name not in known and not other_fields:
                raise _unknown(f"is not accepted here; accepted fields: {accepted}", name)
        for name in required:
            if name not in value:
                raise BodyError("is required").under(name)
        for name, element in value.items():
            field_check = fields.get(name)
            if field_check is None:
                continue
            try:
                field_check(element)
            except BodyError as error:
                raise error.under(name) from None

    return check


def _unknown(problem: str, name: str) -> BodyError:
    return BodyError(problem, code="request.unknown_field").under(name)


def _can_be_encoded(body: object) -> bool:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse(raw: bytes, content_type: str, check: Check) -> dict[str, Any]:
    """The body as an object, or the service's 400 that says which field is wrong."""
    if content_type != "application/json":
        raise wrong("Content-Type", f"must be application/json, not {content_type}")
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise wrong("body", f"is not JSON: {error}") from None
    if _HALF_A_CHARACTER.search(raw) and not _can_be_encoded(body):
        raise wrong("body", "holds half a character (a surrogate without its other half)")
    try:
        check(body)
    except BodyError as error:
        raise ServiceError(error.code, f"{error.field}: {error.problem}") from None
    if not isinstance(body, dict):
        raise wrong("body", "must be an object")
    return body
