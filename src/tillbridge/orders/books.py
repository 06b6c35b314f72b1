"""One store's part of the ledger, its problems, and the clock: what every worker here needs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.core.supervision import Supervisor
from tillbridge.core.tally import Tally
from tillbridge.ledger import orders
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.orders import OrderRow
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.orders.commit import commit
from tillbridge.orders.state import Change, Event

T = TypeVar("T")

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class StoreBooks:
    """The books of one store (`store` is its local name)."""

    store: str
    ledger: Ledger
    desk: ProblemDesk
    clock: Clock
    tally: Tally = field(default_factory=Tally)
    # Who takes the next work of an order from each change that was committed.
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; this is its own making.
        object.__setattr__(self, "supervisor", Supervisor(self.store, self.desk))

    async def keep(self, job: Callable[[Connection], T]) -> T:
        """Write `job`, again and again until it is committed; a full disk is only a matter of time.

        The ledger itself tells that it cannot be written. `job` may run several times, so it looks
        before it changes anything.
        """
        wait = _FIRST_WAIT_S
        while True:
            try:
                return await self.ledger.write(job)
            except LedgerUnwritable:
                await asyncio.sleep(wait)
                wait = min(_LONGEST_WAIT_S, wait * 2)

    async def commit(self, order_id: str, event: Event) -> Change | None:
        """Commit what `event` makes of the order; None where there is no such order.

        Returns once it is on disk and the listeners have taken the order's next work from it.
        """
        now_ms = self.clock.now_ms()
        change = await self.keep(
            lambda connection: commit(connection, self.store, order_id, event, now_ms)
        )
        if change is not None:
            for listener in self.listeners:
                listener(change)
        return change

    async def order(self, order_id: str) -> OrderRow | None:
        """Return the order as it is now."""
        return await self.ledger.read(
            lambda connection: orders.get_order(connection, self.store, order_id)
        )
