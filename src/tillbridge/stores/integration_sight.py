"""A store and its integration as the service has them, beside as they are wanted."""

from dataclasses import dataclass

from tillbridge.core.errors import BridgeError, ConfigError, Refused
from tillbridge.core.i18n import _
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.client import ServiceClient
from tillbridge.service.types import Integration, IntegrationRequest, Store
from tillbridge.stores.choosing import Wish, choose_store
from tillbridge.stores.integration_books import IntegrationBooks
from tillbridge.stores.integration_plan import IntegrationPlan, State, plan_of, state_of


@dataclass(frozen=True, slots=True)
class Seen:
    """A store as the service has it, beside as it is wanted."""

    store: Store
    now: Integration | None
    wanted: IntegrationRequest
    plan: IntegrationPlan


class IntegrationSight:
    """Looks at one store; `configured` is the service's id of it in the configuration.

    Changes nothing there. Everything raises BridgeError (ServiceError among them).
    """

    def __init__(
        self,
        name: str,
        configured: str | None,
        client: ServiceClient,
        books: IntegrationBooks,
        wanted: IntegrationRequest,
    ) -> None:
        self._name = name
        self._configured = configured
        self._client = client
        self._books = books
        self._wanted = wanted

    async def look(self) -> Seen:
        """Read the store and its integration, and compare."""
        store = await self.chosen()
        state, now, known = state_of(store), None, False
        if state is State.INTEGRATED:
            now = await self.integration_of(store.store_id)
            known = now is not None and await self._books.secret_known(now)
        plan = plan_of(state, now, self._wanted, secret_known=known)
        return Seen(store, now, self._wanted, plan)

    async def choose(self, store_id: str) -> None:
        """Take note which of the merchant's stores a person means.

        Raises ConfigError where the configuration means another one.
        """
        if self._configured not in {None, store_id}:
            raise ConfigError(
                _("bridge.toml says store_id = {configured}, and {chosen} was chosen.").format(
                    configured=f'"{self._configured}"', chosen=store_id
                ),
                fix=_("Correct store_id in the configuration, or choose the same."),
            )
        wish = Wish(self._name, chosen=store_id)
        await self._free(choose_store(await self._client.stores(), wish))
        await self._books.note_choice(store_id)

    async def chosen(self) -> Store:
        """Choose the store, and note its name for what is printed."""
        wish = Wish(self._name, self._configured or "", await self._books.store_id() or "")
        store = choose_store(await self._client.stores(), wish)
        await self._free(store)
        if store.name:
            await self._books.note_store_name(store.name)
        return store

    async def _free(self, store: Store) -> None:
        """Refuse a store that another one of this bridge stands for."""
        taken = await self._books.taken_by(store.store_id)
        if taken is not None:
            raise BridgeError(
                _("The store {store_id} is connected here already, as {taken}.").format(
                    store_id=store.store_id, taken=taken
                ),
                fix=_("Choose another: tillbridge connect {store} --store-id ID").format(
                    store=self._name
                ),
            )

    async def integration_of(self, store_id: str) -> Integration | None:
        """Return the integration as the service has it; None where there is none."""
        try:
            return await self._client.integration(store_id)
        except Refused as refused:
            if refused.code != NOT_INTEGRATED:
                raise
            return None
