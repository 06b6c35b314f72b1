"""Drives a store's pauser: only while there is something to wait for."""

import asyncio

from tillbridge.core.errors import LedgerError
from tillbridge.stores.pauser import StorePauser

_LOOK_EVERY_S = 1.0


class Pausing:
    """Tells the pauser how the POS is: with each change, and every second while it matters."""

    def __init__(self, pauser: StorePauser) -> None:
        self._pauser = pauser
        self._online = True
        self._closed = ""
        self._changed = asyncio.Event()

    def pos_came(self) -> None:
        """Take note that the POS can be reached."""
        self._online = True
        self._changed.set()

    def pos_went(self) -> None:
        """Take note that the POS cannot be reached."""
        self._online = False
        self._changed.set()

    def pos_closed(self, why: str) -> None:
        """Take note that the POS takes no orders, and why; "" where it takes them."""
        self._closed = why
        self._changed.set()

    async def opened_by_person(self) -> None:
        """Take note that a person wants the store open. Raises LedgerError."""
        if await self._pauser.opened_by_person():
            self._changed.set()

    def order_lost(self) -> None:
        """Take note that an order was cancelled because the POS cannot be reached."""
        self._pauser.order_lost()
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                more_to_do = await self._more_to_do()
            except Exception:
                self._changed.set()  # whoever begins `run` again tries this again
                raise
            if more_to_do:
                asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._changed.set)

    async def _more_to_do(self) -> bool:
        try:
            return await self._pauser.pos_is(online=self._online, closed=self._closed)
        except LedgerError:
            return True  # the intent could not be kept, so nothing was told: again in a while
