"""Setting up beside a bridge that runs: its page is imported when somebody opens it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.config import LoadedSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.log import get_logger
from tillbridge.daemon.connecting import Connecting, Wanted
from tillbridge.daemon.operations import Operations
from tillbridge.daemon.rooms import House
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.receiver.receiver import Receiver, receiver_settings
from tillbridge.setup.file import ChangeSignal

if TYPE_CHECKING:
    from tillbridge.core.restart import RestartController
    from tillbridge.daemon.operations_setup import SetupOperations
    from tillbridge.diagnostics.subject import Echo
    from tillbridge.setup.draft import Draft, Finding

log = get_logger()


@asynccontextmanager
async def trial_receiver(
    ledger: Ledger, problems: ProblemTracker, clock: Clock, loaded: LoadedSettings
) -> AsyncIterator["Echo"]:
    """Listen as this configuration's receiver will. Raises ConfigError where it cannot."""
    receiver = Receiver(
        receiver_settings(loaded), {}, ledger, problems, clock=clock, wake=lambda _store: None
    )
    await receiver.start()
    try:
        yield receiver.echo
    finally:
        await receiver.stop(1.0)


class SetupBeside:
    """Makes the operations of the page, and connects the store that it has just written."""

    def __init__(
        self,
        loaded: LoadedSettings,
        house: House,
        operations: Operations,
        restarts: "RestartController",
    ) -> None:
        self._loaded = loaded
        self._house = house
        self._operations = operations
        self._restarts = restarts
        self._opened: SetupOperations | None = None
        self.changes = ChangeSignal()

    def open(self, echo: "Echo") -> "SetupOperations":
        """Return the operations; `echo` is the receiver's."""
        from tillbridge.daemon.operations_setup import SetupOperations  # noqa: PLC0415 -- see above
        from tillbridge.setup.file import SetupContext  # noqa: PLC0415 -- see above

        house = self._house
        place = SetupContext(
            self._loaded.path,
            house.ledger,
            house.clock,
            self._restarts,
            house.settings.service.redirect_uri,
            self.changes,
            partial(trial_receiver, house.ledger, house.desk, house.clock),
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
        store, self._restarts.to_connect = self._restarts.to_connect, ""
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
