"""What is off sale, in words: for the 86 board and for `item off`. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.web.words import short_span


def by_whom(item: Mapping[str, Any]) -> str:
    """Return who took the item off sale."""
    match item["how"]:
        case "till":
            return _("the till")
        case "order":
            return _("the till, when it refused an order")
        case _:
            return str(item["by"])


def reached(item: Mapping[str, Any]) -> str:
    """Return whether guests still see it, and how long it took to hide it."""
    if item["how"] == "till":
        return _("Hidden from guests")
    if item["reached_ms"] is None:
        return _("Not hidden from guests yet")
    if item["reached_ms"] == 0:
        return _("Hidden from guests already before")
    return _("Hidden from guests after {span}").format(span=short_span(item["reached_ms"]))
