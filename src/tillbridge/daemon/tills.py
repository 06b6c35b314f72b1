"""A store's POS: one adapter for all, or another one for orders."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.adapter import AdapterContext
from tillbridge.config import StoreSettings
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.pos.duties import check_duties
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.runner import PosRunner


@dataclass(frozen=True, slots=True)
class Tills:
    """Where the menu is read, and where orders are written; often the same."""

    menu: PosRunner
    orders: PosRunner
    fallback: PosRunner | None = None  # what prints an order that the till cannot take

    def close(self) -> None:
        """Let the adapters' threads end."""
        tills = (self.menu, self.orders, self.fallback)
        for till in {id(each): each for each in tills}.values():
            if till is not None:
                till.close()


def open_tills(store: str, settings: StoreSettings, base_dir: Path, desk: ProblemDesk) -> Tills:
    """Open the store's adapters. Raises ConfigError."""
    context = AdapterContext(
        store=store,
        currency=settings.currency,
        location_id=settings.location_id,
        base_dir=base_dir,
    )

    def opened(adapter: str, options: dict[str, Any], table: str) -> PosRunner:
        def fault(operation: str, detail: str | None) -> None:
            if detail is None:
                desk.close("adapter.failed", store, f"{adapter}.{operation}")
            else:
                desk.open(
                    "adapter.failed",
                    store,
                    f"{adapter}.{operation}",
                    adapter=adapter,
                    detail=detail,
                )

        def trouble(detail: str | None) -> None:
            if detail is None:
                desk.close("adapter.keeps_dying", store, adapter)
            else:
                desk.open("adapter.keeps_dying", store, adapter, adapter=adapter, detail=detail)

        return PosRunner(
            open_adapter(adapter, options, context, table=table),
            store=store,
            adapter=adapter,
            ticket_timeout_s=settings.orders.write_timeout_s,
            on_fault=fault,
            on_trouble=trouble,
        )

    by_table = {
        table: opened(adapter, options, table) for table, adapter, options in settings.adapters
    }
    menu = by_table["pos"]
    tills = Tills(menu, by_table.get("orders", menu), by_table.get("fallback"))
    check_duties(
        store,
        orders=tills.orders.adapter,
        takes_orders=tills.orders.writes_tickets,
        stands_in=tills.fallback is None or tills.fallback.marks_tickets,
    )
    return tills
