"""Which of the merchant's stores is meant. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.service.types import Store


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
class Wish:
    """Which store is meant: by the configuration, by an earlier choice, or "" by nobody."""

    store: str
    configured: str = ""
    chosen: str = ""


def choose_store(stores: Sequence[Store], wish: Wish) -> Store:
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
