"""A store's POS: one adapter for all, or another one for orders."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.adapter import AdapterContext
from tillbridge.config import StoreSettings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.runner import PosRunner, Report


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


@dataclass(frozen=True, slots=True)
class StorePos:
    """Where the menu is read, and where orders are written; often the same."""

    menu: PosRunner
    orders: PosRunner
    fallback: PosRunner | None = None  # what prints an order that the till cannot take

    def close(self) -> None:
        """Let the adapters' threads end."""
        adapters = (self.menu, self.orders, self.fallback)
        for adapter in {id(each): each for each in adapters}.values():
            if adapter is not None:
                adapter.close()


def open_store_pos(store: str, settings: StoreSettings, base_dir: Path, report: Report) -> StorePos:
    """Open the store's adapters. Raises ConfigError."""
    context = AdapterContext(
        store=store,
        currency=settings.currency,
        location_id=settings.location_id,
        base_dir=base_dir,
    )

    def opened(adapter: str, options: dict[str, Any], table: str) -> PosRunner:
        return PosRunner(
            open_adapter(adapter, options, context, table=table),
            store=store,
            adapter=adapter,
            ticket_timeout_s=settings.orders.write_timeout_s,
            hangs_after_s=settings.pos.hangs_after_s,
            report=report,
        )

    by_table = {
        table: opened(adapter, options, table) for table, adapter, options in settings.adapters
    }
    menu = by_table["pos"]
    pos = StorePos(menu, by_table.get("orders", menu), by_table.get("fallback"))
    check_duties(
        store,
        orders=pos.orders.adapter,
        takes_orders=pos.orders.writes_tickets,
        stands_in=pos.fallback is None or pos.fallback.marks_tickets,
    )
    return pos
