"""Who calls the service next, when not all may: orders first.

A 429 closes the gate for every store of the bridge until Retry-After has passed (on the monotonic
clock). Then one waiting call goes alone, as a probe, the most urgent first; once the service has
answered it, the rest follow in order. A few places are kept free for orders at all times.
"""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

from tillbridge.core.errors import RateLimited
from tillbridge.core.i18n import _


class GateClosed(RateLimited):
    """The gate did not open in time; the call was not made."""


class Priority(IntEnum):
    """How urgent a call is; a lower number goes first."""

    ORDERS = 0
    AVAILABILITY = 1
    STORE = 2
    MENU = 3
    POLL = 4


class Passage:
    """A call's way through the gate; it reports what the service said."""

    __slots__ = ("_gate", "_round")

    def __init__(self, gate: "Gate", of_round: int) -> None:
        self._gate = gate
        self._round = of_round

    def limited(self, retry_after_s: float) -> None:
        """Close the gate: the service answered 429."""
        self._gate._close(retry_after_s)  # noqa: SLF001 -- the two are one thing

    def answered(self) -> None:
        """Take note that the service answered, and not with a 429."""
        self._gate._answered(self._round)  # noqa: SLF001 -- the two are one thing


class Gate:
    """The one way to a service, for all stores. `kept_for_orders` places are never lent."""

    def __init__(self, *, places: int = 8, kept_for_orders: int = 2) -> None:
        self._places = places
        self._lent = max(1, places - kept_for_orders)
        self._inside = 0
        self._queue: list[tuple[Priority, int, asyncio.Future[int]]] = []
        self._numbers = itertools.count()
        self._closed_until = 0.0
        self._round = 0  # counts the closings: an answer to an older call opens nothing
        self._probing = False
        self._timer: asyncio.TimerHandle | None = None

    def closed_for_s(self) -> float:
        """Return for how many more seconds the service wants no calls."""
        return max(0.0, self._closed_until - asyncio.get_running_loop().time())

    @asynccontextmanager
    async def passage(self, priority: Priority, *, patience_s: float) -> AsyncIterator[Passage]:
        """Wait for one's turn, for at most `patience_s`; then raises GateClosed."""
        closed_for = self.closed_for_s()
        if closed_for > patience_s:
            raise _limited(closed_for)
        of_round = await self._turn(priority, patience_s)
        try:
            yield Passage(self, of_round)
        finally:
            self._inside -= 1
            self._admit()

    async def _turn(self, priority: Priority, patience_s: float) -> int:
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (priority, next(self._numbers), turn))
        self._admit()
        try:
            async with asyncio.timeout(patience_s):
                return await turn
        except BaseException as trouble:
            if turn.done() and not turn.cancelled():  # the turn came just then: hand it on
                self._inside -= 1
            turn.cancel()
            self._admit()
            if isinstance(trouble, TimeoutError):
                raise _limited(self.closed_for_s()) from None
            raise

    def _admit(self) -> None:
        """Let in whoever may go now, and set the timer for the rest."""
        closed_for = self.closed_for_s()
        while self._queue:
            priority, _number, turn = self._queue[0]
            if turn.done():  # gave up meanwhile
                heapq.heappop(self._queue)
                continue
            if closed_for > 0:
                self._wake_after(closed_for)
                return
            if self._inside >= self._room(priority):
                return
            heapq.heappop(self._queue)
            self._inside += 1
            turn.set_result(self._round)

    def _room(self, priority: Priority) -> int:
        if self._probing:
            return 1
        return self._places if priority is Priority.ORDERS else self._lent

    def _wake_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._admit)

    def _close(self, retry_after_s: float) -> None:
        until = asyncio.get_running_loop().time() + retry_after_s
        self._closed_until = max(self._closed_until, until)
        self._probing = True
        self._round += 1

    def _answered(self, of_round: int) -> None:
        if of_round == self._round and self._probing:
            self._probing = False
            self._admit()


def _limited(seconds: float) -> GateClosed:
    return GateClosed(
        _("The ordering service wants no more calls for now."), retry_after_s=max(seconds, 1.0)
    )
