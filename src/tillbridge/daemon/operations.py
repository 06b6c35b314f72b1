"""What commands and the page ask of the bridge, while it runs and while it does not."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.daemon.compose import Composition
from tillbridge.daemon.connecting import Connecting, Wanted
from tillbridge.daemon.store_services import StoreServices
from tillbridge.web.ports import Answer

if TYPE_CHECKING:
    from tillbridge.daemon.condition import Condition
    from tillbridge.daemon.operations_setup import SetupOperations


class Operations:
    """The operations; `running_since` (ms) is None where no daemon runs."""

    def __init__(
        self,
        composition: Composition,
        connecting: Connecting | None = None,
        *,
        running_since: int | None = None,
    ) -> None:
        self._composition = composition
        self._connecting = connecting
        self._running_since = running_since
        self._services = composition.services
        # Made by the daemon, where there is a page on which to set things up.
        self.make_setup: Callable[[], SetupOperations] | None = None

    @cached_property
    def _condition(self) -> "Condition":
        # Only where somebody asks.
        from tillbridge.daemon.condition import Condition  # noqa: PLC0415 -- (as above)

        return Condition(self._composition, self._running_since)

    @cached_property
    def setup(self) -> "SetupOperations":
        """What is asked about setting the bridge up."""
        if self.make_setup is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
        return self.make_setup()

    async def status(self) -> Answer:
        """Return the status document."""
        return await self._condition.document()

    async def measures(self) -> Answer:
        """Return what `/metrics` tells: the status document, and what it does not hold."""
        # Only where somebody measures.
        from tillbridge.daemon.condition import measures  # noqa: PLC0415 -- see above

        return {"status": await self.status(), **await measures(self._services)}

    async def overview(self) -> Answer:
        """Return the status document with the chain, the day and what waits."""
        return await self._condition.overview()

    async def connect(
        self, store: str, *, reintegrate: bool, store_id: str = "", email: str = ""
    ) -> Answer:
        """Begin to connect a store."""
        self._store(store)
        return self._daemon().begin(Wanted(store, reintegrate, store_id, email))

    async def connect_choose(self, store: str, *, store_id: str, reintegrate: bool) -> Answer:
        """Go on with a store of the merchant."""
        self._store(store)
        return await self._daemon().choose(Wanted(store, reintegrate, store_id))

    async def signup(self, store: str, *, form: Mapping[str, str], flow_type: str) -> Answer:
        """Begin to sign a merchant up."""
        self._store(store)
        return await self._daemon().sign_up(store, form, flow_type)

    async def connect_result(self, state: str) -> Answer:
        """Return how far a connection is."""
        return self._daemon().result(state)

    # -- inside

    def _store(self, store: str) -> StoreServices:
        found = self._composition.stores.get(store)
        if found is None:
            raise ConfigError(
                _("There is no store {store}.").format(store=store),
                fix=_("There are: {names}.").format(names=", ".join(self._composition.stores)),
            )
        return found

    def _daemon(self) -> Connecting:
        if self._connecting is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
        return self._connecting

    def _later(self, text: str) -> str:
        if self._running_since is not None:
            return text
        return text + " " + _("The bridge is not running: it is told when it runs.")
