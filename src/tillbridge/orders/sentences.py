"""What happened to an order, in sentences; and the service's reason codes in words. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from tillbridge.core.actor import by_whom
from tillbridge.core.i18n import N_, _, joined, ngettext
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.lenient import objects, text, whole
from tillbridge.model.order import Order, OrderState, ReasonCode

# -- What an order costs, how it leaves the restaurant and what is in it, as people read it. Pure.
#
# Specification: Resources, "Order as delivered to the POS". Every field may be missing or odd: then
# it is None or "", and is not shown. Amounts are integers in minor units of the order's currency.


# The specification shows "delivery" only; the others are what services commonly send.
KINDS = ("delivery", "pickup", "dine_in")
_TYPES = {
    "delivery": "delivery",
    "pickup": "pickup",
    "pick_up": "pickup",
    "takeaway": "pickup",
    "take_away": "pickup",
    "takeout": "pickup",
    "collection": "pickup",
    "dine_in": "dine_in",
    "dinein": "dine_in",
    "eat_in": "dine_in",
    "table": "dine_in",
}
_TABLE_IN_NOTE = re.compile(r"table\s+([^.,;\n]{1,40})(?:[.,;\n]|$)", re.IGNORECASE)
_LONGEST_TABLE = 40
_NAMED = 3  # dishes that a list names


class TaxLine(TypedDict):
    """A line of `tax_breakdown`; `rate` is text in percent, "" where it is not given."""

    name: str
    rate: str
    amount: int | None


class Bill(TypedDict):
    """What an order costs; None if the service did not say. `includes_tax`: prices do."""

    subtotal: int | None
    tax: int | None
    taxes: list[TaxLine]
    delivery_fee: int | None
    discount: int | None
    tip: int | None
    total: int | None
    includes_tax: bool


def bill_of(payload: Mapping[str, Any]) -> Bill:
    """Return the amounts of an order."""
    return {
        "subtotal": whole(payload.get("subtotal")),
        "tax": whole(payload.get("tax")),
        "taxes": [_tax_line(each) for each in objects(payload.get("tax_breakdown"))],
        "delivery_fee": whole(payload.get("delivery_fee")),
        "discount": whole(payload.get("discount")),
        "tip": whole(payload.get("tip")),
        "total": whole(payload.get("total_amount")),
        "includes_tax": payload.get("prices_include_tax") is True,
    }


def _tax_line(line: Mapping[str, Any]) -> TaxLine:
    rate = line.get("rate")
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    shown = f"{rate:g}" if is_number else text(rate, "")
    return {"name": text(line.get("name"), ""), "rate": shown, "amount": whole(line.get("amount"))}


def kind_of(order_type: str) -> str:
    """Return how an order leaves the restaurant: "delivery", "pickup", "dine_in", "" if unknown."""
    return _TYPES.get(order_type.strip().lower().replace("-", "_").replace(" ", "_"), "")


def table_of(order: Order) -> str:
    """Return the table an order was placed at, as guests read it; "" where there is none.

    The specification shows no field for it (docs/assumptions.md): `table_name`, `table` and the
    beginning of the guest's note ("Table 5. ...") are looked at.
    """
    if kind_of(order.order_type) not in {"dine_in", ""}:
        return ""
    given = order.payload.get("table")
    names = [order.payload.get("table_name")]
    names += (
        [given.get("name"), given.get("external_id")] if isinstance(given, Mapping) else [given]
    )
    for name in names:
        if found := text(name, "").strip():
            return found[:_LONGEST_TABLE]
    note = _TABLE_IN_NOTE.match(order.special_instructions.strip())
    return note[1].strip() if note and kind_of(order.order_type) == "dine_in" else ""


def raw_types(kind: str) -> frozenset[str]:
    """Return the `order_type`s of this kind, in lower case with underscores."""
    return frozenset(raw for raw, each in _TYPES.items() if each == kind)


class Dish(TypedDict):
    """A line of an order in short; `quantity` is "?" where it is not clear."""

    name: str
    quantity: str


def dishes_of(order: Order) -> tuple[list[Dish], int]:
    """Return the first lines of an order, and how many there are more."""
    found: list[Dish] = [
        {"name": line.product_name, "quantity": line.quantity_text}
        for line in order.lines
        if line.product_name
    ]
    return found[:_NAMED], max(0, len(found) - _NAMED)


_LONGEST_NUMBER = 24

# Why an order is cancelled, as people say it.
REASONS: Mapping[ReasonCode, str] = {
    ReasonCode.ITEM_OUT_OF_STOCK: N_("An item is sold out"),
    ReasonCode.STORE_CLOSED: N_("The store is closed"),
    ReasonCode.POS_OFFLINE: N_("The till cannot be reached"),
    ReasonCode.CAPACITY: N_("The kitchen is too busy"),
    ReasonCode.PRICE_MISMATCH: N_("A price is not right"),
    ReasonCode.OTHER: N_("Another reason"),
}
TICKETS: Mapping[str, str] = {
    "waiting": N_("Not yet"),
    "writing": N_("Being written"),
    "written": N_("In the till"),
    "refused": N_("No ticket"),
    "withdrawn": N_("Removed"),
}
ORDER_STATES: Mapping[str, str] = {
    "created": N_("In the till, not accepted yet"),
    "accepted": N_("Accepted"),
    "preparing": N_("Being prepared"),
    "ready": N_("Ready"),
    "completed": N_("Completed"),
    "cancelled": N_("Cancelled"),
}
_PLAIN: Mapping[str, str] = {
    "order.completed": N_("The ordering service says the order is completed."),
    "order.not_written": N_("Not written to the till: {why}."),
    "order.ready": N_("Reported to the ordering service: ready."),
    "order.preparing": N_("Reported to the ordering service: being prepared."),
    "order.accepted": N_("Reported to the ordering service: accepted."),
    "order.cancelled": N_("Reported to the ordering service: cancelled ({code})."),
    "order.wait": N_("The till did not take it: {reason}. Trying again."),
    "order.on_paper": N_("The till did not take it ({why}), so it was printed: NOT IN TILL."),
    "order.held": N_("Too old to print automatically: it is printed only if somebody asks."),
    "order.to_cancel": N_("To be cancelled: {code}."),
    "order.call_refused": N_(
        "The ordering service refused the report “{call}” ({status} {code}). It is not repeated "
        "unless somebody asks."
    ),
    "order.too_late": N_(
        "The store was disconnected for too long, so “{call}” is not reported any more unless "
        "somebody asks."
    ),
    "order.seen": N_("Acknowledged by {by}."),
    "ticket.left": N_("The till has its ticket after all: remove it there by hand."),
    "ticket.taken_back": N_("A duplicate ticket was removed from the till: {why}."),
    "order.untold": N_(
        "“{call}” could not be reported to the ordering service ({code}). Trying again."
    ),
    "ticket.accepted": N_("The kitchen accepted it."),
    "ticket.preparing": N_("The kitchen is preparing it."),
    "ticket.ready": N_("The kitchen says it is ready."),
    "ticket.completed": N_("The till says it is completed."),
    "order.retried": N_("{by} tried it again."),
}
_REJECTED: Mapping[str, str] = {
    "item_unavailable": N_("an item is not available"),
    "store_closed": N_("the store is closed"),
    "pos_offline": N_("the till is offline"),
    "capacity": N_("the kitchen is too busy"),
    "price_mismatch": N_("a price is not right"),
}
# What kind of failure a note of `OrderRow.last_failure` begins with.
_FAILURES: Mapping[str, str] = {
    **_REJECTED,
    "offline": N_("the till cannot be reached"),
    "no_answer": N_("the till did not answer"),
    "refused": N_("the till refused it"),
}
_WITHDRAWN: Mapping[str, str] = {
    "never_written": N_("The till never had a ticket for it."),
    "taken_back": N_("Its ticket was removed from the till."),
    "left_to_person": N_("Its ticket is still in the till: remove it there by hand."),
}
_CLOSED: Mapping[str, str] = {
    "over": N_("Closed: nothing happened for a day."),
    "order.closed_by_service": N_("The ordering service had already finished it."),
    "service.refused": N_("The ordering service refused the report “{call}”: {code}."),
}
_HANDLED: Mapping[str, str] = {
    "typed": N_("{by} entered it into the till by hand."),
    "settled": N_("{by} handled it by hand; the bridge does nothing more."),
}


_KINDS = {
    "delivery": N_("Delivery"),
    "pickup": N_("Pickup"),
    "dine_in": N_("Dine-in"),
}


def kind_text(kind: str) -> str:
    """Return how an order leaves the restaurant in words; "" where nobody knows."""
    return _(_KINDS[kind]) if kind in _KINDS else ""


def bill_lines(bill: Bill) -> list[tuple[str, int]]:
    """Return the amounts of an order with their names, the total last; what is 0 is left out."""
    found: list[tuple[str, int | None]] = [(_("Subtotal"), bill["subtotal"])]
    if bill["discount"]:
        found.append((_("Discount"), -abs(bill["discount"])))
    found += [(_("Delivery fee"), bill["delivery_fee"]), *_taxes(bill), (_("Tip"), bill["tip"])]
    lines = [(name, amount) for name, amount in found if amount]
    return lines if bill["total"] is None else [*lines, (_("Total"), bill["total"])]


def _taxes(bill: Bill) -> list[tuple[str, int | None]]:
    """Return the taxes by name, or their sum where they have none or do not add up to it."""
    parts = [each for each in bill["taxes"] if each["amount"] is not None]
    whole = sum(each["amount"] or 0 for each in parts)
    if not parts or bill["tax"] not in {None, whole}:
        name = _("Tax (included)") if bill["includes_tax"] else _("Tax")
        return [(name, bill["tax"])]
    text = _("{name} {rate}% (included)") if bill["includes_tax"] else _("{name} {rate}%")
    plain = _("{name} (included)") if bill["includes_tax"] else "{name}"
    return [
        (
            (text if each["rate"] else plain).format(
                name=each["name"] or _("Tax"), rate=each["rate"]
            ),
            each["amount"],
        )
        for each in parts
    ]


def reason_text(code: str | None) -> str:
    """Return the service's reason code in words; the code itself where it is not known."""
    try:
        return _(REASONS[ReasonCode(code or "")])
    except ValueError:
        return code or ""


