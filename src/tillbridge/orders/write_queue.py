"""The orders that wait for the POS, and which of them is next. Pure, but for being a list.

Orders are written one after another in the order they were received. One in trouble waits out its
own backoff and does not hold up those behind it. While the POS is offline only one order is tried
now and then, each time one that was tried the least: an order that fails alone cannot pass for a
POS that is gone.

`accept_within_s` counts from when the order was received. While the process runs, time is the
monotonic clock's. Across a restart only the wall clock shows an order's age, and it may have
jumped meanwhile; so what is left is clamped: never more than the whole time (no jump back keeps an
order for ever), and never less than a grace in which it is tried once more (no jump ahead cancels
an order at once).
"""

import math
from dataclasses import dataclass

from tillbridge.ledger.models import OrderRow
from tillbridge.model.order import Order
from tillbridge.orders.state import Phase

GRACE_S = 15.0


def remaining_s(age_ms: int, within_s: float) -> float:
    """Return how many seconds an order has left whose age by the wall clock is `age_ms`."""
    left = within_s - age_ms / 1000
    return min(within_s, max(left, min(GRACE_S, within_s)))


def backoff_s(failures: int, first_s: float, cap_s: float) -> float:
    """Return how long to wait after that many failures in a row: doubling, up to the cap."""
    return min(cap_s, first_s * 2.0 ** min(max(failures - 1, 0), 30))


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
    paper_at: float = math.inf  # when it goes to the printer that is in
    paper_failures: int = 0
    maybe_on_paper: bool = False  # ... which may have it, from before or from a try that broke off
    crashes: int = 0  # how often in a row working on it failed unexpectedly
    set_aside_until: float = -math.inf  # because of that, even past its deadline

    def outcome_unknown(self, now: float, late_write_s: float) -> None:
        """Note that a write may yet take effect; twice as long as after the one before."""
        self.unknown_outcomes += 1
        wait_s = late_write_s * 2.0 ** min(self.unknown_outcomes - 1, 30)
        self.may_land_until = max(self.may_land_until, now + wait_s)

    def due(self, pos_from: float) -> float:
        """Return when something is to be done, where the POS may be tried from `pos_from` on."""
        due = max(self.next_try, pos_from)
        if self.phase is Phase.WRITE:
            due = min(self.deadline, self.paper_at, math.inf if self.held else due)
        elif self.phase is Phase.CONFIRM:
            due = self.deadline
        return max(due, self.set_aside_until)


class WriteQueue(dict[str, QueuedOrder]):
    """The orders of one store that wait, by id."""

    def __init__(self) -> None:
        super().__init__()
        self._places = 0
        self._pos_from = -math.inf
        self.pos_failures = 0  # how often in a row the POS was found to be offline

    def add(self, row: OrderRow, phase: Phase, deadline: float) -> QueuedOrder:
        """Add an order, behind all others; one that waits already gets the row and the phase."""
        known = self.get(row.order_id)
        if known is not None:
            known.row, known.phase, known.deadline = row, phase, deadline
            known.next_try, known.held = -math.inf, False
            return known
        self._places += 1
        entry = self[row.order_id] = QueuedOrder(row, self._places, phase, deadline)
        return entry

    def any_for_pos(self) -> bool:
        """Return whether any order waits to be written or withdrawn."""
        return any(each.phase is not Phase.CONFIRM and not each.held for each in self.values())

    def hold_all(self, until: float) -> None:
        """Try nothing before `until`: the POS is offline."""
        self._pos_from = until
        self.pos_failures += 1

    def pos_answered(self) -> None:
        """Try orders as they come again: the POS has just answered."""
        if self.pos_failures:
            self.try_again()
            self.pos_failures = 0
            for each in self.values():
                if each.offline:
                    each.failures, each.offline = 0, False

    def try_again(self) -> None:
        """Let what failed because the POS was offline be tried at once, the least tried first."""
        self._pos_from = -math.inf
        for each in self.values():
            if each.offline:
                each.next_try = -math.inf

    def next(self, now: float, *, pos_there: bool) -> tuple[QueuedOrder | None, float]:
        """Return the order of which something is to be done now, and when the first is due.

        In monotonic seconds, infinity where nothing waits.
        """
        pos_from = self._pos_from if pos_there else math.inf
        dues = [(each.due(pos_from), each) for each in self.values()]
        ready = [each for due, each in dues if due <= now]
        least_tried = bool(self.pos_failures)
        chosen = min(
            ready, key=lambda each: (each.failures if least_tried else 0, each.place), default=None
        )
        return chosen, min((due for due, _each in dues), default=math.inf)
