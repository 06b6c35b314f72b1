"""What can happen to an order: the events of `orders.state.decide`, each a case of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tillbridge.adapter import TicketStatus
from tillbridge.model.order import OrderState, ReasonCode


class Call(StrEnum):
    """The four order calls of the service. Specification: Order lifecycle driven from the POS."""

    ACCEPT = "accept"
    PREPARING = "preparing"
    READY = "ready"
    CANCEL = "cancel"


# How the ticket of a cancelled order ended.
HowWithdrawn = Literal["never_written", "taken_back", "left_to_person"]
# What a person has done: typed the order into the till, or settled it in some other way.
ByHand = Literal["typed", "settled"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an order; each kind is a case of `decide`."""


@dataclass(frozen=True, slots=True)
class WriteBegun(Event):
    """The POS is about to be asked to accept the ticket (invariant 2)."""


@dataclass(frozen=True, slots=True)
class Written(Event):
    """The POS has the ticket; with `accepts` that is enough to accept the order."""

    reference: str
    accepts: bool


@dataclass(frozen=True, slots=True)
class Printed(Event):
    """The order was printed because the till could not accept it, and `why` it could not."""

    reference: str
    why: str
    accepts: bool


@dataclass(frozen=True, slots=True)
class WriteFailed(Event):
    """The POS did not accept the ticket; `note` is "kind" or "kind: the POS's words".

    `counts`: it was asked to, and failed.
    """

    note: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Held(Event):
    """The order is too old to be written unless a person asks for it."""

    note: str


@dataclass(frozen=True, slots=True)
class CancelRequested(Event):
    """The order is to be cancelled; `reasons.cancellation` makes it, and says what else follows.

    `message` goes to support; the customer reads `customer_text(code)`. `cause` is a key of
    `reasons.CAUSES`, "" where a person (`by`) asks for it. `pos_has_none`: the POS surely has no
    ticket. `items_out` are external ids to be taken off sale; to `price_mismatch`, `pos_offline`
    and `lost_to_absence` the menu, the POS's presence and the store's pause react.
    """

    code: ReasonCode
    message: str
    cause: str = ""
    pos_has_none: bool = False
    by: str = ""
    items_out: tuple[str, ...] = ()
    price_mismatch: bool = False
    pos_offline: bool = False
    lost_to_absence: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn(Event):
    """Nothing more is done about the ticket of a cancelled order.

    `why` and `fix` are the POS's own, where it is left to a person; "" where it gives none.
    """

    how: HowWithdrawn
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class TicketLeft(Event):
    """The POS has a ticket of the cancelled order after all, and does not give it back.

    `why` and `fix` as in `Withdrawn`.
    """

    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class SurplusTicketCancelled(Event):
    """A ticket too many was taken back out of the POS: its `record` there, and why."""

    reference: str
    record: str
    why: str


@dataclass(frozen=True, slots=True)
class ServiceKnows(Event):
    """The service has the order in this state; `event` and `detail` are for the log."""

    state: OrderState
    event: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallRefused(Event):
    """The service refused this call for good, for this `reason`; other calls are still made."""

    call: Call
    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportsTooLate(Event):
    """A report waited until it was wrong to make it, for this `reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class ServiceClosed(Event):
    """The service says that it does nothing more with the order."""

    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TicketMoved(Event):
    """The POS reports how far the ticket is; a rejection is a CancelWanted."""

    status: TicketStatus


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """The service has completed the order."""


@dataclass(frozen=True, slots=True)
class Handled(Event):
    """A person has seen to the order, so that the till is not tried any more."""

    how: ByHand
    by: str


@dataclass(frozen=True, slots=True)
class Retried(Event):
    """A person wants what is left to do to be tried at once."""

    by: str


@dataclass(frozen=True, slots=True)
class Seen(Event):
    """A person (`by`) has seen what these codes say of the order; "": its time is over."""

    codes: frozenset[str]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Lapsed(Event):
    """A moment to close what is over and was never closed."""


@dataclass(frozen=True, slots=True)
class Reopened(Event):
    """The POS has news of an order that had lapsed: it goes on, as if it had not."""
