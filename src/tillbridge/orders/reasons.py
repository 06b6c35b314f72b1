"""From anything that ends an order to what the service is told: one total function.

Contract: Failures of a POS. Specification: Orders, reason_code values and their effects.
"""

from dataclasses import dataclass
from enum import StrEnum

from tillbridge.adapter import (
    AtCapacity,
    ItemUnavailable,
    PosFailure,
    PosOffline,
    PriceMismatch,
    RejectReason,
    StoreClosed,
    TicketOutcomeUnknown,
    TicketUpdate,
)
from tillbridge.core.i18n import _
from tillbridge.model.order import ReasonCode

_LONGEST_MESSAGE = 300

_BY_FAILURE: tuple[tuple[type[PosFailure], ReasonCode], ...] = (
    (ItemUnavailable, ReasonCode.ITEM_OUT_OF_STOCK),
    (StoreClosed, ReasonCode.STORE_CLOSED),
    (PosOffline, ReasonCode.POS_OFFLINE),
    (AtCapacity, ReasonCode.CAPACITY),
    (PriceMismatch, ReasonCode.PRICE_MISMATCH),
)
_BY_REJECTION = {
    RejectReason.ITEM_UNAVAILABLE: ReasonCode.ITEM_OUT_OF_STOCK,
    RejectReason.STORE_CLOSED: ReasonCode.STORE_CLOSED,
    RejectReason.POS_OFFLINE: ReasonCode.POS_OFFLINE,
    RejectReason.CAPACITY: ReasonCode.CAPACITY,
    RejectReason.PRICE_MISMATCH: ReasonCode.PRICE_MISMATCH,
    RejectReason.OTHER: ReasonCode.OTHER,
}
_TO_THE_CUSTOMER = {
    ReasonCode.ITEM_OUT_OF_STOCK: _(
        "Sorry, something in your order has just sold out. You will be refunded in full."
    ),
    ReasonCode.STORE_CLOSED: _(
        "Sorry, the restaurant is closed at the moment. You will be refunded in full."
    ),
    ReasonCode.POS_OFFLINE: _(
        "Sorry, the restaurant could not receive your order. You will be refunded in full."
    ),
    ReasonCode.CAPACITY: _(
        "Sorry, the kitchen cannot take more orders at the moment. You will be refunded in full."
    ),
    ReasonCode.PRICE_MISMATCH: _(
        "Sorry, a price in your order has changed. You will be refunded in full; "
        "please order again from the current menu."
    ),
    ReasonCode.OTHER: _(
        "Sorry, the restaurant could not take your order. You will be refunded in full."
    ),
}


# Why the bridge or the till cancelled orders: what follows "because".
CAUSES = {
    "offline": _("the till could not be reached"),
    "not_written": _("nothing could be written to the till in time"),
    "not_confirmed": _("nobody confirmed them at the till in time"),
    "refused": _("the till said no"),
    "sold_out": _("something was sold out"),
    "closed": _("the till said that the restaurant is closed"),
    "capacity": _("the kitchen could not take more orders"),
    "price": _("the till has another price"),
    "unknown_item": _("something was ordered that is not on the menu"),
    "price_differs": _("a price was not that of the menu"),
    "other": _("they could not be taken"),
}
# Those of which the till's own words say more.
EXPLAINED_BY_TILL = frozenset({"refused", "sold_out", "closed", "capacity", "price"})
_CAUSE_OF_CODE = {
    ReasonCode.ITEM_OUT_OF_STOCK: "sold_out",
    ReasonCode.STORE_CLOSED: "closed",
    ReasonCode.POS_OFFLINE: "offline",
    ReasonCode.CAPACITY: "capacity",
    ReasonCode.PRICE_MISMATCH: "price",
    ReasonCode.OTHER: "refused",
}


class Lapse(StrEnum):
    """What did not happen before an order's time was up."""

    NOT_WRITTEN = "not_written"
    NOT_WRITTEN_OFFLINE = "not_written_offline"
    NOT_CONFIRMED = "not_confirmed"


@dataclass(frozen=True, slots=True)
class Lapsed:
    """An order's time was up.

    `unconfirmed_reason` is the setting's code for NOT_CONFIRMED; `note` tells the last failure.
    """

    lapse: Lapse
    unconfirmed_reason: ReasonCode = ReasonCode.OTHER
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChecksFailed:
    """The policy cancels an order for what its lines say; `text` tells support what it was."""

    code: ReasonCode
    text: str


@dataclass(frozen=True, slots=True)
class ByPerson:
    """Somebody of the restaurant cancels the order."""

    code: ReasonCode


