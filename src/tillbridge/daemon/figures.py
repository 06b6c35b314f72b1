"""The orders' figures, counted at most once a minute: a status is asked for at every change."""

from collections.abc import Mapping

from tillbridge.daemon.rooms import House
from tillbridge.ledger.figures import StoreFigures, take_figures

_FRESH_S = 60.0


class CountedFigures:
    """The figures by store, from the ledger. Used from the event loop."""

    def __init__(self, house: House) -> None:
        self._ledger = house.ledger
        self._clock = house.clock
        self._counted: Mapping[str, StoreFigures] = {}
        self._counted_at: float | None = None

    async def figures(self) -> Mapping[str, StoreFigures]:
        """Return them as they are, or were a minute ago."""
        now = self._clock.monotonic()
        if self._counted_at is None or now - self._counted_at >= _FRESH_S:
            now_ms = self._clock.now_ms()
            self._counted = await self._ledger.read(
                lambda connection: take_figures(connection, now_ms)
            )
            self._counted_at = now
        return self._counted
