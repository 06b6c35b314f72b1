"""The sandbox's own time: it can run fast, stand still, or be moved forward.

Everything the service does later (tokens, jobs, snoozes, retries) reads this clock, so that seven
days of consent or six hours between two deliveries pass in a test within a moment.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime


def as_timestamp(at_ms: int) -> str:
    """An instant as the specification writes it: ISO 8601, UTC, with milliseconds."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 instant.

    Raises `ValueError` for anything else, and for an instant without a zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the instant has no time zone")
    return round(moment.timestamp() * 1000)


class Timer:
    """A callback that waits for an instant of the sandbox's clock."""

    __slots__ = ("at_ms", "callback", "cancelled")

    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Do not call back."""
        self.cancelled = True


class Clock:
    """Sandbox time in ms since the epoch, `speed` times as fast as real time; 0 stands still."""

    def __init__(self, speed: float = 1.0, start_ms: int | None = None) -> None:
        self._speed = speed
        self._base_ms = float(start_ms if start_ms is not None else time.time_ns() // 1_000_000)
        self._base_real = time.monotonic()
        self._timers: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._wakeup: asyncio.TimerHandle | None = None

    @property
    def speed(self) -> float:
        """How many seconds pass in one real second."""
        return self._speed

    @property
    def ahead_s(self) -> int:
        """How many seconds it is ahead of this machine's clock."""
        return round((self.now_ms() - time.time_ns() // 1_000_000) / 1000)

    def now_ms(self) -> int:
        """The instant, in milliseconds since the epoch."""
        return int(self._base_ms + (time.monotonic() - self._base_real) * 1000 * self._speed)

    def timestamp(self) -> str:
        """The instant as the specification writes it."""
        return as_timestamp(self.now_ms())

    def run_at(self, speed: float) -> None:
        """Change the speed from now on; what already waits is moved with it."""
        if speed < 0:
            raise ValueError("the clock does not run backwards")
        self._rebase()
        self._speed = speed
        self._arm()

    def jump(self, seconds: float) -> None:
        """Move the clock forward; everything that has come due fires."""
        if seconds < 0:
            raise ValueError("the clock does not run backwards")
        self._rebase()
        self._base_ms += seconds * 1000
        self._arm()

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back, on the event loop, once the clock has reached `at_ms`."""
        timer = Timer(at_ms, callback)
        heapq.heappush(self._timers, (at_ms, next(self._order), timer))
        self._arm()
        return timer

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """As `call_at`, so many seconds from now."""
        return self.call_at(self.now_ms() + round(seconds * 1000), callback)

    def stop(self) -> None:
        """Forget every timer."""
        self._timers.clear()
        self._disarm()

    def _rebase(self) -> None:
        real = time.monotonic()
        self._base_ms += (real - self._base_real) * 1000 * self._speed
        self._base_real = real

    def _disarm(self) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None

    def _arm(self) -> None:
        self._disarm()
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        if not self._timers:
            return
        wait_ms = self._timers[0][0] - self.now_ms()
        if wait_ms > 0 and self._speed == 0:
            return
        delay_s = wait_ms / 1000 / self._speed if wait_ms > 0 else 0.0
        self._wakeup = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._wakeup = None
        loop = asyncio.get_running_loop()
        now = self.now_ms()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled:
                # By way of the loop, so that one callback that fails does not stop the others.
                loop.call_soon(timer.callback)
        self._arm()
