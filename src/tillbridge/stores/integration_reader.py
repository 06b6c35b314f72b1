"""Which of the merchant's stores is meant, and its integration as the service has it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError, ConfigError, Refused
from tillbridge.core.i18n import _
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.types import Integration, IntegrationRequest, Store
from tillbridge.stores.integration_plan import IntegrationPlan, State, plan_of, state_of
from tillbridge.stores.integration_repository import IntegrationRepository


class SeveralStores(BridgeError):
    """The merchant has several stores, and a person must say which one it is."""

    def __init__(self, store: str, stores: Sequence[Store]) -> None:
        super().__init__(
            _("The merchant has several stores: {listed}.").format(listed=_listed(stores)),
            fix=_(
                "Say which one it is: tillbridge connect {store} --store-id ID, or store_id in "
                "the configuration."
            ).format(store=store),
        )
        self.stores = tuple(stores)


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """Which store is meant: by the configuration, by an earlier choice, or "" by nobody."""

    store: str
    configured: str = ""
    chosen: str = ""


def choose_store(stores: Sequence[Store], wish: StoreChoice) -> Store:
    """Return the store to integrate: the one that is meant, or the only one.

    Raises SeveralStores, or BridgeError where there is none or not the one that is meant.
    """
    wanted = wish.configured or wish.chosen
    if wanted:
        for store in stores:
            if store.store_id == wanted:
                return store
        raise BridgeError(
            _("The merchant has no store {wanted}; there are: {listed}.").format(
                wanted=wanted, listed=_listed(stores) or _("none")
            ),
            fix=_("Correct store_id in the configuration.")
            if wish.configured
            else _("Say which one it is: tillbridge connect {store} --store-id ID").format(
                store=wish.store
            ),
        )
    if not stores:
        raise BridgeError(
            _("The merchant has no store yet."),
            fix=_("Let the merchant make one at the ordering service, then run this again."),
        )
    if len(stores) > 1:
        raise SeveralStores(wish.store, stores)
    return stores[0]


def _listed(stores: Sequence[Store]) -> str:
    return ", ".join(f"{store.store_id} ({store.name or '?'})" for store in stores)


@dataclass(frozen=True, slots=True)
class IntegrationSnapshot:
    """A store as the service has it, beside as it is wanted."""

    store: Store
    now: Integration | None
    wanted: IntegrationRequest
    plan: IntegrationPlan


class IntegrationReader:
    """Reads one store and its integration, and changes nothing there.

    Everything raises BridgeError (ServiceError among them).
    """

    def __init__(
        self, context: StoreContext, repository: IntegrationRepository, wanted: IntegrationRequest
    ) -> None:
        self._name = context.store
        self._configured = context.settings.store_id
        self._client = context.service
        self._repository = repository
        self._wanted = wanted

    async def look(self) -> IntegrationSnapshot:
        """Read the store and its integration, and compare."""
        store = await self.chosen()
        state, now, known = state_of(store), None, False
        if state is State.INTEGRATED:
            now = await self.integration_of(store.store_id)
            known = now is not None and await self._repository.secret_known(now)
        plan = plan_of(state, now, self._wanted, secret_known=known)
        return IntegrationSnapshot(store, now, self._wanted, plan)

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
        wish = StoreChoice(self._name, chosen=store_id)
        await self._free(choose_store(await self._client.stores(), wish))
        await self._repository.note_choice(store_id)

    async def chosen(self) -> Store:
        """Choose the store, and note its name for what is printed."""
        wish = StoreChoice(
            self._name, self._configured or "", await self._repository.store_id() or ""
        )
        store = choose_store(await self._client.stores(), wish)
        await self._free(store)
        if store.name:
            await self._repository.note_store_name(store.name)
        return store

    async def _free(self, store: Store) -> None:
        """Refuse a store that another one of this bridge stands for."""
        taken = await self._repository.taken_by(store.store_id)
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
