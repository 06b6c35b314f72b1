"""Pauses a store while its till is away or closed, and resumes it when the till is back."""

import asyncio
from collections import deque

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.worker import Worker
from tillbridge.stores.closure import decide_pause, is_unsteady
from tillbridge.stores.reconciler import StoreStatusReconciler

_LOOK_EVERY_S = 1.0
_UNSTEADY = _("the connection to the till is unstable; it has to be steady for 10 minutes first")


class PosPause:
    """Watches one store's POS: at each change, and every second while it matters."""

    def __init__(self, reconciler: StoreStatusReconciler) -> None:
        context = reconciler.context
        self._reconciler = reconciler
        self._clock = context.bridge.clock
        self._settings = context.settings.orders
        self._online: bool | None = None  # as of the last step
        self._since = 0.0
        self._order_lost = False
        self._pauses: deque[float] = deque(maxlen=100)
        self._lock = asyncio.Lock()
        self._pos_online = True
        self._pos_closed = ""
        self.worker = Worker("pos_pause", self._step, context.supervisor, self._clock)

    def pos_is_back(self) -> None:
        """The POS can be reached."""
        self._pos_online = True
        self.worker.wake()

    def pos_is_away(self) -> None:
        """The POS cannot be reached."""
        self._pos_online = False
        self.worker.wake()

    def pos_closed(self, why: str) -> None:
        """The POS takes no orders, because of `why`; "" if it takes them."""
        self._pos_closed = why
        self.worker.wake()

    def order_lost(self) -> None:
        """An order was cancelled because the POS cannot be reached."""
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
            waits = True  # the intent could not be stored, so nothing was sent: try again later
        return _LOOK_EVERY_S if waits else None

    async def pos_is(self, *, online: bool, closed: str = "") -> bool:
        """Record the state of the POS, and pause or resume the store if it is time.

        `closed` says why a reachable POS takes no orders, "" if it takes them. Returns whether to
        call again in a while. Raises LedgerError if the intent cannot be stored; a failing service
        is retried later.
        """
        async with self._lock:
            if online:
                await self._reconciler.pos_closed(
                    closed if self._settings.pause_after_s > 0 else ""
                )
            now = self._clock.monotonic()
            if online != self._online:
                self._online, self._since = online, now
            if online:
                self._order_lost = False
            return await self._act(now) or not online

    async def _act(self, now: float) -> bool:
        """Return whether the store is still paused."""
        paused = await self._reconciler.is_paused_for_pos()
        decision = decide_pause(
            now,
            online=bool(self._online),
            since=self._since,
            paused_by_bridge=paused,
            pauses=self._pauses,
            settings=self._settings,
            order_lost=self._order_lost,
        )
        if decision == "pause":
            await self._reconciler.pos_away(by="cancel" if self._order_lost else "bridge")
            self._pauses.append(now)
        elif decision == "resume":
            await self._reconciler.pos_back()
        elif paused:
            unsteady = self._online and is_unsteady(now, self._pauses, self._settings)
            await self._reconciler.pos_returning(_UNSTEADY if unsteady else "")
        return await self._reconciler.is_paused_for_pos()
