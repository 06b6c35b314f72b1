"""What the page offers against a problem: by its code, actions, words beside them, and a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.core.i18n import _

_CONNECT = "/stores/{store}/connect"
_SECRET = "/stores/{store}/integration/secret"  # noqa: S105 -- the path of a button
_APPLY = "/stores/{store}/integration/apply"

# Problem code: the actions offered, by path; {store} and {order} come from the problem.
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "consent.missing": (_CONNECT,),
    "consent.expired": (_CONNECT,),
    "consent.revoked": (_CONNECT,),
    "consent.ending": (_CONNECT,),
    "integration.missing": ("/stores/{store}/integration/anew", _CONNECT),
    "integration.disabled": (_CONNECT,),
    "integration.removed": (_CONNECT,),
    "integration.secret_missing": (_SECRET,),
    "integration.differs": (_APPLY,),
    "integration.changed_elsewhere": (_APPLY,),
    "receiver.all_refused": (_SECRET,),
    "receiver.bad_signature": (_SECRET,),
    "service.token_refused": (_CONNECT,),
    "menu.held": ("/stores/{store}/menu/approve", "/stores/{store}/menu/dismiss"),
    "menu.items_refused": ("/stores/{store}/menu/push",),
    "menu.push_failed": ("/stores/{store}/menu/push",),
    "menu.push_not_allowed": (_CONNECT,),
    "menu.taken_in_part": ("/stores/{store}/menu/push-all",),
    "tables.held": ("/stores/{store}/tables/approve",),
    "tables.codes_changed": ("/stores/{store}/tables/printed",),
    "store.paused": ("/stores/{store}/resume",),
    "store.paused_by_staff": ("/stores/{store}/resume",),
    "store.paused_elsewhere": ("/stores/{store}/resume",),
    "store.settings_not_sent": ("/stores/{store}/settings",),
    "tax.differs": ("/stores/{store}/tax",),
    "tables.push_failed": ("/stores/{store}/tables/push",),
    "order.not_written": ("/orders/{order}/retry", "/orders/{order}/done"),
    "order.not_in_till": ("/orders/{order}/done",),
    "order.held": ("/orders/{order}/retry", "/orders/{order}/cancel", "/orders/{order}/done"),
    "order.not_withdrawn": ("/orders/{order}/done",),
    "service.refused": ("/orders/{order}/retry", "/orders/{order}/cancel", "/orders/{order}/done"),
}

# What to do in the words of who sees the buttons: where else a command would be named.
WORDS: Mapping[str, str] = {
    "consent.missing": _("Connect the store: the merchant allows it on the service's page."),
    "consent.expired": _("Connect the store: the merchant consents again."),
    "consent.revoked": _("Ask the merchant why, then let the merchant consent again."),
    "consent.ending": _("Let the merchant consent again before then."),
    "integration.missing": _("Find out who removed the integration, then make it anew."),
    "integration.disabled": _(
        "If the merchant uninstalled the app, the merchant must allow it again. If not, ask the "
        "ordering service why it suspends the store; the bridge goes on by itself once it is "
        "active."
    ),
    "integration.removed": _("Connect the store again, or take it out of the configuration."),
    "integration.secret_missing": _(
        "It cannot be read again, and orders are refused (401) until there is a new one."
    ),
    "integration.differs": _("Look at the difference, and apply what is configured here."),
    "integration.changed_elsewhere": _(
        "Find out who: another bridge, or a person. The bridge changes it back once a day, or at "
        "once if you apply it."
    ),
    "receiver.all_refused": _("Get a new webhook secret."),
    "receiver.bad_signature": _("If orders are missing, get a new webhook secret."),
    "service.token_refused": _(
        "Check that base_url and client_id are of the same environment; if it stays, let the "
        "merchant consent again."
    ),
    "menu.held": _("Look at what it removes and changes. Release it if it is right."),
    "menu.push_not_allowed": _(
        "Set menu_sync_direction to pos_to_quiqqy or bidirectional, then connect the store again."
    ),
    "menu.taken_in_part": _("Mend what it names in the till, then push all of the menu."),
    "tables.held": _("Look at what it removes and changes. Release it if it is right."),
    "tables.codes_changed": _("Print them again on the page Tables, then say so here."),
    "store.paused": _("It is resumed by itself when the till is back and stays, or by you."),
    "order.ticket_taken_back": _("Tell the kitchen, in case it has been sent there."),
    "store.paused_by_staff": _("Open it when guests may order again."),
    "store.paused_elsewhere": _("Open it there, or here."),
    "store.settings_not_sent": _("Mend what the message names, then send the settings."),
    "tax.differs": _(
        "Ask your accountant which is right and correct the other one, then compare them again."
    ),
    "ledger.rebuilt": _(
        "Keep the file for support; orders are compared with the till before any is written. "
        'Then press "I have seen it": with that it is over.'
    ),
    "order.not_written": _("Try it again, or write it by hand and say so here."),
    "order.held": _("If it is still wanted, print it: try it again. If not, cancel it."),
    "order.not_in_till": _("Type it into the till from the paper, then say so here."),
    "order.cancelled": _(
        "The guests get their money back. See to the cause, call whom you want to keep, then press "
        '"I have seen it".'
    ),
    "service.refused": _(
        "Settle what the message names, then try it again; or cancel the order; or see to it "
        "yourself and say so here."
    ),
}

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
    offered = (_filled(path, problem) for path in REMEDIES.get(str(problem["code"]), ()))
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
