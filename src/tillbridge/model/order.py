"""Orders as delivered to the POS. Specification: Resources, Order; Order lifecycle; Orders.

What the service sends is stored as received (`payload`); the typed fields are what the bridge
decides by. A field that is missing or odd never makes an order unreadable: only the id must be
there. Texts hold whole characters only: halves, as JSON allows them, become U+FFFD.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tillbridge.model.instant import from_iso
from tillbridge.model.lenient import instant, objects, text, whole


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


UNCLEAR = "?"  # what people read in place of a quantity that nobody knows
_MOST = 99_999  # of one thing in one order


class _Ordered:
    """What is ordered in a quantity."""

    __slots__ = ()
    quantity: int
    quantity_clear: bool

    @property
    def quantity_text(self) -> str:
        """How many, for people: `?` where it is not clear."""
        return str(self.quantity) if self.quantity_clear else UNCLEAR


@dataclass(frozen=True, slots=True)
class OrderOption(_Ordered):
    """An add-on chosen on a line. `unit_price` is in minor units, None if it is not given.

    `quantity` is 1 if `quantity_clear` is False: nobody knows it then.
    """

    product_name: str
    quantity: int
    unit_price: int | None
    external_id: str | None
    quantity_clear: bool = True


@dataclass(frozen=True, slots=True)
class OrderLine(_Ordered):
    """A line of an order. Prices are in minor units, None if they are not given.

    `quantity` is 1 if `quantity_clear` is False: nobody knows it then.
    """

    product_name: str
    quantity: int
    unit_price: int | None
    subtotal: int | None
    external_id: str | None
    variant_external_id: str | None
    options: tuple[OrderOption, ...] = ()
    quantity_clear: bool = True


@dataclass(frozen=True, slots=True)
class Order:
    """An order of one store. `placed_at` is in ms since the epoch, None if it is not given."""

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
    order_id = data.get("id")
    order_id = order_id if isinstance(order_id, str) else text(order_id, "")  # never mended
    if not order_id:
        msg = "the order has no id"
        raise ValueError(msg)
    return Order(
        id=order_id,
        order_number=text(data.get("order_number"), ""),
        order_type=text(data.get("order_type"), ""),
        currency=text(data.get("currency"), "").upper(),
        total_amount=whole(data.get("total_amount")),
        special_instructions=text(data.get("special_instructions"), ""),
        placed_at=_instant(data.get("created_at")),
        lines=tuple(_line(line) for line in objects(data.get("items"))),
        payload=data,
    )


def unclear_quantities(order: Order) -> list[str]:
    """Return the names of what was ordered in a quantity that nobody knows."""
    things: list[OrderLine | OrderOption] = []
    for line in order.lines:
        things += [line, *line.options]
    return [
        thing.product_name or thing.external_id or UNCLEAR
        for thing in things
        if not thing.quantity_clear
    ]


def _line(line: Mapping[str, Any]) -> OrderLine:
    return OrderLine(
        **_ordered(line),
        subtotal=whole(line.get("subtotal")),
        variant_external_id=text(line.get("variant_external_id")) or None,
        options=tuple(OrderOption(**_ordered(each)) for each in objects(line.get("options"))),
    )


def _ordered(thing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a line and an option have in common."""
    quantity = _quantity(thing.get("quantity"))
    return {
        "product_name": text(thing.get("product_name"), ""),
        "quantity": quantity or 1,
        "quantity_clear": quantity is not None,
        "unit_price": whole(thing.get("unit_price")),
        "external_id": text(thing.get("external_id")) or None,
    }


def _quantity(value: object) -> int | None:
    """Return a number of pieces: 3, 3.0 or "3"; None for anything else, and for none at all."""
    if isinstance(value, str):
        digits = value.strip()
        value = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    amount = whole(value)
    return amount if amount is not None and 1 <= amount <= _MOST else None


# An order of another century was placed by a clock that is wrong: nobody knows when.
_FIRST_MS, _LAST_MS = from_iso("2000-01-01T00:00Z"), from_iso("2100-01-01T00:00Z")


def _instant(value: object) -> int | None:
    at = instant(value) if isinstance(value, str) else None
    return at if at is not None and _FIRST_MS <= at < _LAST_MS else None
