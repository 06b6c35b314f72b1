"""Setting up beside a bridge that runs: its page is imported when somebody opens it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tillbridge.config import LoadedSettings
from tillbridge.core.errors import BridgeError
from tillbridge.core.log import get_logger
from tillbridge.daemon.bell import Bell
from tillbridge.daemon.connecting import Connecting, Wanted
from tillbridge.daemon.operations import Operations
from tillbridge.daemon.rooms import House

if TYPE_CHECKING:
    from tillbridge.daemon.lives import Lives
    from tillbridge.daemon.operations_setup import SetupOperations
    from tillbridge.diagnostics.subject import Echo
    from tillbridge.setup.draft import Draft
    from tillbridge.setup.steps import Finding

log = get_logger()


class SetupBeside:
    """Makes the operations of the page, and connects the store that it has just written."""

    def __init__(
        self, loaded: LoadedSettings, house: House, operations: Operations, lives: "Lives"
    ) -> None:
        self._loaded = loaded
        self._house = house
        self._operations = operations
        self._lives = lives
        self._opened: SetupOperations | None = None
        self.bell = Bell()

    def open(self, echo: "Echo") -> "SetupOperations":
        """Return the operations; `echo` is the receiver's."""
        from tillbridge.daemon.operations_setup import SetupOperations  # noqa: PLC0415 -- see above
        from tillbridge.daemon.setup_place import SetupPlace  # noqa: PLC0415 -- see above

        house = self._house
        place = SetupPlace(
            self._loaded.path,
            house.ledger,
            house.clock,
            self._lives,
            house.settings.service.redirect_uri,
            self.bell,
            echo,
        )
        self._opened = SetupOperations(place, house.desk, self._stands)
        return self._opened

    async def close(self) -> None:
        """Let go of what the page has opened."""
        if self._opened is not None:
            await self._opened.close()

    @asynccontextmanager
    async def connecting(self, connecting: Connecting) -> AsyncIterator[None]:
        """Connect the store that the last life has written, beside everything else."""
        store, self._lives.to_connect = self._lives.to_connect, ""
        if store not in self._house.settings.stores:
            yield
            return
        task = asyncio.create_task(_connect(connecting, store), name="setup.connect")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _stands(self, draft: "Draft") -> "Mapping[str, Finding]":
        """Return how far the running bridge is set up."""
        from tillbridge.ledger.snapshot import take_snapshot  # noqa: PLC0415 -- see above
        from tillbridge.setup.running import findings_of  # noqa: PLC0415 -- see above

        stores = self._house.settings.stores
        snapshot = await self._house.ledger.read(take_snapshot)
        return findings_of(
            await self._operations.overview(),
            draft.store if draft.store in stores else next(iter(stores)),
            base_url=self._house.settings.service.base_url,
            delivered=snapshot.last_delivery_at is not None,
        )


async def _connect(connecting: Connecting, store: str) -> None:
    try:
        answer = await connecting.choose(Wanted(store))
        log.info("setup.connected", store=store, ok=answer["ok"])
    except BridgeError as failure:
        # The page shows what is missing, with a button that tries again.
        log.warning("setup.not_connected", store=store, error=failure.text)
