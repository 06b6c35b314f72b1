"""From anything that ends an order to the reason sent to the service: one total function.

Contract: Failures of a POS. Specification: Orders, reason_code values and their effects.
"""

from dataclasses import dataclass
from enum import Enum, auto

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
from tillbridge.ledger.models import OrderRow
from tillbridge.model.numbers import printable
from tillbridge.model.order import ReasonCode
from tillbridge.orders.events import CancelRequested

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class _FailureKind:
    """What a failure of a write means. `note` is what the ledger stores of its kind.

    `is_answer`: the kitchen cannot, so the customer gets the money back, and paper does not help.
    `may_pass`: the order is tried again until its deadline; else it is cancelled at once.
    """

    failure: type[PosFailure]
    note: str
    code: ReasonCode
    is_answer: bool = False
    may_pass: bool = False


# A POS that is off, or did not answer, may still accept the order; one that refused has decided.
# Failures an adapter should not have (the runner says which) never come here: they are tried again.
_FAILURES = (
    _FailureKind(ItemUnavailable, "item_unavailable", ReasonCode.ITEM_OUT_OF_STOCK, is_answer=True),
    _FailureKind(StoreClosed, "store_closed", ReasonCode.STORE_CLOSED, is_answer=True),
    _FailureKind(AtCapacity, "capacity", ReasonCode.CAPACITY, is_answer=True),
    _FailureKind(PriceMismatch, "price_mismatch", ReasonCode.PRICE_MISMATCH, is_answer=True),
    _FailureKind(PosOffline, "offline", ReasonCode.POS_OFFLINE, may_pass=True),
    _FailureKind(TicketOutcomeUnknown, "no_answer", ReasonCode.OTHER, may_pass=True),
    _FailureKind(PosFailure, "refused", ReasonCode.OTHER),
)
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
    "refused": _("the till refused the order"),
    "sold_out": _("something was sold out"),
    "closed": _("the till said that the restaurant is closed"),
    "capacity": _("the kitchen could not take more orders"),
    "price": _("the till has a different price"),
    "unknown_item": _("something was ordered that is not on the menu"),
    "price_differs": _("a price differed from the menu"),
    "other": _("they could not be accepted"),
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


class Lapse(Enum):
    """What did not happen before an order's time was up."""

    NOT_WRITTEN = auto()
    NOT_WRITTEN_OFFLINE = auto()
    NOT_CONFIRMED = auto()


@dataclass(frozen=True, slots=True)
class Lapsed:
    """An order's time was up.

    `unconfirmed_reason` is the setting's code for NOT_CONFIRMED; `note` is the last failure.
    """

    lapse: Lapse
    unconfirmed_reason: ReasonCode = ReasonCode.OTHER
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChecksFailed:
    """The policy cancels an order because of its lines; `text` explains it to support."""

    code: ReasonCode
    text: str


@dataclass(frozen=True, slots=True)
class ByPerson:
    """Somebody (`by`) of the restaurant cancels the order."""

    code: ReasonCode
    by: str = ""


Cause = PosFailure | TicketUpdate | Lapsed | ChecksFailed | ByPerson


def customer_text(code: ReasonCode | None) -> str:
    """Return what a customer whose order is cancelled for `code` reads."""
    return str(_TO_THE_CUSTOMER[code or ReasonCode.OTHER])


def cancellation(cause: Cause, *, pos_has_none: bool = False) -> CancelRequested:
    """Return what is sent to the service when `cause` ends an order. There is always a code."""
    name, by = "", ""
    items: tuple[str, ...] = ()
    match cause:
        case PosFailure():
            code = _kind_of(cause).code
            message = cause.message or _("The till refused the order without saying why.")
        case TicketUpdate():
            code = _code_of_rejection(cause.reason)
            message = cause.message or _("The till rejected the order without saying why.")
        case Lapsed(lapse=Lapse.NOT_WRITTEN_OFFLINE):
            code, name = ReasonCode.POS_OFFLINE, "offline"
            message = _("The till could not be reached in time.")
        case Lapsed(lapse=Lapse.NOT_WRITTEN):
            code, name = ReasonCode.OTHER, "not_written"
            message = cause.note.partition(": ")[2] or _(
                "The till did not accept the order in time."
            )
        case Lapsed():
            code, name = cause.unconfirmed_reason, "not_confirmed"
            message = _("The till did not confirm the order in time.")
        case ChecksFailed():
            code, message = cause.code, cause.text
            name = "price_differs" if code is ReasonCode.PRICE_MISMATCH else "unknown_item"
        case _:
            code, by = cause.code, cause.by
            message = _("Cancelled by the restaurant's staff.")
    from_pos = isinstance(cause, PosFailure | TicketUpdate)
    if from_pos:
        name = _CAUSE_OF_CODE[code]
    if code is ReasonCode.ITEM_OUT_OF_STOCK and isinstance(cause, ItemUnavailable | TicketUpdate):
        items = tuple(dict.fromkeys(each for each in cause.external_ids if each))
    return CancelRequested(
        code,
        printable(message, most=_LONGEST_MESSAGE),
        name,
        pos_has_none=pos_has_none,
        by=by,
        items_out=items,
        price_mismatch=code is ReasonCode.PRICE_MISMATCH and bool(name),
        pos_offline=code is ReasonCode.POS_OFFLINE and from_pos,
        lost_to_absence=code is ReasonCode.POS_OFFLINE and bool(name),
    )


def _code_of_rejection(reason: RejectReason | None) -> ReasonCode:
    if reason is RejectReason.ITEM_UNAVAILABLE:
        return ReasonCode.ITEM_OUT_OF_STOCK
    return ReasonCode.OTHER if reason is None else ReasonCode[reason.name]


def _kind_of(failure: PosFailure) -> _FailureKind:
    return next(each for each in _FAILURES if isinstance(failure, each.failure))


# -- the note of a failure, as `OrderRow.last_failure` has it: "kind" or "kind: the POS's words"


def failure_note(failure: PosFailure) -> str:
    """Return what the ledger stores of a failure: its kind, and the POS's own words."""
    note = _kind_of(failure).note
    words = printable(failure.message, most=_LONGEST_MESSAGE)
    return f"{note}: {words}" if failure.message else note


def why_not_written(row: OrderRow) -> str:
    """Return why the till did not accept the order, in its own words where it gave some."""
    note = row.last_failure
    return note.partition(": ")[2] or note or _("it did not answer")


def may_pass(failure: PosFailure) -> bool:
    """Return whether the order is tried again after `failure`; else the POS has refused it."""
    return _kind_of(failure).may_pass


def may_go_to_paper(failure: PosFailure) -> bool:
    """Return whether paper helps: the POS did not say that the kitchen cannot."""
    return not _kind_of(failure).is_answer


def was_offline(note: str) -> bool:
    """Return whether the failure of this note says that the POS was not there."""
    return note.partition(":")[0] == "offline"
