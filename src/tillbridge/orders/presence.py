"""Whether the POS is there: it is probed from time to time, and writes that fail show it too."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tillbridge.adapter import Advice, Health, PosFailure, PosOffline
from tillbridge.core.context import StoreContext
from tillbridge.core.i18n import joined
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.core.worker import Worker
from tillbridge.ledger.facts import put_fact
from tillbridge.orders import events
from tillbridge.orders.repository import OrderRepository

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices

log = get_logger()

_NEWS_EVERY_S = 30.0  # a POS that is away may say so in other words with each probe


class PosPresence:
    """Knows whether the POS is online, and reports each change once.

    A failed write counts as offline although the probe is good (the folder is gone, the till
    touches its heartbeat): then it is online again once a write works or nothing waits to be
    written, and every good probe is an occasion to try (`on_there`).
    """

    def __init__(
        self, context: StoreContext, repository: OrderRepository, effects: "StoreServices"
    ) -> None:
        self._orders = repository
        self._pos = context.pos.orders
        self._every_s = context.settings.pos.health_s
        self._effects = effects
        self.worker = Worker("presence", self._step, repository.supervisor, repository.clock)
        self.anything_to_write: Callable[[], bool] = lambda: True
        self.on_there: Callable[[], None] = lambda: None
        self.probe_ok = True  # the last probe was: only then is there a point in trying to write
        self.seen_at: int | None = None  # when the POS was last there (ms); None: not since start
        self.took_ms: int | None = None  # the last probe that found it there
        self._writes_ok = True
        self._refused = Health(online=False)  # why the last write failed
        self._reported: Health | None = None
        self._reported_at = 0.0  # monotonic
        self._since_ms = 0
        # None: before the restart something else may have been reported.
        self._closed: str | None = None
        self._advice: tuple[Advice, ...] | None = None

    @property
    def online(self) -> bool:
        """Whether the POS can be reached, as far as is known."""
        return self.probe_ok and self._writes_ok

    async def _step(self) -> float:
        await self.probe()
        return self._every_s

    async def probe(self) -> None:
        """Ask the POS whether it is there, and report what has changed."""
        began = self._orders.clock.monotonic()
        health = await self._pos.health()
        self.probe_ok = health.online
        if health.online:
            self.took_ms = round((self._orders.clock.monotonic() - began) * 1000)
            self.seen_at = self._orders.clock.now_ms()
            self._writes_ok = self._writes_ok or not self.anything_to_write()
        await self._report(health)
        if not health.online:
            return
        # What a POS that answers says of itself.
        if health.closed != self._closed:
            self._closed = health.closed
            event = "pos.closed" if health.closed else "pos.open"
            log.info(event, store=self._orders.store, detail=health.closed)
            self._effects.pos_pause.pos_closed(health.closed)
        if health.advice != self._advice:
            self._advice = health.advice
            detail = {
                "detail": joined(" ", [each.text for each in health.advice]),
                "remedy": joined(" ", [each.fix for each in health.advice]),
            }
            found = [Found("pos.setup", detail=detail)] if health.advice else []
            self._orders.report("pos.setup", *found)
        self.on_there()

    async def cancelled(self, cancel: events.CancelRequested) -> None:
        """Bring about elsewhere what follows from a cancel.

        Called before the cancel is committed: after a crash between the two the POS refuses again,
        and it is brought about twice rather than never.
        """
        if cancel.items_out:
            await self._effects.items_out(cancel.items_out)
        if cancel.price_mismatch:
            self._effects.menu.resync()
        if cancel.pos_offline:
            await self.write_failed(PosOffline(cancel.message))
        if cancel.lost_to_absence:
            self._effects.pos_pause.order_lost()

    async def write_failed(self, failure: PosFailure) -> None:
        """Record that the POS could not be reached for a write."""
        if self._writes_ok or failure.fix or not self._refused.fix:
            self._refused = Health(online=False, detail=failure.message, fix=failure.fix)
        self._writes_ok = False
        await self._report(self._refused)

    async def write_worked(self) -> None:
        """Record that the POS has just accepted, found or refused a ticket."""
        self._writes_ok = True
        if self.probe_ok and not (self._reported and self._reported.online):
            await self._report(Health(online=True))

    async def _report(self, health: Health) -> None:
        """Report whether the POS is away; the remedy is the one that the failure brought along."""
        if health.online and not self._writes_ok:
            health = self._refused  # the probe is good, and what was tried last was not
        clock, before = self._orders.clock, self._reported
        turned = before is None or before.online is not self.online
        if before is not None and not turned:
            same = self.online or (before.detail, before.fix) == (health.detail, health.fix)
            recent = clock.monotonic() - self._reported_at < _NEWS_EVERY_S
            if same or (before.fix == health.fix and recent):
                return
        self._reported = replace(health, online=self.online)
        self._reported_at = clock.monotonic()
        detail = {"detail": health.detail or "?"} | ({"remedy": health.fix} if health.fix else {})
        away = [] if self.online else [Found("pos.offline", detail=detail)]
        self._orders.report("pos.offline", *away)
        if turned:
            self._since_ms = clock.now_ms()
            if not self.online:
                log.warning("pos.offline", store=self._orders.store, detail=health.detail)
            elif before is not None:
                log.info("pos.online", store=self._orders.store)
            self._effects.pos_pause.pos_changed(online=self.online)
        fact = {"online": self.online, "since_ms": self._since_ms, "detail": health.detail}
        await self._orders.write(put_fact, "pos_health", fact, at=clock.now_ms())
