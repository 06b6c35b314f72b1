"""Drives a store's integration keeper: at the start, now and then, and when something happened."""

import asyncio
from collections.abc import Awaitable, Callable

from tillbridge.core.errors import BridgeError, ConsentLost, LedgerError, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.service.tokens import TokenKeeper
from tillbridge.stores.integration_keeper import IntegrationKeeper

log = get_logger()

_FIRST_WAIT_S = 1.0
_HURRY_S = 0.1
_LONGEST_WAIT_S = 60.0  # while something is wrong


class Integrating:
    """Looks every `check_s` seconds while all is well, and sooner while it is not."""

    def __init__(
        self, store: str, keeper: IntegrationKeeper, tokens: TokenKeeper, *, check_s: float
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._tokens = tokens
        self._check_s = check_s
        self._wake = asyncio.Event()
        self._failed_with = ""

    def look(self) -> None:
        """Look soon: a call was refused, the service is back, or a person has done something."""
        self._wake.set()

    async def run(self, after_round: Callable[[], Awaitable[None]]) -> None:
        """Work until cancelled; `after_round` is awaited after each round that came to its end.

        A store that was never connected has no tokens: nothing is asked until it is.
        """
        wait_s = _FIRST_WAIT_S
        hurried = 0
        while True:
            self._wake.clear()
            well = await self._round(after_round)
            if well:
                patience_s, wait_s = self._check_s, _FIRST_WAIT_S
            else:
                patience_s = min(self._check_s, wait_s)
                wait_s = min(_LONGEST_WAIT_S, wait_s * 2)
            try:
                async with asyncio.timeout(patience_s):
                    await self._wake.wait()
            except TimeoutError:
                hurried = 0
            else:
                # A service that says one thing here and another there must not make this one spin.
                await asyncio.sleep(min(_LONGEST_WAIT_S, _HURRY_S * 2**hurried))
                hurried = min(hurried + 1, 16)

    async def _round(self, after_round: Callable[[], Awaitable[None]]) -> bool:
        if await self._tokens.tokens() is None:
            return False
        try:
            well = await self._keeper.round()
            await after_round()
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
