"""Pausing a store while its POS is away.

A store is paused after the POS has been offline for `pause_after_s`, or at once when an order was
cancelled because of it: the next customer shall not meet the same. It is resumed once the POS has
been back for `resume_after_s`, only if it was the bridge that paused it. A POS that comes and goes
does not make the storefront blink: after `max_pauses_per_hour` pauses it must be steady for 10
minutes. Deciding is pure; `reconciler` stores the decision and sends it.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.supervision import Supervisor
from tillbridge.core.worker import Worker
from tillbridge.stores.reconciler import StoreStatusReconciler

STEADY_S = 600.0
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class PauseRules:
    """The settings of [stores.NAME.orders]; `pause_after_s` 0 never pauses."""

    pause_after_s: float = 30.0
    resume_after_s: float = 5.0
    max_pauses_per_hour: int = 4


def decide_pause(
    now: float,
    *,
    online: bool,
    since: float,
    paused_by_bridge: bool,
    pauses: Sequence[float],
    rules: PauseRules,
    order_lost: bool = False,
) -> Literal["pause", "resume"] | None:
    """Return what to do at `now` (None: nothing), the POS being online (or not) since `since`.

    `pauses` are the instants of earlier pauses; all instants in seconds on one monotonic clock.
    `order_lost` says that an order was cancelled since then because the POS was away.
    """
    steady_s = now - since
    if not online:
        long = order_lost or steady_s >= rules.pause_after_s
        due = rules.pause_after_s > 0 and long
        return "pause" if due and not paused_by_bridge else None
    if not paused_by_bridge:
        return None
    unsteady = is_unsteady(now, pauses, rules)
    needed_s = max(STEADY_S, rules.resume_after_s) if unsteady else rules.resume_after_s
    return "resume" if steady_s >= needed_s else None


def is_unsteady(now: float, pauses: Sequence[float], rules: PauseRules) -> bool:
    """Return whether the POS has come and gone so often that it must be steady for a while."""
    return sum(1 for at in pauses if now - at < _HOUR_S) >= rules.max_pauses_per_hour


_LOOK_EVERY_S = 1.0
_UNSTEADY = _("the till comes and goes; it has to stay for 10 minutes first")


class PosPause:
    """Watches how one store's POS is: at each change, and every second while it matters."""

    def __init__(
        self,
        reconciler: StoreStatusReconciler,
        *,
        supervisor: Supervisor,
        clock: Clock,
        rules: PauseRules,
    ) -> None:
        self._reconciler = reconciler
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
        LedgerError where the intent cannot be kept; a service that fails is tried again later.
        """
        async with self._lock:
            if online:
                await self._reconciler.pos_closed(closed if self._rules.pause_after_s > 0 else "")
            now = self._clock.monotonic()
            if online != self._online:
                self._online, self._since = online, now
            if online:
                self._order_lost = False
            paused = await self._act(now)
            return paused or not online

    async def _act(self, now: float) -> bool:
        """Return whether the store is still paused."""
        paused = await self._reconciler.is_paused_for_pos()
        decision = decide_pause(
            now,
            online=bool(self._online),
            since=self._since,
            paused_by_bridge=paused,
            pauses=self._pauses,
            rules=self._rules,
            order_lost=self._order_lost,
        )
        if decision == "pause":
            await self._reconciler.pos_away(by="cancel" if self._order_lost else "bridge")
            self._pauses.append(now)
        elif decision == "resume":
            await self._reconciler.pos_back()
        elif paused:
            unsteady = self._online and is_unsteady(now, self._pauses, self._rules)
            await self._reconciler.pos_returning(_UNSTEADY if unsteady else "")
        return await self._reconciler.is_paused_for_pos()
