"""What happens because something happened is done by a worker: woken, it takes its next step."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Never

from tillbridge.core.clock import Clock
from tillbridge.core.supervision import Supervisor, backoff_s

Step = Callable[[], Awaitable[float | None]]
"""Does what there is to do; it may return in how many seconds it is due again, woken or not."""

_NEVER = float("inf")
_LONGEST_SLEEP_S = 30.0  # an end given by the wall clock is looked at again, in case that was set
_CRASH_PAUSE_S = 15.0  # at most so long does a step that raised ignore who wakes the worker


class Worker:
    """Takes `step` whenever it is woken, and never twice at a time. Used from the event loop.

    A step that raises is reported to the supervisor and taken again with back-off. What wakes the
    worker while it works counts for the next step.
    """

    def __init__(self, name: str, step: Step, supervisor: Supervisor, clock: Clock) -> None:
        self.name = name
        self._step = step
        self._supervisor = supervisor
        self._clock = clock
        self._stirred = asyncio.Event()
        self._woken = False
        self._due = _NEVER  # monotonic
        self._due_at_ms: int | None = None  # wall clock
        self._not_before = -_NEVER  # monotonic
        self._crashes = 0
        self._failures = 0
        # Since when (monotonic, s) the step that is being taken goes on; None: it waits.
        self.busy_since: float | None = None

    def wake(self) -> None:
        """Take a step as soon as may be."""
        self._woken = True
        self._stirred.set()

    def wake_in(self, seconds: float) -> None:
        """Take a step after so many seconds, unless one is taken before."""
        self._due = min(self._due, self._clock.monotonic() + seconds)
        self._stirred.set()

    def wake_at(self, at_ms: int | None) -> None:
        """Take a step at that instant, in place of another instant; None for none."""
        self._due_at_ms = at_ms
        self._stirred.set()

    def back_off(self, cap_s: float) -> float:
        """Return how long to wait after an expected failure: longer each time, with jitter."""
        bound = min(cap_s, 2.0 ** min(self._failures, 16))
        self._failures += 1
        return bound * (0.5 + random.random() / 2)  # noqa: S311 -- jitter is no secret

    def succeeded(self) -> None:
        """The next expected failure is a first one again."""
        self._failures = 0

    async def run(self) -> Never:
        """Work until cancelled."""
        while True:
            await self.until_due()
            await self._take_step()

    async def until_due(self) -> None:
        """Return when a step is due; what wakes the worker from then on is for the next one."""
        while (left := self._left()) > 0:
            self._stirred.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if left == _NEVER else min(left, _LONGEST_SLEEP_S)):
                    await self._stirred.wait()
        self._woken = False
        self._due = _NEVER
        if self._due_at_ms is not None and self._due_at_ms <= self._clock.now_ms():
            self._due_at_ms = None

    async def _take_step(self) -> None:
        self.busy_since = self._clock.monotonic()
        try:
            again_s = await self._step()
        except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
            self._supervisor.failed(self.name, failure)
            self._crashes += 1
            again_s = backoff_s(self._crashes)
            self._not_before = self._clock.monotonic() + min(again_s, _CRASH_PAUSE_S)
        else:
            self._supervisor.works(self.name)
            self._crashes = 0
        finally:
            self.busy_since = None
        if again_s is not None:
            self.wake_in(again_s)

    def _left(self) -> float:
        """Return how many seconds are left; infinity where no step is due."""
        now = self._clock.monotonic()
        left = 0.0 if self._woken else self._due - now
        if self._due_at_ms is not None:
            left = min(left, (self._due_at_ms - self._clock.now_ms()) / 1000)
        return max(left, self._not_before - now)
