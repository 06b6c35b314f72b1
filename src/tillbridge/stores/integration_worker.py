"""Drives a store's integration keeper: at the start, now and then, and when something happened."""

from collections.abc import Awaitable, Callable

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError, ConsentLost, LedgerError, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker
from tillbridge.service.tokens import TokenKeeper
from tillbridge.stores.integration_keeper import IntegrationKeeper

log = get_logger()

_FIRST_WAIT_S = 1.0
_HURRY_S = 0.1
_LONGEST_WAIT_S = 60.0  # while something is wrong


class IntegrationWorker:
    """Looks every `check_s` seconds while all is well, and sooner while it is not.

    `after_round` is awaited after each round that came to its end.
    """

    def __init__(
        self,
        context: StoreContext,
        keeper: IntegrationKeeper,
        tokens: TokenKeeper,
        *,
        check_s: float,
        after_round: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = context.store
        self._keeper = keeper
        self._tokens = tokens
        self._check_s = check_s
        self._after_round = after_round
        self._failed_with = ""
        self._requested = False
        self._hurried = 0  # rounds in a row that somebody asked for
        self._wait_s = _FIRST_WAIT_S
        clock = context.bridge.clock
        self.worker = Worker("integration", self._step, context.supervisor, clock)
        self.worker.wake()

    def look(self) -> None:
        """Look soon: a call was refused, the service is back, or a person has done something."""
        if not self._requested:
            self._requested = True
            # A service that says one thing here and another there must not make this one spin.
            self.worker.wake_in(min(_LONGEST_WAIT_S, _HURRY_S * 2**self._hurried))

    async def _step(self) -> float:
        """Do a round, and return in how many seconds the next one is due.

        A store that was never connected has no tokens: nothing is asked until it is.
        """
        self._hurried = min(self._hurried + 1, 16) if self._requested else 0
        self._requested = False
        if await self._round():
            self._wait_s = _FIRST_WAIT_S
            return self._check_s
        wait_s, self._wait_s = self._wait_s, min(_LONGEST_WAIT_S, self._wait_s * 2)
        return min(self._check_s, wait_s)

    async def _round(self) -> bool:
        if await self._tokens.tokens() is None:
            return False
        try:
            well = await self._keeper.round()
            await self._after_round()
        except (ConsentLost, LedgerError, ServiceError) as failure:
            log.debug("integration.not_read", store=self._store, detail=failure.text)
            return False
        except BridgeError as failure:  # a person has to decide: which of several stores
            if str(failure) != self._failed_with:
                self._failed_with = str(failure)
                log.warning("integration.not_read", store=self._store, detail=str(failure))
            return False
        self._failed_with = ""
        return well
