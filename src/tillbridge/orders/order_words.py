"""The life of an order in sentences, for the page and for `orders show`. Pure."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.actor import by_whom
from tillbridge.core.i18n import _, ngettext

_PLAIN: Mapping[str, str] = {
    "order.completed": _("The service says that the order is completed."),
    "order.not_written": _("Not written to the till: {why}."),
    "order.ready": _("Told the service that it is ready."),
    "order.preparing": _("Told the service that it is being prepared."),
    "order.accepted": _("Told the service that it is accepted."),
    "order.cancelled": _("Told the service that it is cancelled: {code}."),
    "order.wait": _("The till did not take it: {reason}. It is tried again."),
    "order.on_paper": _("The till could not take it ({why}), so it was printed: NOT IN TILL."),
    "order.held": _("It was too old to be printed without somebody asking for it."),
    "order.to_cancel": _("It is to be cancelled: {code}."),
    "order.call_refused": _(
        "The service refused the call {call} ({status} {code}): it is not made again unless "
        "somebody asks for it."
    ),
    "order.too_late": _(
        "The store was not integrated for so long that the call {call} is not made any more unless "
        "somebody asks for it."
    ),
    "order.seen": _("{by} has seen what there was to see of it."),
    "ticket.left": _("The till has its ticket after all: it has to be removed there by hand."),
    "ticket.taken_back": _("A ticket too many was taken back out of the till: {why}."),
    "order.untold": _("The service could not be told ({call}): {code}. It is told again."),
    "ticket.accepted": _("The kitchen has accepted it."),
    "ticket.preparing": _("The kitchen is preparing it."),
    "ticket.ready": _("The kitchen says that it is ready."),
    "ticket.completed": _("The till says that it is completed."),
    "order.retried": _("Tried again, as {by} asked."),
}
_REJECTED: Mapping[str, str] = {
    "item_unavailable": _("an item is not available"),
    "store_closed": _("the store is closed"),
    "pos_offline": _("the till is offline"),
    "capacity": _("too much to do"),
    "price_mismatch": _("a price is not right"),
}
_WITHDRAWN: Mapping[str, str] = {
    "never_written": _("The till never had its ticket."),
    "taken_back": _("Its ticket was taken back out of the till."),
    "left_to_person": _("Its ticket is still in the till, and has to be removed there by hand."),
}
_CLOSED: Mapping[str, str] = {
    "over": _("Nothing had happened for a day: it is over."),
    "order.closed_by_service": _("The service had finished it by itself."),
    "service.refused": _("The service refused what it was told ({call}): {code}."),
}
_HANDLED: Mapping[str, str] = {
    "typed": _("{by} has typed it into the till by hand."),
    "settled": _("{by} has settled it by hand; the bridge does nothing more."),
}


def sentence(event: str, detail: Mapping[str, Any]) -> str:
    """Return what happened as a sentence; the event's own name where there is none for it."""
    found = _chosen(event, detail)
    said = found.format_map(_Told(detail)) if found else f"{event}."
    if detail.get("already"):
        said += " " + _("It knew already.")
    if isinstance(detail.get("ms"), int):
        said += " " + _("The call took {ms} ms.").format(ms=detail["ms"])
    return said


class _Told(dict[str, Any]):
    def __getitem__(self, name: str) -> object:
        value = self.get(name)
        return by_whom(value) if name == "by" else "?" if value in (None, "") else value


def _chosen(event: str, detail: Mapping[str, Any]) -> str:
    match event:
        case "order.received":
            lines = detail.get("lines")
            count = lines if isinstance(lines, int) else 0
            return ngettext("Taken in: {n} line.", "Taken in: {n} lines.", count).format(n=count)
        case "order.written":
            if detail.get("reference"):
                return _("The till has it as ticket {reference}.")
            return _("The till has it.")
        case "order.check_found":
            return _found(detail)
        case "ticket.rejected":
            return _rejected(detail)
        case "order.withdrawn":
            return _WITHDRAWN.get(str(detail.get("how")), "")
        case "order.closed":
            return _CLOSED.get(str(detail.get("why")), _("Closed."))
        case "order.handled":
            return _HANDLED.get(str(detail.get("how")), "")
        case "order.to_cancel" if detail.get("by"):
            return _("{by} cancels it: {code}.")
        case _:
            return _PLAIN.get(event, "")


def _rejected(detail: Mapping[str, Any]) -> str:
    told = (_REJECTED.get(str(detail.get("reason"))), str(detail.get("message") or ""))
    why = "; ".join(each for each in told if each)
    text = _("The kitchen rejected it: {why}.") if why else _("The kitchen rejected it.")
    # What the till says is text from outside, which is no place for further fields.
    return text.replace("{why}", why.rstrip(".").replace("{", "{{").replace("}", "}}"))


def _found(detail: Mapping[str, Any]) -> str:
    parts = []
    for name, text in (
        ("unknown_items", _("not on the menu: {what}")),
        ("prices", _("other prices than the menu's: {what}")),
        ("currency", _("another currency than the store's: {what}")),
        ("quantities", _("it does not say how many of: {what}")),
    ):
        if found := detail.get(name):
            listed = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
            parts.append(text.format(what=listed))
    # What was found holds text from outside, which is no place for further fields.
    return (_("Looked odd: ") + "; ".join(parts) + ".").replace("{", "{{").replace("}", "}}")
