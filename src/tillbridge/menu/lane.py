"""When a lane of the flow runs: wishes are gathered, at most one round runs and one waits."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Never

from tillbridge.core.clock import Clock
from tillbridge.core.supervision import Supervisor

_NEVER = float("inf")
LONGEST_BACKOFF_S = 15.0  # so soon after a service is back somebody notices, and all go on
LONGEST_SLEEP_S = 30.0  # an end told by the wall clock is looked at again, in case that was set


class Lane:
    """Wakes a loop: at once, after a while, or at an instant. Used from the event loop."""

    def __init__(self, clock: Clock, *, cap_s: float = LONGEST_BACKOFF_S) -> None:
        self._clock = clock
        self._cap_s = cap_s
        self._poked = asyncio.Event()
        self._due: float | None = None  # monotonic
        self._until: int | None = None  # wall clock, ms
        self._failures = 0

    def poke(self) -> None:
        """Ask for a round as soon as may be."""
        self._poked.set()

    def poke_in(self, seconds: float) -> None:
        """Ask for a round after `seconds`, unless one comes before."""
        due = self._clock.monotonic() + seconds
        self._due = due if self._due is None else min(self._due, due)

    def poke_at(self, at_ms: int | None) -> None:
        """Ask for a round at that instant, in place of another instant; None for none."""
        self._until = at_ms

    def failed(self) -> None:
        """Ask for another try: soon at first, later each time (full jitter, capped)."""
        bound = min(self._cap_s, 2.0 ** min(self._failures, 16))
        self._failures += 1
        self.poke_in(bound * (0.5 + random.random() / 2))  # noqa: S311 -- jitter is no secret

    def worked(self) -> None:
        """The next failure is a first one again."""
        self._failures = 0

    async def run(
        self, step: str, supervisor: Supervisor, work: Callable[[], Awaitable[object]]
    ) -> Never:
        """Do `work` whenever it is due, for ever; what fails unexpectedly is tried again later."""
        while True:
            await self.wait()
            if not await supervisor.attempt(step, work):
                self.failed()

    async def wait(self) -> None:
        """Return when a round is due; wishes made from then on are for the next one."""
        while not self._poked.is_set() and (left := self._left()) > 0:
            patience = None if left == _NEVER else min(left, LONGEST_SLEEP_S)
            try:
                async with asyncio.timeout(patience):
                    await self._poked.wait()
            except TimeoutError:
                continue
        self._poked.clear()
        self._due = None
        if self._until is not None and self._until <= self._clock.now_ms():
            self._until = None

    def _left(self) -> float:
        """Return how many seconds are left; infinity where nothing is asked for."""
        left = _NEVER
        if self._due is not None:
            left = self._due - self._clock.monotonic()
        if self._until is not None:
            left = min(left, (self._until - self._clock.now_ms()) / 1000)
        return left
