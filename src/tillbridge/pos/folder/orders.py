"""Orders as files: `<order id>.json` for each, and `cancelled/<order id>.json` to take one back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tillbridge.adapter import Order, PosFailure, PosOffline, Ticket
from tillbridge.adapter.folders import trouble_of
from tillbridge.pos.folder.outbox import Outbox
from tillbridge.pos.folder.safe_names import safe_stem


@dataclass(frozen=True, slots=True)
class OrderFiles:
    """Writes orders into `orders_dir`, which the till must have made; it may take them away."""

    orders: Outbox
    cancelled: Outbox

    @classmethod
    def of(cls, orders_dir: Path) -> "OrderFiles":
        """Return the order files of a folder."""
        return cls(Outbox(orders_dir), Outbox(orders_dir / "cancelled"))

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the event's data as received. Raises PosOffline, TicketOutcomeUnknown."""
        stem = _stem(key)
        self.orders.put(stem, _content(order.payload))
        return Ticket(f"{stem}.json")

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket if it was ever written, be its file still there or not."""
        stem = _stem(key)
        return Ticket(f"{stem}.json") if self.orders.holds(stem) else None

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Tell the till, once, that a written order is off. Raises PosOffline."""
        stem = _stem(key)
        if not self.orders.holds(stem):
            return
        try:
            self.cancelled.folder.mkdir(exist_ok=True)
        except OSError as failure:
            trouble = trouble_of(self.cancelled.folder, failure)
            raise PosOffline(trouble.text, fix=trouble.fix) from failure
        self.cancelled.put(stem, _content({"order_id": order.id, "reason": reason}))


def _stem(key: str) -> str:
    try:
        return safe_stem(key)
    except ValueError as failure:
        raise PosFailure(f"The order cannot be written: {failure}.") from failure


def _content(data: Mapping[str, Any]) -> bytes:
    readable = json.dumps(data, ensure_ascii=False, indent=2, default=_plain)
    try:
        return f"{readable}\n".encode()
    except UnicodeEncodeError:  # half a character, which JSON lets pass escaped and UTF-8 does not
        return f"{json.dumps(data, indent=2, default=_plain)}\n".encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} has no place in an order")
