"""What an adapter must be able to do for the part it has in a store. Pure."""

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _


def check_duties(
    store: str,
    *,
    orders: str,
    takes_orders: bool,
    stands_in: bool = True,
) -> None:
    """Raise ConfigError where the adapter `orders` takes none, or the fallback's does not print."""
    if not takes_orders:
        raise ConfigError(
            _("[stores.{store}]: the adapter {adapter}, as configured, takes no orders.").format(
                store=store, adapter=orders
            ),
            fix=_(
                "Tell it where orders go, or choose another adapter in [stores.{store}.orders]."
            ).format(store=store),
        )
    if not stands_in:
        raise ConfigError(
            _("[stores.{store}.fallback]: its adapter cannot stand in for a till.").format(
                store=store
            ),
            fix=_('Choose one that prints: adapter = "printer".'),
        )
