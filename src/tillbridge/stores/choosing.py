"""Which of the merchant's stores is meant. Pure."""

from collections.abc import Sequence

from tillbridge.errors import BridgeError
from tillbridge.i18n import _
from tillbridge.service.types import Store


def choose_store(stores: Sequence[Store], wanted: str | None) -> Store:
    """Return the store to integrate: the wanted one, or the only one. BridgeError otherwise."""
    listed = ", ".join(f"{store.store_id} ({store.name or '?'})" for store in stores)
    if wanted is not None:
        for store in stores:
            if store.store_id == wanted:
                return store
        raise BridgeError(
            _("The merchant has no store {wanted}; there are: {listed}.").format(
                wanted=wanted, listed=listed or _("none")
            ),
            fix=_("Correct store_id in the configuration."),
        )
    if not stores:
        raise BridgeError(
            _("The merchant has no store yet."),
            fix=_("Let the merchant make one at the ordering service, then run this again."),
        )
    if len(stores) > 1:
        raise BridgeError(
            _("The merchant has several stores: {listed}.").format(listed=listed),
            fix=_("Set store_id in the configuration to the one that is meant."),
        )
    return stores[0]
