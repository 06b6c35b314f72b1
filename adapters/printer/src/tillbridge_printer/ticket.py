"""What a layout may use of an order: plain values, cleaned when they are put in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from tillbridge.adapter import Order, OrderLine, TicketMark
from tillbridge.model.money import to_major
from tillbridge.model.order import UNCLEAR, parse_order

BANNERS = {
    TicketMark.POSSIBLE_DUPLICATE: "POSSIBLE DUPLICATE",
    TicketMark.NOT_IN_TILL: "NOT IN TILL",
    TicketMark.TILL_MAY_HAVE_IT: "THE TILL MAY HAVE IT: LOOK FIRST",
}


@dataclass(frozen=True, slots=True)
class Clockwork:
    """Now, and the time zone that tickets show (None: this machine's)."""

    now: datetime
    zone: tzinfo | None = None

    def shown(self, at_ms: int | None, form: str) -> str:
        """Return an instant as people read it; "" for none."""
        if at_ms is None:
            return ""
        return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(self.zone).strftime(form)

    def minutes_since(self, at_ms: int | None) -> int:
        """Return how many whole minutes ago that was; 0 for none and for the future."""
        if at_ms is None:
            return 0
        return max(0, int(self.now.timestamp() - at_ms / 1000) // 60)


def values_of(
    order: Order, store: str, clockwork: Clockwork, *, reason: str = ""
) -> dict[str, Any]:
    """Return the variables of a layout; README.md tells each."""
    data = order.payload
    currency = order.currency

    def money(amount: object) -> str:
        if not currency or not isinstance(amount, int) or isinstance(amount, bool):
            return ""
        try:
            return to_major(amount, currency)
        except ArithmeticError:  # more digits than any money has
            return str(amount)

    return {
        "store": store,
        "id": order.id,
        "number": order.order_number or order.id,
        "type": order.order_type,
        "note": order.special_instructions,
        "placed": clockwork.shown(order.placed_at, "%H:%M"),
        "placed_on": clockwork.shown(order.placed_at, "%Y-%m-%d"),
        "printed": clockwork.now.astimezone(clockwork.zone).strftime("%H:%M"),
        "age_min": clockwork.minutes_since(order.placed_at),
        "paid": data.get("payment_status") == "paid",
        "currency": currency,
        "total": money(order.total_amount),
        "sums": [
            {"name": name, "amount": money(data.get(field))}
            for name, field in _SUMS
            if data.get(field) and money(data.get(field))
        ],
        "lines": [_line(line, money) for line in order.lines],
        "reason": reason,
        "data": data,
    }


_SUMS = (
    ("Subtotal", "subtotal"),
    ("Tax", "tax"),
    ("Delivery", "delivery_fee"),
    ("Discount", "discount"),
    ("Tip", "tip"),
)


def _line(line: OrderLine, money: Any) -> Mapping[str, Any]:  # noqa: ANN401 -- a function of this module
    return {
        "quantity": line.quantity if line.quantity_clear else UNCLEAR,
        "name": line.product_name or line.external_id or "?",
        "price": money(line.subtotal if line.subtotal is not None else line.unit_price),
        "external_id": line.external_id or "",
        "options": [
            {
                "quantity": option.quantity if option.quantity_clear else UNCLEAR,
                "name": option.product_name or option.external_id or "?",
                "price": money(option.unit_price),
            }
            for option in line.options
        ],
    }


def sample_order() -> Order:
    """Return an order that has something of everything, to try a layout on."""
    return parse_order(
        {
            "id": "ord_sample",
            "order_number": "A-17",
            "order_type": "delivery",
            "payment_status": "paid",
            "currency": "EUR",
            "subtotal": 2350,
            "tax": 150,
            "delivery_fee": 290,
            "discount": 0,
            "tip": 200,
            "total_amount": 2990,
            "special_instructions": "Ring twice",
            "created_at": "2026-01-02T18:00:00.000Z",
            "items": [
                {
                    "product_name": "Pizza Margherita",
                    "quantity": 2,
                    "unit_price": 1000,
                    "subtotal": 2000,
                    "external_id": "P01",
                    "options": [{"product_name": "Extra cheese", "quantity": 1, "unit_price": 150}],
                }
            ],
        }
    )
