"""A process that delivers as fast as it can, and prints the id of what was acknowledged.

`python ledger_sender.py DATA_DIR`; a delivery that is refused is printed with a minus before it.
"""

import asyncio
import itertools
import sys
from pathlib import Path

from tillbridge.core import log
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import NewDelivery


async def main() -> None:
    log.configure("json")  # to stderr: stdout is for what was acknowledged
    ledger = await Ledger.open(Path(sys.argv[1]), clock=Clock())
    numbers = itertools.count()

    async def send() -> None:
        for number in numbers:
            event = f"evt_{number}"
            delivery = NewDelivery(
                store="main",
                delivery_id=event,
                event_id=event,
                event_type="order.created",
                received_at=0,
                body=b"b" * 2000,
            )
            try:
                await ledger.write(delivery)
                sys.stdout.write(f"{event}\n")
            except LedgerUnwritable:
                sys.stdout.write(f"-{event}\n")
                await asyncio.sleep(0.01)
            sys.stdout.flush()

    await asyncio.gather(*(send() for _ in range(8)))


if __name__ == "__main__":
    asyncio.run(main())
