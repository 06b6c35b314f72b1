"""Which button helps against which problem: by the problem's code, the action that does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Problem code: the actions offered, by path; {store} and {order} come from the problem.
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "consent.missing": ("/stores/{store}/connect",),
    "consent.expired": ("/stores/{store}/connect",),
    "consent.revoked": ("/stores/{store}/connect",),
    "consent.ending": ("/stores/{store}/connect",),
    "integration.missing": ("/stores/{store}/connect",),
    "integration.secret_missing": ("/stores/{store}/reintegrate",),
    "receiver.bad_signature": ("/stores/{store}/reintegrate",),
    "service.token_refused": ("/stores/{store}/connect",),
    "menu.held": ("/stores/{store}/menu/approve", "/stores/{store}/menu/dismiss"),
    "menu.items_refused": ("/stores/{store}/menu/push",),
    "menu.push_failed": ("/stores/{store}/menu/push",),
    "menu.taken_in_part": ("/stores/{store}/menu/push-all",),
    "tables.held": ("/stores/{store}/tables/approve",),
    "tables.codes_changed": ("/stores/{store}/tables/printed",),
    "store.paused_by_staff": ("/stores/{store}/resume",),
    "store.paused_elsewhere": ("/stores/{store}/resume",),
    "store.settings_not_sent": ("/stores/{store}/settings",),
    "tax.differs": ("/stores/{store}/tax",),
    "tables.push_failed": ("/stores/{store}/tables/push",),
    "order.not_written": ("/orders/{order}/retry", "/orders/{order}/done"),
    "order.not_in_till": ("/orders/{order}/done",),
    "order.held": ("/orders/{order}/retry", "/orders/{order}/cancel", "/orders/{order}/done"),
    "order.not_withdrawn": ("/orders/{order}/done",),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action that helps, with the parts of its path."""

    path: str
    parts: Mapping[str, str]


def remedies_of(problem: Mapping[str, Any]) -> list[Remedy]:
    """Return what may be offered for a problem of the status document."""
    parts = {"store": str(problem["store"]), "order": str(problem["subject"])}
    return [
        Remedy(path, {name: part for name, part in parts.items() if f"{{{name}}}" in path})
        for path in REMEDIES.get(str(problem["code"]), ())
        if all(parts[name] for name in parts if f"{{{name}}}" in path)
    ]
