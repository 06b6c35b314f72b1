"""Orders as delivered to the POS. Specification: Resources, Order; Order lifecycle; Orders.

What the service sends is kept as received (`payload`); the typed fields are what the bridge
decides by. A field that is missing or odd never makes an order unreadable: only the id must be
there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tillbridge.model.instant import from_iso


class OrderState(StrEnum):
    """The lifecycle as driven from the POS. Specification: Order lifecycle driven from the POS."""

    CREATED = "created"
    ACCEPTED = "accepted"
    PREPARING = "preparing"
    READY = "ready"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class ReasonCode(StrEnum):
    """Why an order is cancelled. Specification: Orders, reason_code values."""

    ITEM_OUT_OF_STOCK = "ITEM_OUT_OF_STOCK"
    STORE_CLOSED = "STORE_CLOSED"
    POS_OFFLINE = "POS_OFFLINE"
    CAPACITY = "CAPACITY"
    PRICE_MISMATCH = "PRICE_MISMATCH"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class OrderOption:
    """An add-on chosen on a line; `unit_price` in minor units, None where it is not told."""

    product_name: str
    quantity: int
    unit_price: int | None
    external_id: str | None


@dataclass(frozen=True, slots=True)
class OrderLine:
    """A line; prices in minor units, None where they are not told."""

    product_name: str
    quantity: int
    unit_price: int | None
    subtotal: int | None
    external_id: str | None
    variant_external_id: str | None
    options: tuple[OrderOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """An order of one store. `placed_at` is ms since the epoch, None where it is not told."""

    id: str
    order_number: str
    order_type: str
    currency: str
    total_amount: int | None
    special_instructions: str
    placed_at: int | None
    lines: tuple[OrderLine, ...]
    payload: Mapping[str, Any]


def parse_order(data: object) -> Order:
    """Return the order in an `order.created` event's `data`.

    Raises ValueError only where it has no id to be known by.
    """
    if not isinstance(data, Mapping):
        msg = "the event's data is not an object"
        raise ValueError(msg)  # noqa: TRY004 -- bad input, not a programming error
    order_id = _text(data.get("id"))
    if not order_id:
        msg = "the order has no id"
        raise ValueError(msg)
    return Order(
        id=order_id,
        order_number=_text(data.get("order_number")),
        order_type=_text(data.get("order_type")),
        currency=_text(data.get("currency")).upper(),
        total_amount=_amount(data.get("total_amount")),
        special_instructions=_text(data.get("special_instructions")),
        placed_at=_instant(data.get("created_at")),
        lines=tuple(_line(line) for line in _objects(data.get("items"))),
        payload=data,
    )


def _line(line: Mapping[str, Any]) -> OrderLine:
    return OrderLine(
        product_name=_text(line.get("product_name")),
        quantity=_quantity(line.get("quantity")),
        unit_price=_amount(line.get("unit_price")),
        subtotal=_amount(line.get("subtotal")),
        external_id=_text(line.get("external_id")) or None,
        variant_external_id=_text(line.get("variant_external_id")) or None,
        options=tuple(
            OrderOption(
                product_name=_text(option.get("product_name")),
                quantity=_quantity(option.get("quantity")),
                unit_price=_amount(option.get("unit_price")),
                external_id=_text(option.get("external_id")) or None,
            )
            for option in _objects(line.get("options"))
        ),
    )


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _amount(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quantity(value: object) -> int:
    amount = _amount(value)
    return 1 if amount is None else amount


def _instant(value: object) -> int | None:
    try:
        return from_iso(value) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
