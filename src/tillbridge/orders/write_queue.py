"""The orders that wait for the POS, and which of them is next. Pure, but for being a list.

Orders are written one after another in the order they were received. One in trouble waits out its
own backoff and does not hold up those behind it. While the POS is offline only one order is tried
now and then, each time one that was tried the least: an order that fails alone cannot pass for a
POS that is gone.

`accept_within_s` counts from when the order was received. Inside one life of the process time is
the monotonic clock's. Across a restart only the wall clock tells an order's age, and it may have
jumped meanwhile; so what is left is clamped: never more than the whole time (no jump back keeps an
order for ever), and never less than a grace in which it is tried once more (no jump ahead cancels
an order at once).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.lifecycle import is_confirmed
from tillbridge.orders.reasons import Lapse, Lapsed
from tillbridge.orders.state import is_to_be_withdrawn

GRACE_S = 15.0


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


class Phase(StrEnum):
    """What an order waits for."""

    WRITE = "write"
    CONFIRM = "confirm"  # written; the POS has to say that it takes it
    WITHDRAW = "withdraw"  # cancelled; its ticket has to leave the POS


def phase_of(row: OrderRow, accept: Literal["when_written", "when_confirmed"]) -> Phase | None:
    """Return what the order waits for; None where the POS has nothing more to do with it."""
    if row.closed_at is not None:
        return None
    if is_to_be_withdrawn(row):
        return Phase.WITHDRAW
    if row.desired_state is OrderState.CANCELLED:
        return None
    if row.ticket in UNWRITTEN:
        return Phase.WRITE
    unconfirmed = accept == "when_confirmed" and not is_confirmed(row.desired_state)
    return Phase.CONFIRM if row.ticket is TicketState.WRITTEN and unconfirmed else None


@dataclass(slots=True)
class QueuedOrder:
    """One order, by rank of receipt. `deadline` and `next_try` are monotonic seconds."""

    row: OrderRow  # the newest
    place: int
    phase: Phase
    deadline: float
    order: Order | None = None  # what the row's payload says, where it was read already
    next_try: float = -math.inf
    failures: int = 0
    offline: bool = False
    held: bool = False  # until a person asks for it, or its time is up
    unsure: bool = False  # the POS may have it, and did not say
    unknown_outcomes: int = 0
    may_land_until: float = -math.inf  # a write of unknown outcome may take effect until then
    paper_at: float = math.inf  # when it goes to the printer that stands in
    paper_failures: int = 0
    maybe_on_paper: bool = False  # ... which may have it, from before or from a try that broke off
    crashes: int = 0  # how often in a row working on it failed unexpectedly
    set_aside_until: float = -math.inf  # because of that, even past its deadline

    @property
    def order_id(self) -> str:
        """The order's id."""
        return self.row.order_id

    def outcome_unknown(self, now: float, late_write_s: float) -> None:
        """Note that a write may yet take effect; twice as long as after the one before."""
        self.unknown_outcomes += 1
        wait_s = late_write_s * 2.0 ** min(self.unknown_outcomes - 1, 30)
        self.may_land_until = max(self.may_land_until, now + wait_s)

    def due(self, pos_from: float) -> float:
        """Return when something is to be done, where the POS may be tried from `pos_from` on."""
        return max(self._planned(max(self.next_try, pos_from)), self.set_aside_until)

    def _planned(self, attempt: float) -> float:
        match self.phase:
            case Phase.WRITE:
                planned = min(self.deadline, self.paper_at)
                return planned if self.held else min(planned, attempt)
            case Phase.CONFIRM:
                return self.deadline
            case Phase.WITHDRAW:
                return attempt


class WriteQueue:
    """The orders of one store that wait, by id."""

    def __init__(self) -> None:
        self._queued: dict[str, QueuedOrder] = {}
        self._places = 0
        self._pos_from = -math.inf
        self._pos_failures = 0

    def __iter__(self) -> Iterator[QueuedOrder]:
        return iter(self._queued.values())

    def __len__(self) -> int:
        return len(self._queued)

    def get(self, order_id: str) -> QueuedOrder | None:
        """Return the order's entry, None where it does not wait."""
        return self._queued.get(order_id)

    def add(self, row: OrderRow, phase: Phase, deadline: float) -> QueuedOrder:
        """Add an order, behind all others; one that waits already gets the row and the phase."""
        known = self._queued.get(row.order_id)
        if known is not None:
            known.row = row
            known.phase, known.deadline, known.next_try = phase, deadline, -math.inf
            known.held = False
            return known
        self._places += 1
        entry = QueuedOrder(row, self._places, phase, deadline)
        self._queued[row.order_id] = entry
        return entry

    def drop(self, order_id: str) -> None:
        """Forget the order: it waits for nothing any more."""
        self._queued.pop(order_id, None)

    def any_for_pos(self) -> bool:
        """Return whether any order waits to be written or withdrawn."""
        return any(
            each.phase is not Phase.CONFIRM and not each.held for each in self._queued.values()
        )

    def hold_all(self, until: float) -> int:
        """Try nothing before `until`: the POS is offline. Return how often in a row it was."""
        self._pos_from = until
        self._pos_failures += 1
        return self._pos_failures

    @property
    def pos_failures(self) -> int:
        """How often in a row the POS was found to be offline."""
        return self._pos_failures

    def pos_answered(self) -> None:
        """Try orders as they come again: the POS has just answered."""
        if self._pos_failures:
            self.try_again()
            self._pos_failures = 0
            for each in self._queued.values():
                if each.offline:
                    each.failures, each.offline = 0, False

    def try_again(self) -> None:
        """Let what failed because the POS was offline be tried at once, the least tried first."""
        self._pos_from = -math.inf
        for each in self._queued.values():
            if each.offline:
                each.next_try = -math.inf

    def next(self, now: float, *, pos_there: bool) -> QueuedOrder | None:
        """Return the order of which something is to be done now."""
        pos_from = self._pos_from if pos_there else math.inf
        due = [each for each in self._queued.values() if each.due(pos_from) <= now]
        if not due:
            return None
        if self._pos_failures:
            return min(due, key=lambda each: (each.failures, each.place))
        return min(due, key=lambda each: each.place)

    def next_at(self, *, pos_there: bool) -> float:
        """Return when something is to be done next (monotonic seconds, or infinity)."""
        pos_from = self._pos_from if pos_there else math.inf
        return min(_dues(self._queued.values(), pos_from), default=math.inf)


def _dues(waiting: Iterable[QueuedOrder], pos_from: float) -> Iterator[float]:
    return (each.due(pos_from) for each in waiting)
