"""Pausing and resuming a store at the service, as `pause` decides.

What is wanted is written down before the service is told, so that neither a crash nor a service
that is away makes the bridge forget that it was the one who paused the store.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from tillbridge.clock import Clock
from tillbridge.errors import ServiceError
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.log import get_logger
from tillbridge.service.client import ServiceClient
from tillbridge.stores.pause import Pause, PauseRules, Resume, decide_pause

_AGAIN_S = 15.0  # between two tries to tell a service that is away

log = get_logger()


class StorePauser:
    """Keeps one store paused while its POS is away. `service_store_id` is None until integrated."""

    def __init__(
        self,
        store: str,
        client: ServiceClient,
        service_store_id: Callable[[], str | None],
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
        rules: PauseRules,
    ) -> None:
        self._store = store
        self._client = client
        self._service_store_id = service_store_id
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._rules = rules
        self._online: bool | None = None
        self._since = 0.0
        self._order_lost = False
        self._paused: bool | None = None  # None: the ledger has not been asked yet
        self._untold = False
        self._pauses: deque[float] = deque(maxlen=100)
        self._not_before = 0.0
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
            await self._act(now)
            return not online or bool(self._paused)

    async def _act(self, now: float) -> None:
        store_id = self._service_store_id()
        if store_id is None:
            return
        if self._paused is None:
            await self._recall()
        decision = decide_pause(
            now,
            online=bool(self._online),
            since=self._since,
            paused_by_bridge=bool(self._paused),
            pauses=self._pauses,
            rules=self._rules,
            order_lost=self._order_lost,
        )
        tell_again = self._untold and not self._online
        if now < self._not_before or not (tell_again or isinstance(decision, Pause | Resume)):
            return
        try:
            if isinstance(decision, Resume):
                await self._resume(store_id)
            else:
                await self._pause(store_id, now)
        except ServiceError as failure:
            self._not_before = self._clock.monotonic() + _AGAIN_S
            log.warning(
                "store.status_not_told", store=self._store, code=failure.code, detail=failure.text
            )

    async def _recall(self) -> None:
        fact = await self._ledger.read(lambda db: get_fact(db, self._store, "pause"))
        self._paused = fact is not None
        self._untold = fact is not None and not fact.get("told", False)

    async def _pause(self, store_id: str, now: float) -> None:
        if not self._paused:
            if await self._closed_by_others(store_id):
                self._not_before = now + _AGAIN_S
                return
            await self._note(told=False)
            self._paused, self._untold = True, True
            self._pauses.append(now)
        await self._client.set_store_status(store_id, "inactive")
        await self._note(told=True)
        self._untold = False
        self._desk.open("store.paused", self._store)
        log.warning("store.paused", store=self._store)

    async def _resume(self, store_id: str) -> None:
        await self._client.set_store_status(store_id, "active")
        await self._ledger.write(lambda db: drop_fact(db, self._store, "pause"))
        self._paused = self._untold = False
        self._desk.close("store.paused", self._store)
        log.info("store.resumed", store=self._store)

    async def _closed_by_others(self, store_id: str) -> bool:
        """Whether the merchant has closed the store: then it is not ours to open again."""
        stores = {store.store_id: store for store in await self._client.stores()}
        return store_id in stores and stores[store_id].status == "inactive"

    async def _note(self, *, told: bool) -> None:
        at = self._clock.now_ms()

        fact = {"by": "bridge", "since_ms": at, "told": told}
        await self._ledger.write(lambda db: put_fact(db, self._store, "pause", fact, at=at))
