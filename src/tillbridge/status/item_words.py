"""What is off sale, in words: for the 86 board and for `item off`. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.i18n import _
from tillbridge.status.words import short_span


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
    """Return how long it took to reach the storefront."""
    if item["how"] == "till":
        return _("yes")
    if item["reached_ms"] is None:
        return _("on its way")
    if item["reached_ms"] == 0:
        return _("was off already")
    return _("after {span}").format(span=short_span(item["reached_ms"]))
