"""The one clock: instants by the wall, durations by the monotonic clock (invariant 11)."""

import time


class Clock:
    """The time. Tests pass one of their own."""

    def now_ms(self) -> int:
        """Return this instant, in milliseconds since the epoch. It may jump."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start; never jumps."""
        return time.monotonic()
