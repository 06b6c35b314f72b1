"""What the page offers against a problem: the buttons of its kind, and a page that tells more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.core.problems import PROBLEMS

# The page that tells more and its link, by the code or its beginning (the longest counts).
PAGES: Mapping[str, tuple[str, str]] = {
    "adapter.": ("/diagnostics/logs", _("Read the log")),
    "bridge.not_set_up": ("/setup", _("Set it up")),
    "export.": ("/stores/{store}/menu/difference", _("Which rows")),
    "fallback.offline": ("/diagnostics", _("Examine every link")),
    "menu.": ("/menu", _("The menu")),
    "order.": ("/orders/{order}", _("The order")),
    "order.unreadable": ("/orders", _("The orders")),
    "order.untold": ("/orders", _("The orders")),
    "order.cancelled": ("/orders", _("The orders")),
    "order.other_currency": ("/orders", _("The orders")),
    "service.refused": ("/orders/{order}", _("The order")),
    "pos.offline": ("/diagnostics", _("Examine every link")),
    "clock.wrong": ("/diagnostics", _("Examine every link")),
    "disk.low": ("/diagnostics", _("Examine every link")),
    "public_address.": ("/reach", _("How orders get in")),
    "receiver.certificate": ("/reach", _("How orders get in")),
    "service.bad_client": ("/setup", _("Change the sign-in")),
    "service.unreachable": ("/diagnostics", _("Examine every link")),
    "store.": ("/store", _("The store")),
    "tables.": ("/tables", _("The tables")),
    "tax.": ("/store", _("The store")),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action or a page that helps, with the parts of its path; `text` is what a link says."""

    path: str
    parts: Mapping[str, str]
    text: str = ""


def remedies_of(problem: Mapping[str, Any]) -> list[Remedy]:
    """Return the actions that may be offered for a problem of the status document."""
    offered = (_filled(path, problem) for path in PROBLEMS[str(problem["code"])].buttons)
    return [each for each in offered if each is not None]


def page_of(problem: Mapping[str, Any]) -> Remedy | None:
    """Return the page that tells more about a problem; None where there is none."""
    code = str(problem["code"])
    found = max((each for each in PAGES if code.startswith(each)), key=len, default=None)
    if found is None or (found == "export." and problem["subject"] != "menu"):
        return None
    path, text = PAGES[found]
    return _filled(path, problem, text)


def _filled(path: str, problem: Mapping[str, Any], text: str = "") -> Remedy | None:
    parts = {"store": str(problem["store"]), "order": str(problem["subject"])}
    needed = {name: part for name, part in parts.items() if f"{{{name}}}" in path}
    return Remedy(path, needed, text) if all(needed.values()) else None