Cause = PosFailure | TicketUpdate | Lapsed | ChecksFailed | ByPerson


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What a cancel says, and what follows from it in the bridge.

    `reason` is shown to the customer, `message` goes to support. `items_out` are external ids to
    be taken off sale; `price_mismatch`, `pos_offline` and `lost_to_absence` have the menu, the
    POS's presence and the store's pause react. `cause` is a key of `CAUSES`, "" where a person
    asks for it.
    """

    code: ReasonCode
    reason: str
    message: str
    cause: str = ""
    items_out: tuple[str, ...] = ()
    price_mismatch: bool = False
    pos_offline: bool = False
    lost_to_absence: bool = False


def customer_text(code: ReasonCode) -> str:
    """Return what a customer whose order is cancelled for `code` reads."""
    return _TO_THE_CUSTOMER[code]


def cancellation(cause: Cause) -> Cancellation:
    """Return what the service is told when `cause` ends an order. Total: there is always a code."""
    code, message = _code_and_message(cause)
    items: tuple[str, ...] = ()
    if code is ReasonCode.ITEM_OUT_OF_STOCK and isinstance(cause, ItemUnavailable | TicketUpdate):
        items = tuple(dict.fromkeys(each for each in cause.external_ids if each))
    from_pos = isinstance(cause, PosFailure | TicketUpdate)
    return Cancellation(
        code=code,
        reason=customer_text(code),
        message=_trimmed(message),
        cause=_cause_name(cause, code),
        items_out=items,
        price_mismatch=code is ReasonCode.PRICE_MISMATCH and not isinstance(cause, ByPerson),
        pos_offline=from_pos and code is ReasonCode.POS_OFFLINE,
        lost_to_absence=code is ReasonCode.POS_OFFLINE and not isinstance(cause, ByPerson),
    )


_NOTES: tuple[tuple[type[PosFailure], str], ...] = (
    (ItemUnavailable, "item_unavailable"),
    (StoreClosed, "store_closed"),
    (PosOffline, "offline"),
    (AtCapacity, "capacity"),
    (PriceMismatch, "price_mismatch"),
    (TicketOutcomeUnknown, "no_answer"),
)


def failure_note(failure: PosFailure) -> str:
    """Return what the ledger keeps of a failure: its kind, and the POS's own words."""
    kind = next((note for kind, note in _NOTES if isinstance(failure, kind)), "refused")
    return f"{kind}: {_trimmed(failure.message)}" if failure.message else kind


def was_offline(note: str) -> bool:
    """Return whether the failure of this note says that the POS was not there."""
    return note.partition(":")[0] == "offline"


def _cause_name(cause: Cause, code: ReasonCode) -> str:
    match cause:
        case ByPerson():
            return ""
        case Lapsed(lapse=Lapse.NOT_WRITTEN_OFFLINE):
            return "offline"
        case Lapsed(lapse=lapse):
            return "not_written" if lapse is Lapse.NOT_WRITTEN else "not_confirmed"
        case ChecksFailed():
            return "price_differs" if code is ReasonCode.PRICE_MISMATCH else "unknown_item"
        case _:
            return _CAUSE_OF_CODE[code]


def _code_and_message(cause: Cause) -> tuple[ReasonCode, str]:
    match cause:
        case PosFailure():
            code = next(
                (code for kind, code in _BY_FAILURE if isinstance(cause, kind)), ReasonCode.OTHER
            )
            return code, cause.message or _("The POS refused the order without saying why.")
        case TicketUpdate():
            code = _BY_REJECTION[cause.reason] if cause.reason else ReasonCode.OTHER
            return code, cause.message or _("The POS rejected the order without saying why.")
        case Lapsed(lapse=Lapse.NOT_WRITTEN_OFFLINE):
            return ReasonCode.POS_OFFLINE, _("The POS could not be reached in time.")
        case Lapsed(lapse=Lapse.NOT_WRITTEN):
            words = cause.note.partition(": ")[2]
            return ReasonCode.OTHER, words or _("The POS did not take the order in time.")
        case Lapsed():
            return cause.unconfirmed_reason, _("The POS did not confirm the order in time.")
        case ChecksFailed():
            return cause.code, cause.text
        case ByPerson():
            return cause.code, _("Cancelled by the restaurant's staff.")


def _trimmed(message: str) -> str:
    """Return the POS's words on one line of at most 300 characters, without control characters."""
    printable = "".join(each if each.isprintable() else " " for each in message)
    line = " ".join(printable.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1].rstrip() + "…"


# -- what follows from a failed write


class AfterFailure(StrEnum):
    """What follows when the POS did not take a ticket."""

    RETRY = "retry"  # until the deadline
    CANCEL = "cancel"  # the POS said no: at once


def may_stand_in(failure: PosFailure) -> bool:
    """Return whether paper helps: the POS did not take it, and did not say that the kitchen cannot.

    Sold out, closed, full and another price are answers; the customer gets the money back.
    """
    return not isinstance(failure, ItemUnavailable | StoreClosed | AtCapacity | PriceMismatch)


def after_failure(failure: PosFailure) -> AfterFailure:
    """Return whether an order is tried again after `failure`.

    A POS that is off, or did not answer, may take it yet; one that said no has decided. Failures an
    adapter should not have (the runner says which) never come here: they are tried again.
    """
    match failure:
        case ItemUnavailable() | StoreClosed() | AtCapacity() | PriceMismatch():
            return AfterFailure.CANCEL
        case PosOffline() | TicketOutcomeUnknown():
            return AfterFailure.RETRY
        case _:
            return AfterFailure.CANCEL
