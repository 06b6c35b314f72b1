"""The bridge's pulse: the service manager hears of it as long as everything gets on.

It beats in the event loop, so a loop that hangs tells nothing. Beside that it looks at what the
loop alone does not show: a writer whose thread is stuck in the disk, an inbox that nobody takes up,
timers that do not come round. A disk that refuses is no reason: the bridge goes on without it, and
a new start would find the same disk.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tillbridge.core.log import get_logger
from tillbridge.daemon.service_manager import ServiceManager

log = get_logger()

_BEATS = 3  # within the watchdog's time: one that comes late or is lost ends nothing


@dataclass(frozen=True, slots=True)
class Sign:
    """Something that has to get on: since when (monotonic, s) it is at one thing, None if idle."""

    what: str
    busy_since: float | None
    patience_s: float


def stuck(signs: Iterable[Sign], now: float) -> tuple[str, ...]:
    """Return what has been at one thing for longer than it may be."""
    return tuple(
        sign.what
        for sign in signs
        if sign.busy_since is not None and now - sign.busy_since > sign.patience_s
    )


class Pulse:
    """Tells `manager` that the bridge is alive; `signs` are looked at before each time."""

    def __init__(
        self,
        manager: ServiceManager,
        signs: Callable[[], Sequence[Sign]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager = manager
        self._signs = signs
        self._clock = clock
        self._stuck: tuple[str, ...] = ()

    async def run(self, watchdog_s: float) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(watchdog_s / _BEATS)

    def beat(self) -> None:
        """Look, and tell. What is stuck is logged once: its silence is what ends the bridge."""
        found = stuck(self._signs(), self._clock())
        if found != self._stuck:
            self._stuck = found
            if found:
                log.error("bridge.stuck", what=found)
                self._manager.status("Stuck: " + ", ".join(found))
            else:
                log.info("bridge.moves_again")
        if not found:
            self._manager.alive()
