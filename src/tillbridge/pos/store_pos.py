"""A store's POS: one adapter for all, or another one for orders."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import AdapterContext
from tillbridge.config import StoreSettings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.opening import AdapterOpening, NotOpened
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


class StoreOpening:
    """Opens all adapters of a store, beside each other. Used from the event loop."""

    def __init__(self, store: str, settings: StoreSettings, base_dir: Path) -> None:
        context = AdapterContext(
            store=store,
            currency=settings.currency,
            location_id=settings.location_id,
            base_dir=base_dir,
        )
        self._store = store
        self._settings = settings
        self._openings = {
            table: AdapterOpening(adapter, options, context, table=table)
            for table, adapter, options in settings.adapters
        }
        self._missing: list[AdapterOpening] = []

    async def pos(self, within_s: float, report: Report) -> StorePos:
        """Return the store's POS; an adapter that is not open in time is offline in it.

        Raises ConfigError.
        """
        settings, by_table = self._settings, {}
        ends = asyncio.get_running_loop().time() + within_s
        for table, opening in self._openings.items():
            left_s = max(0.0, ends - asyncio.get_running_loop().time())
            adapter = await opening.opened(left_s)
            if isinstance(adapter, NotOpened):
                self._missing.append(opening)
            by_table[table] = PosRunner(
                adapter,
                store=self._store,
                adapter=opening.adapter,
                ticket_timeout_s=settings.orders.write_timeout_s,
                hangs_after_s=settings.pos.hangs_after_s,
                report=report,
            )
        menu = by_table["pos"]
        pos = StorePos(menu, by_table.get("orders", menu), by_table.get("fallback"))
        check_duties(
            self._store,
            orders=pos.orders.adapter,
            takes_orders=pos.orders.writes_tickets,
            stands_in=pos.fallback is None or pos.fallback.marks_tickets,
        )
        return pos

    @property
    def is_complete(self) -> bool:
        """Whether all adapters were open in time."""
        return not self._missing

    def can_be_complete(self) -> bool:
        """Whether all that were not could be opened meanwhile; begins those again that failed."""
        ready = [opening.can_be_opened() for opening in self._missing]
        return all(ready)

    def close(self) -> None:
        """Let go of what was opened too late."""
        for opening in self._missing:
            opening.close()
