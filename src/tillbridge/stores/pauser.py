"""Pausing a store while its POS is away, as `pause` decides; `keeper` keeps and tells it."""

import asyncio
from collections import deque

from tillbridge.clock import Clock
from tillbridge.stores.keeper import StoreKeeper
from tillbridge.stores.pause import Pause, PauseRules, Resume, decide_pause


class StorePauser:
    """Watches how one store's POS is."""

    def __init__(self, keeper: StoreKeeper, *, clock: Clock, rules: PauseRules) -> None:
        self._keeper = keeper
        self._clock = clock
        self._rules = rules
        self._online: bool | None = None
        self._since = 0.0
        self._order_lost = False
        self._pauses: deque[float] = deque(maxlen=100)
        self._lock = asyncio.Lock()

    def order_lost(self) -> None:
        """Take note that an order was cancelled because the POS is away; `pos_is` acts on it."""
        self._order_lost = True

    async def pos_is(self, *, online: bool) -> bool:
        """Take note of how the POS is, and pause or resume the store if it is time.

        Returns whether to call again in a while: there is something to wait for. Raises
        LedgerError where the intent cannot be kept; a service that fails is told again later.
        """
        async with self._lock:
            now = self._clock.monotonic()
            if online != self._online:
                self._online, self._since = online, now
            if online:
                self._order_lost = False
            paused = await self._act(now)
            return paused or not online

    async def _act(self, now: float) -> bool:
        """Return whether the store is still paused."""
        paused = await self._keeper.is_paused_for_pos()
        decision = decide_pause(
            now,
            online=bool(self._online),
            since=self._since,
            paused_by_bridge=paused,
            pauses=self._pauses,
            rules=self._rules,
            order_lost=self._order_lost,
        )
        if isinstance(decision, Pause):
            await self._keeper.pos_away(told_by="cancel" if self._order_lost else "bridge")
            self._pauses.append(now)
        elif isinstance(decision, Resume):
            await self._keeper.pos_back()
        return await self._keeper.is_paused_for_pos()
