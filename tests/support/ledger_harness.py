"""A ledger in a folder of its own, a clock to be set, and deliveries made up."""

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

from tillbridge.core.clock import Clock
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import NewDelivery

_numbers = itertools.count(1)


class StoppedClock(Clock):
    """Stands still until it is moved; the monotonic clock moves with it."""

    def __init__(self, at_ms: int = 1_800_000_000_000) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    def forward(self, seconds: float) -> None:
        self.at_ms += int(seconds * 1000)


@contextlib.asynccontextmanager
async def opened(data_dir: Path, clock: Clock | None = None) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(data_dir, clock=clock or StoppedClock())
    try:
        yield ledger
    finally:
        await ledger.close()


def delivery(event_id: str | None = None, **changed: object) -> NewDelivery:
    number = next(_numbers)
    fields: dict = {
        "store": "main",
        "delivery_id": f"dlv_{number}",
        "event_id": event_id or f"evt_{number}",
        "event_type": "order.created",
        "received_at": 1_800_000_000_000,
        "body": b"{}",
    }
    return NewDelivery(**{**fields, **changed})
