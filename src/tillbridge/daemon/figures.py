"""The orders' figures, not counted at every change: a hundredth of the time may go into it."""

from collections.abc import Mapping

from tillbridge.daemon.rooms import House
from tillbridge.ledger.snapshot import StoreFigures, take_figures

_LEAST_S, _MOST_S = 1.0, 60.0
_TIMES_AS_LONG = 100  # as counting took, they stay as they are


class CountedFigures:
    """The figures by store, from the ledger. Used from the event loop."""

    def __init__(self, house: House) -> None:
        self._ledger = house.ledger
        self._clock = house.clock
        self._counted: Mapping[str, StoreFigures] = {}
        self._fresh_until = float("-inf")

    async def figures(self) -> Mapping[str, StoreFigures]:
        """Return them as they are, or were a little while ago: a minute at most."""
        began = self._clock.monotonic()
        if began >= self._fresh_until:
            now_ms = self._clock.now_ms()
            self._counted = await self._ledger.read(
                lambda connection: take_figures(connection, now_ms)
            )
            ended = self._clock.monotonic()
            stays_s = min(_MOST_S, max(_LEAST_S, (ended - began) * _TIMES_AS_LONG))
            self._fresh_until = ended + stays_s
        return self._counted