def failure_text(note: str) -> str:
    """Return why the till did not take an order, as `OrderRow.last_failure` has it, in words."""
    kind, _colon, words = note.partition(": ")
    return (words or _of(_FAILURES, kind)) if kind in _FAILURES else note


def ticket_text(ticket: str) -> str:
    """Return how far an order's ticket is."""
    return _of(TICKETS, ticket)


def reported_text(state: str) -> str:
    """Return what the ordering service knows of an order."""
    return _("Not yet") if state == "created" else _of(ORDER_STATES, state)


def is_ticket_number(reference: str) -> bool:
    """Whether a ticket's reference is one that people use: no file name, and no id."""
    return 0 < len(reference) <= _LONGEST_NUMBER and "ord_" not in reference


def sentence(event: str, detail: Mapping[str, Any]) -> str:
    """Return what happened as a sentence; the event's own name where there is none for it."""
    if event == "ticket.rejected":
        detail = {**detail, "why": _why_rejected(detail)}
    elif event == "order.check_found":
        detail = {**detail, "what": _odd(detail)}
    found = _chosen(event, detail)
    text = found.format_map(_Fields(detail)) if found else f"{event}."
    if detail.get("already"):
        text += " " + _("It was known there already.")
    if isinstance(detail.get("ms"), int):
        text += " " + _("The call took {ms} ms.").format(ms=detail["ms"])
    return text


