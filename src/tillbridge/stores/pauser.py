"""Pausing a store while its POS is away, as `pause` decides; `keeper` keeps and tells it."""

import asyncio
from collections import deque

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.supervision import Supervisor
from tillbridge.core.worker import Worker
from tillbridge.stores.keeper import StoreKeeper
from tillbridge.stores.pause import Pause, PauseRules, Resume, decide_pause, is_unsteady

_LOOK_EVERY_S = 1.0
_UNSTEADY = _("the till comes and goes; it has to stay for 10 minutes first")


class StorePauser:
    """Watches how one store's POS is: at each change, and every second while it matters."""

    def __init__(
        self, keeper: StoreKeeper, *, supervisor: Supervisor, clock: Clock, rules: PauseRules
    ) -> None:
        self._keeper = keeper
        self._clock = clock
        self._rules = rules
        self._online: bool | None = None
        self._since = 0.0
        self._order_lost = False
        self._pauses: deque[float] = deque(maxlen=100)
        self._lock = asyncio.Lock()
        self._pos_online = True
        self._pos_closed = ""
        self.worker = Worker("pausing", self._step, supervisor, clock)

    def pos_came(self) -> None:
        """Take note that the POS can be reached."""
        self._pos_online = True
        self.worker.wake()

    def pos_went(self) -> None:
        """Take note that the POS cannot be reached."""
        self._pos_online = False
        self.worker.wake()

    def pos_closed(self, why: str) -> None:
        """Take note that the POS takes no orders, and why; "" where it takes them."""
        self._pos_closed = why
        self.worker.wake()

    def order_lost(self) -> None:
        """Take note that an order was cancelled because the POS cannot be reached."""
        self._order_lost = True
        self.worker.wake()

    async def opened_by_person(self) -> None:
        """Resume as soon as the POS is back, however often it has come and gone.

        Raises LedgerError.
        """
        async with self._lock:
            self._pauses.clear()
            if self._online is not None and await self._act(self._clock.monotonic()):
                self.worker.wake()

    async def _step(self) -> float | None:
        try:
            waits = await self.pos_is(online=self._pos_online, closed=self._pos_closed)
        except LedgerError:
            waits = True  # the intent could not be stored, so nothing was sent: again in a while
        return _LOOK_EVERY_S if waits else None

    async def pos_is(self, *, online: bool, closed: str = "") -> bool:
        """Take note of how the POS is, and pause or resume the store if it is time.

        `closed` says why a POS that is there takes no orders, "" where it takes them.
        Returns whether to call again in a while: there is something to wait for. Raises
        LedgerError where the intent cannot be kept; a service that fails is told again later.
        """
        async with self._lock:
            if online:
                await self._keeper.pos_closed(closed if self._rules.pause_after_s > 0 else "")
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
        elif paused:
            unsteady = self._online and is_unsteady(now, self._pauses, self._rules)
            await self._keeper.pos_returning(_UNSTEADY if unsteady else "")
        return await self._keeper.is_paused_for_pos()
