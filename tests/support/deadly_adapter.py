"""An adapter that pulls the plug on the bridge, once, just before or just after it writes."""

import os
import signal
from pathlib import Path
from typing import Literal

from tillbridge.adapter import Adapter, AdapterContext, AdapterOptions, Order, Ticket


class DeadlyOptions(AdapterOptions):
    """Where tickets go, when it strikes, and the file that arms it."""

    orders_dir: Path
    moment: Literal["before_write", "after_write"]
    tripwire: Path


class DeadlyAdapter:
    """A till that only takes tickets."""

    def __init__(self, options: DeadlyOptions, context: AdapterContext) -> None:
        self._folder = context.base_dir / options.orders_dir
        self._moment = options.moment
        self._tripwire = context.base_dir / options.tripwire

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the ticket, and log each write."""
        self._strike("before_write")
        with (self._folder / "writes.log").open("a", encoding="utf-8") as log:
            log.write(f"{order.id}\n")
        (self._folder / f"{key}.json").write_text("{}", encoding="utf-8")
        self._strike("after_write")
        return Ticket(key)

    def find_ticket(self, key: str) -> Ticket | None:
        """Look whether it was written."""
        return Ticket(key) if (self._folder / f"{key}.json").exists() else None

    def _strike(self, moment: str) -> None:
        if moment == self._moment and self._tripwire.exists():
            self._tripwire.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


ADAPTER = Adapter(
    name="tests.support.deadly_adapter:ADAPTER",
    summary="pulls the plug",
    options=DeadlyOptions,
    open=DeadlyAdapter,
)