class _Fields(dict[str, Any]):
    def __getitem__(self, name: str) -> object:
        value = self.get(name)
        if name == "by":
            return by_whom(value)
        if name == "reason" and isinstance(value, str):
            return failure_text(value.removesuffix(".")) or "?"
        if name == "code" and isinstance(value, str):
            return reason_text(value) or "?"
        return "?" if value in (None, "") else value


def _chosen(event: str, detail: Mapping[str, Any]) -> str:
    match event:
        case "order.received":
            lines = detail.get("lines")
            count = lines if isinstance(lines, int) else 0
            return ngettext("Order read: {n} line.", "Order read: {n} lines.", count).format(
                n=count
            )
        case "order.written":
            if is_ticket_number(str(detail.get("reference") or "")):
                return _("In the till as ticket {reference}.")
            return _("In the till.")
        case "order.check_found":
            return _("Please check: {what}.")
        case "ticket.rejected":
            return (
                _("The kitchen rejected it: {why}.")
                if detail["why"]
                else _("The kitchen rejected it.")
            )
        case "order.withdrawn":
            return _of(_WITHDRAWN, detail.get("how"))
        case "order.closed":
            return _of(_CLOSED, detail.get("why")) or _("Closed.")
        case "order.handled":
            return _of(_HANDLED, detail.get("how"))
        case "order.to_cancel" if detail.get("by"):
            return _("{by} cancels it: {code}.")
        case _:
            return _of(_PLAIN, event)


def _of(texts: Mapping[str, str], key: object) -> str:
    """Return the text of a table in the reader's language; "" where it has none."""
    found = texts.get(str(key), "")
    return _(found) if found else ""


def _why_rejected(detail: Mapping[str, Any]) -> str:
    message = str(detail.get("message") or "").rstrip(".")
    return joined("; ", filter(None, (_of(_REJECTED, detail.get("reason")), message)))


def _odd(detail: Mapping[str, Any]) -> str:
    parts = []
    for name, template in (
        ("unknown_items", _("not on the menu: {what}")),
        ("prices", _("prices differ from the menu: {what}")),
        ("currency", _("not the store's currency: {what}")),
        ("quantities", _("quantity missing: {what}")),
    ):
        if found := detail.get(name):
            listed = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
            parts.append(template.format(what=listed))
    return joined("; ", parts)


