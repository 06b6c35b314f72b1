"""Reading the service's answers: leniently where the bridge can do without, strictly where not."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tillbridge.core.errors import Refused
from tillbridge.core.i18n import _
from tillbridge.model.instant import from_iso
from tillbridge.model.numbers import parse_decimal

UNREADABLE = "answer.unreadable"


def unreadable(operation: str, detail: str) -> Refused:
    """Return the failure for an answer that lacks what the bridge cannot do without."""
    return Refused(
        _("The ordering service's answer to {operation} cannot be read: {detail}").format(
            operation=operation, detail=detail
        ),
        code=UNREADABLE,
        operation=operation,
        fix=_("Check that base_url is the ordering service's; then tell its support."),
    )


class Fields:
    """An object of an answer. Unknown fields are ignored, odd or missing ones are None.

    The `need_` methods raise Refused (code `answer.unreadable`) where the field is missing.
    """

    __slots__ = ("_body", "_operation")

    def __init__(self, body: object, operation: str) -> None:
        if not isinstance(body, Mapping):
            raise unreadable(operation, _("it is not an object"))
        self._body: Mapping[str, Any] = body
        self._operation = operation

    def need_text(self, name: str) -> str:
        """Return a text that must be there."""
        value = self.text(name)
        if not value:
            raise unreadable(self._operation, _("it has no {field}").format(field=name))
        return value

    def text(self, name: str) -> str | None:
        """Return a text; a whole number is taken as one."""
        value = self._body.get(name)
        if isinstance(value, str):
            return value
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, name: str) -> bool | None:
        """Return a boolean."""
        value = self._body.get(name)
        return value if isinstance(value, bool) else None

    def count(self, name: str) -> int | None:
        """Return a whole number; a list is counted."""
        value = self._body.get(name)
        if isinstance(value, list):
            return len(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def decimal(self, name: str) -> str | None:
        """Return a number as plain decimal text (`8.25`)."""
        value = self._body.get(name)
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return None
        try:
            return format(parse_decimal(value), "f")
        except ValueError:
            return None

    def instant(self, name: str) -> int | None:
        """Return a timestamp in milliseconds since the epoch."""
        value = self.text(name)
        try:
            return None if value is None else from_iso(value)
        except (ValueError, OverflowError):
            return None

    def child(self, name: str) -> "Fields | None":
        """Return an object in this one."""
        value = self._body.get(name)
        return Fields(value, self._operation) if isinstance(value, Mapping) else None

    def children(self, name: str) -> "list[Fields]":
        """Return the objects of a list in this one."""
        return objects(self._body.get(name), self._operation)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        value = self._body.get(name)
        found = value if isinstance(value, list) else []
        return tuple(each for each in found if isinstance(each, str))


def objects(value: object, operation: str) -> list[Fields]:
    """Return the objects of a list; anything else in it is ignored."""
    found = value if isinstance(value, list) else []
    return [Fields(each, operation) for each in found if isinstance(each, Mapping)]


def listing(body: object, operation: str) -> list[Fields]:
    """Return the objects of an answer that must be a list."""
    if not isinstance(body, list):
        raise unreadable(operation, _("it is not a list"))
    return objects(body, operation)
