"""An adapter whose every answer holds something that no ledger and no service can take."""

import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AdapterOptions,
    AddOn,
    Availability,
    AvailabilityReading,
    BadRow,
    Catalogue,
    Health,
    Item,
    ItemTax,
    Order,
    Table,
    TablesReading,
    TaxComponent,
    Ticket,
    TicketStatus,
    TicketUpdate,
)

NAIVE = cast("int", datetime(2026, 1, 1))  # noqa: DTZ001 -- what is handed over where ms are wanted


class PoisonOptions(AdapterOptions):
    """`hangs`: reading the menu never ends; `opens_with`: opening waits for that file."""

    hangs: bool = False
    opens_with: Path | None = Field(None, strict=False)
    breaks: bool = False


class PoisonAdapter:
    """A till that is there, and says what cannot be."""

    def __init__(self, options: PoisonOptions, context: AdapterContext) -> None:
        del context
        if options.breaks:
            raise RuntimeError("this till's library is older than its till")
        while options.opens_with is not None and not options.opens_with.exists():
            time.sleep(0.05)
        self._hangs = options.hangs
        self._readings = 0

    def read_catalogue(self) -> Catalogue:
        """Return a good dish among bad ones, another price each time."""
        if self._hangs:
            threading.Event().wait()
        self._readings += 1
        return Catalogue.of(
            [
                Item("good", "Bread", 250 + self._readings % 2),
                Item("dear", "Gold", 2**63),
                Item("dearer", "More gold", 10**5000),
                Item("half", "Ice \ud83d", 300),
                Item("\ud800", "No id", 300),
                Item("taxed", "Soup", 300, tax=ItemTax("VAT", (TaxComponent("VAT", "1e999999"),))),
                Item("long", "x" * 1_000_000, 300),
                Item("soon", "Cake", 300, available=False, snooze_until=NAIVE),
                Item("odd", "Salad", cast("int", 4.5)),
            ],
            add_ons=[AddOn("salt", "Salt", 10**40)],
            bad_rows=[BadRow("menu\udcff.csv, row 3", "x\ud800", "y" * 100_000)],
            fingerprints={"good": 2**70},
        )

    def read_availability(self) -> AvailabilityReading:
        """Return times that are none."""
        return AvailabilityReading(
            {
                "good": Availability(available=False, until=1_795_334_400_000_000),
                "dear": Availability(available=False, until=10**30),
                "half": Availability(available=False, until=NAIVE),
            }
        )

    def read_tables(self) -> TablesReading:
        """Return a table for very many."""
        return TablesReading((Table("t1", "One", 10**30), Table("t2", "\ud800")))

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Take the order."""
        return Ticket(key)

    def find_ticket(self, key: str) -> Ticket | None:
        """Find none."""
        raise KeyError("\ud800")

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return news of orders that cannot be."""
        many = ("a",) * 50_000
        return [
            TicketUpdate("1", "\ud800x", TicketStatus.PREPARING),
            TicketUpdate("2", "x" * 900_000, TicketStatus.READY),
            TicketUpdate("3", "ord_3", TicketStatus.REJECTED, external_ids=many),
            cast("TicketUpdate", {"order_id": "ord_4"}),
        ]

    def update_handled(self, update: TicketUpdate) -> None:
        """Take note of nothing."""

    def health(self) -> Health:
        """Return a detail that cannot be shown."""
        return Health(online=True, detail=cast("Any", b"\xff"))

    def catalogue_files(self) -> Sequence[Path]:
        """Fail."""
        raise RecursionError("deep")

    availability_files = table_files = update_folders = catalogue_files


ADAPTER = Adapter(
    name="tests.support.poison_adapter:ADAPTER",
    summary="hands over what cannot be",
    options=PoisonOptions,
    open=PoisonAdapter,
)
