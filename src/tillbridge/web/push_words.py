"""A push of the menu in words, for the page and for `menu history`. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import _, ngettext
from tillbridge.core.spans import short_span
from tillbridge.menu.describe import FIELD_LABELS

_ENDS: Mapping[str, str] = {
    "running": _("on its way"),
    "success": _("taken"),
    "partial": _("taken in part"),
    "failed": _("refused"),
    "lost": _("nobody knows; told again"),
}


def what(push: Mapping[str, Any]) -> str:
    """Return what was told."""
    summary = push["summary"]
    match push["kind"]:
        case "full":
            count = _count(summary.get("items"))
            return ngettext("all of it, {n} item", "all of it, {n} items", count).format(n=count)
        case "availability":
            count = _count(summary.get("items"))
            return ngettext("{n} item on or off sale", "{n} items on or off sale", count).format(
                n=count
            )
        case "patch":
            fields = [FIELD_LABELS.get(each, str(each)) for each in summary.get("fields", ())]
            name = summary.get("name") or summary.get("item", "?")
            return _("{name}: {fields}").format(name=name, fields=", ".join(fields))
        case "batch":
            return _("{add} new, {update} changed, {delete} removed").format(
                add=_count(summary.get("add")),
                update=_count(summary.get("update")),
                delete=_count(summary.get("delete")),
            )
        case kind:
            return str(kind)


def told(push: Mapping[str, Any]) -> str:
    """Return how it ended."""
    return _ENDS.get(push["state"], str(push["state"]))


def how_long(push: Mapping[str, Any]) -> str:
    """Return how long it took, "" while it is on its way."""
    return "" if push["took_ms"] is None else short_span(push["took_ms"])


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
