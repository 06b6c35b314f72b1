"""Rate limiting: off by default, because the specification shows no numbers."""

import math
from collections import deque

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.errors import ServiceError


class RateLimit:
    """At most `limit` calls in any `window_s` seconds of sandbox time, all callers together."""

    def __init__(self, clock: Clock, limit: int | None, window_s: float) -> None:
        self._clock = clock
        self._calls: deque[int] = deque()
        self.set(limit, window_s)

    def set(self, limit: int | None, window_s: float) -> None:
        """Another limit from now on; None is none."""
        self.limit = limit
        self.window_s = window_s
        self._calls.clear()

    def admit(self) -> None:
        """Count a call. Raises rate.limited with the seconds until there is room."""
        if self.limit is None:
            return
        now = self._clock.now_ms()
        window_ms = self.window_s * 1000
        while self._calls and self._calls[0] <= now - window_ms:
            self._calls.popleft()
        if len(self._calls) >= self.limit:
            wait_ms = (self._calls[0] + window_ms - now) if self._calls else window_ms
            raise ServiceError(
                "rate.limited",
                f"More than {self.limit} calls in {self.window_s:g} s; "
                "wait as long as Retry-After says",
                retry_after_s=max(1, math.ceil(wait_ms / 1000)),
            )
        self._calls.append(now)
