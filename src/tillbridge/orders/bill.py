"""What an order costs, how it leaves the restaurant and what is in it, as people read it. Pure.

Specification: Resources, "Order as delivered to the POS". Every field may be missing or odd: then
it is None or "", and is not shown. Amounts are integers in minor units of the order's currency.
"""

import re
from collections.abc import Mapping
from typing import Any, TypedDict

from tillbridge.model.lenient import objects, text, whole
from tillbridge.model.order import Order

# The specification shows "delivery" only; the others are what services commonly send.
KINDS = ("delivery", "pickup", "dine_in")
_TYPES = {
    "delivery": "delivery",
    "pickup": "pickup",
    "pick_up": "pickup",
    "takeaway": "pickup",
    "take_away": "pickup",
    "takeout": "pickup",
    "collection": "pickup",
    "dine_in": "dine_in",
    "dinein": "dine_in",
    "eat_in": "dine_in",
    "table": "dine_in",
}
_TABLE_IN_NOTE = re.compile(r"table\s+([^.,;\n]{1,40})(?:[.,;\n]|$)", re.IGNORECASE)
_LONGEST_TABLE = 40
_NAMED = 3  # dishes that a list names


class TaxLine(TypedDict):
    """A line of `tax_breakdown`; `rate` is text in percent, "" where it is not given."""

    name: str
    rate: str
    amount: int | None


class Bill(TypedDict):
    """What an order costs; None if the service did not say. `includes_tax`: prices do."""

    subtotal: int | None
    tax: int | None
    taxes: list[TaxLine]
    delivery_fee: int | None
    discount: int | None
    tip: int | None
    total: int | None
    includes_tax: bool


def bill_of(payload: Mapping[str, Any]) -> Bill:
    """Return the amounts of an order."""
    return {
        "subtotal": whole(payload.get("subtotal")),
        "tax": whole(payload.get("tax")),
        "taxes": [_tax_line(each) for each in objects(payload.get("tax_breakdown"))],
        "delivery_fee": whole(payload.get("delivery_fee")),
        "discount": whole(payload.get("discount")),
        "tip": whole(payload.get("tip")),
        "total": whole(payload.get("total_amount")),
        "includes_tax": payload.get("prices_include_tax") is True,
    }


def _tax_line(line: Mapping[str, Any]) -> TaxLine:
    rate = line.get("rate")
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    shown = f"{rate:g}" if is_number else text(rate, "")
    return {"name": text(line.get("name"), ""), "rate": shown, "amount": whole(line.get("amount"))}


def kind_of(order_type: str) -> str:
    """Return how an order leaves the restaurant: "delivery", "pickup", "dine_in", "" if unknown."""
    return _TYPES.get(order_type.strip().lower().replace("-", "_").replace(" ", "_"), "")


def table_of(order: Order) -> str:
    """Return the table an order was placed at, as guests read it; "" where there is none.

    The specification shows no field for it (docs/assumptions.md): `table_name`, `table` and the
    beginning of the guest's note ("Table 5. ...") are looked at.
    """
    if kind_of(order.order_type) not in {"dine_in", ""}:
        return ""
    given = order.payload.get("table")
    names = [order.payload.get("table_name")]
    names += (
        [given.get("name"), given.get("external_id")] if isinstance(given, Mapping) else [given]
    )
    for name in names:
        if found := text(name, "").strip():
            return found[:_LONGEST_TABLE]
    note = _TABLE_IN_NOTE.match(order.special_instructions.strip())
    return note[1].strip() if note and kind_of(order.order_type) == "dine_in" else ""


def raw_types(kind: str) -> frozenset[str]:
    """Return the `order_type`s of this kind, in lower case with underscores."""
    return frozenset(raw for raw, each in _TYPES.items() if each == kind)


class Dish(TypedDict):
    """A line of an order in short; `quantity` is "?" where it is not clear."""

    name: str
    quantity: str


def dishes_of(order: Order) -> tuple[list[Dish], int]:
    """Return the first lines of an order, and how many there are more."""
    found: list[Dish] = [
        {"name": line.product_name, "quantity": line.quantity_text}
        for line in order.lines
        if line.product_name
    ]
    return found[:_NAMED], max(0, len(found) - _NAMED)