# -- An order's steps from its arrival to its end, and whether the service knows of each. Pure.
#
# Instants are ms since the epoch. A step that has not happened yet has no instant and is left out,
# except for the next one that the bridge waits for.


Reported = Literal["", "yes", "pending", "refused"]


class Step(TypedDict):
    """A step: when it happened, how long (ms) after the arrival and after the step before it.

    `key` is "placed", "received", "saved", "in_till", "accepted", "preparing", "ready",
    "completed" or "cancelled". `reported` is "" for a step that is not reported to the service;
    `reported_ms` is how long after the step it was reported. `at` None: not yet.
    """

    key: str
    at: int | None
    after_ms: int | None
    took_ms: int | None
    reported: Reported
    reported_ms: int | None


# The steps that are reported to the service, with the log's events of the till and of the report.
_REPORTED = (
    ("accepted", OrderState.ACCEPTED, ("ticket.accepted",)),
    ("preparing", OrderState.PREPARING, ("ticket.preparing",)),
    ("ready", OrderState.READY, ("ticket.ready",)),
    ("cancelled", OrderState.CANCELLED, ("order.to_cancel",)),
)
_CALLS = {"accepted": "accept", "cancelled": "cancel"}  # as `OrderRow.refused` names them
_ORDER = {state: place for place, state in enumerate(OrderState)}


def timeline(row: OrderRow, entries: Sequence[LogEntry]) -> list[Step]:
    """Return the steps of an order, in the order in which they happened."""
    first: dict[str, int] = {}
    for each in entries:
        first.setdefault(each.event, each.at)
    written = _written_at(row, first)
    found: list[tuple[str, int | None, Reported, int | None]] = []
    if row.placed_at is not None and row.placed_at <= row.received_at:
        found.append(("placed", row.placed_at, "", None))
    found.append(("received", row.received_at, "", None))
    if "order.received" in first:
        found.append(("saved", first["order.received"], "", None))
    if written is not None:
        found.append(("in_till", written, "", None))
    for key, state, events in _REPORTED:
        at = min((first[each] for each in events if each in first), default=None)
        reported_at = first.get(f"order.{key}")
        if at is None and key == "accepted" and reported_at is not None:
            at = written if written is not None and written <= reported_at else reported_at
        at = reported_at if at is None else at
        if at is not None:
            reported_ms = None if reported_at is None else max(0, reported_at - at)
            found.append((key, at, _reported(row, key, state, reported_at), reported_ms))
    if (over := first.get("order.completed")) is not None:
        found.append(("completed", over, "", None))
    found.sort(key=lambda each: (each[1] or 0, _PLACES.index(each[0])))
    if waits_for := _waits_for(row, {each[0] for each in found}):
        found.append((waits_for, None, "", None))
    return _steps(found, row.received_at)


def _written_at(row: OrderRow, first: Mapping[str, int]) -> int | None:
    if row.written_at is not None:
        return row.written_at
    return first.get("order.written")


def _reported(row: OrderRow, key: str, state: OrderState, reported_at: int | None) -> Reported:
    if reported_at is not None:
        return "yes"
    if _CALLS.get(key, key) in row.refused:
        return "refused"
    # A later report implies it: such a step is not reported.
    if row.service_state is state or _ORDER[row.service_state] > _ORDER[state]:
        return "yes"
    return "pending" if row.closed_at is None else ""


def _waits_for(row: OrderRow, known: set[str]) -> str:
    """Return the next step that the bridge waits for; "" where it waits for none."""
    if row.closed_at is not None:
        return ""
    if row.desired_state is OrderState.CANCELLED:
        return "" if "cancelled" in known else "cancelled"
    if row.ticket in {TicketState.WAITING, TicketState.WRITING} and "in_till" not in known:
        return "in_till"
    return "" if "accepted" in known else "accepted"


_PLACES = (
    "placed received saved in_till accepted preparing ready completed cancelled".split()
)  # fmt: skip


def _steps(
    found: Sequence[tuple[str, int | None, Reported, int | None]], received_at: int
) -> list[Step]:
    steps: list[Step] = []
    before: int | None = None
    for key, at, reported, reported_ms in found:
        steps.append(
            {
                "key": key,
                "at": at,
                "after_ms": None if at is None else at - received_at,
                "took_ms": None if at is None or before is None else max(0, at - before),
                "reported": reported,
                "reported_ms": reported_ms,
            }
        )
        before = at if at is not None else before
    return steps
