"""How long an order may wait for the POS, and what its waiting ends in.

`accept_within_s` counts from when the order was received. Inside one life of the process time is
the monotonic clock's. Across a restart only the wall clock tells an order's age, and it may have
jumped meanwhile; so what is left is clamped: never more than the whole time (no jump back keeps an
order for ever), and never less than a grace in which it is tried once more (no jump ahead cancels
an order at once).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tillbridge.adapter import (
    AtCapacity,
    ItemUnavailable,
    PosFailure,
    PosOffline,
    PriceMismatch,
    StoreClosed,
    TicketOutcomeUnknown,
)
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.lifecycle import is_confirmed
from tillbridge.orders.reasons import Lapse, Lapsed

GRACE_S = 15.0


class AfterFailure(StrEnum):
    """What follows when the POS did not take a ticket."""

    RETRY = "retry"  # until the deadline
    CANCEL = "cancel"  # the POS said no: at once


def may_stand_in(failure: PosFailure) -> bool:
    """Return whether paper helps: the POS did not take it, and did not say that the kitchen cannot.

    Sold out, closed, full and another price are answers; the customer gets the money back.
    """
    return not isinstance(failure, ItemUnavailable | StoreClosed | AtCapacity | PriceMismatch)


@dataclass(frozen=True, slots=True)
class Patience:
    """The settings of [stores.NAME.orders] that decide when waiting ends."""

    accept: Literal["when_written", "when_confirmed"]
    accept_within_s: float
    unconfirmed_reason: ReasonCode


def remaining_s(age_ms: int, accept_within_s: float) -> float:
    """Return how many seconds an order has left whose age by the wall clock is `age_ms`."""
    left = accept_within_s - age_ms / 1000
    return min(accept_within_s, max(left, min(GRACE_S, accept_within_s)))


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


def lapsed(
    patience: Patience, *, written: bool, wanted: OrderState, offline: bool, note: str = ""
) -> Lapsed | None:
    """Return why an order whose time is up ends, or None where it goes on.

    `offline` tells that the POS could not be reached when last tried, `note` why the last write
    failed. A written ticket that need not be confirmed never lapses, however long the service
    cannot be told.
    """
    if not written:
        lapse = Lapse.NOT_WRITTEN_OFFLINE if offline else Lapse.NOT_WRITTEN
        return Lapsed(lapse, note=note)
    if patience.accept == "when_confirmed" and not is_confirmed(wanted):
        return Lapsed(Lapse.NOT_CONFIRMED, patience.unconfirmed_reason)
    return None


def backoff_s(failures: int, first_s: float, cap_s: float) -> float:
    """Return how long to wait after that many failures in a row: doubling, up to the cap."""
    return min(cap_s, first_s * 2.0 ** min(max(failures - 1, 0), 30))
