"""An order as the parameters of statements: what each scope can name, and nothing else.

Amounts are decimals in major units; instants are the time on this machine's wall, as tills keep it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from xml.sax.saxutils import escape

from tillbridge.adapter import Order, OrderLine, OrderOption
from tillbridge.model.money import exponent

Values = dict[str, object]


def of_key(key: str) -> Values:
    """Return the key, and what is made of it for columns that are too short for it."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return {"key": key, "key16": digest[:16], "cancel_key": f"{key}/cancelled"}


@dataclass(frozen=True, slots=True)
class OptionValues:
    """An option: the order's line it is of is not repeated here."""

    values: Values
    external_id: str
    name: str


@dataclass(frozen=True, slots=True)
class LineValues:
    """A line and its options."""

    values: Values
    options: tuple[OptionValues, ...]
    external_id: str
    name: str


class OrderValues:
    """All parameters of one order."""

    def __init__(self, order: Order, key: str, currency: str) -> None:
        self._order = order
        self._key = key
        self._digits = exponent(currency)
        self.lines = tuple(self._lines())
        self.of_order: Values = self._of_order()

    @property
    def paid(self) -> bool:
        """Whether the customer has paid online."""
        return str(self._order.payload.get("payment_status", "")).lower() in {"paid", "completed"}

    def _of_order(self) -> Values:
        order, payload = self._order, self._order.payload
        placed = order.placed_at
        rows = sum(1 + len(line.options) for line in self.lines)
        return {
            **of_key(self._key),
            "order_number": order.order_number or self._key,
            "order_type": order.order_type,
            "order_total": self._money(order.total_amount),
            "order_subtotal": self._amount("subtotal"),
            "order_tax": self._amount("tax"),
            "order_delivery_fee": self._amount("delivery_fee"),
            "order_discount": self._amount("discount"),
            "order_tip": self._amount("tip"),
            "order_extra": self._extra(),
            "order_note": order.special_instructions,
            "order_paid": self.paid,
            "order_placed_at": _on_the_wall(placed),
            "order_tax_included": 1 if _tax_included(payload) else 0,
            "order_lines": len(self.lines),
            "customer_id": str(payload.get("customer_id") or ""),
            "extra_xml": _java_properties({"product.name": "Delivery, tip, discount"}),
            "extra_row": rows,
        }

    def _extra(self) -> Decimal:
        """Return what the customer pays beside the lines: fees and tips, less discounts."""
        lines = sum((_written(line) for line in self._order.lines), 0)
        tax = 0 if _tax_included(self._order.payload) else _minor(self._order.payload.get("tax"))
        total = self._order.total_amount
        return self._money(0 if total is None else total - lines - tax)

    def _lines(self) -> Iterator[LineValues]:
        row = 0
        for number, line in enumerate(self._order.lines):
            options = []
            own = row
            for place, option in enumerate(line.options):
                row += 1
                options.append(self._option(option, place, row))
            row += 1
            yield LineValues(
                self._line(line, number, own),
                tuple(options),
                line.variant_external_id or line.external_id or "",
                line.product_name,
            )

    def _line(self, line: OrderLine, number: int, row: int) -> Values:
        items = self._order.payload.get("items")
        tax = _minor(items[number].get("tax_amount")) if isinstance(items, list | tuple) else 0
        options = ", ".join(_described(option) for option in line.options)
        return {
            "line": number,
            "line_number": number + 1,
            "row": row,
            "row_key": f"{self._key}/{row}",
            "item_id": line.external_id,
            "variant_id": line.variant_external_id,
            "product_id": line.variant_external_id or line.external_id,
            "line_name": line.product_name,
            "line_quantity": line.quantity,
            "line_price": self._money(line.unit_price),
            "line_subtotal": self._money(line.subtotal),
            "line_tax": self._money(tax),
            "line_options": options,
            "line_xml": _java_properties({"product.name": line.product_name}),
        }

    def _option(self, option: OrderOption, place: int, row: int) -> OptionValues:
        values = {
            "option": place,
            "option_number": place + 1,
            "row": row,
            "row_key": f"{self._key}/{row}",
            "option_id": option.external_id,
            "option_name": option.product_name,
            "option_quantity": option.quantity,
            "option_price": self._money(option.unit_price),
            "option_xml": _java_properties(
                {"product.com": "true", "product.name": option.product_name}
            ),
        }
        return OptionValues(values, option.external_id or "", option.product_name)

    def _amount(self, name: str) -> Decimal:
        return self._money(_minor(self._order.payload.get(name)))

    def _money(self, minor: int | None) -> Decimal:
        return Decimal(minor or 0).scaleb(-self._digits)


def _written(line: OrderLine) -> int:
    """Return what a line and its options come to as they are written."""
    options = sum((option.unit_price or 0) * option.quantity for option in line.options)
    return ((line.unit_price or 0) + options) * line.quantity


def _tax_included(payload: Mapping[str, object]) -> bool:
    return payload.get("prices_include_tax") is not False


def _minor(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _described(option: OrderOption) -> str:
    return (
        f"{option.quantity} x {option.product_name}" if option.quantity > 1 else option.product_name
    )


def _on_the_wall(at_ms: int | None) -> datetime:
    moment = datetime.now() if at_ms is None else datetime.fromtimestamp(at_ms / 1000)  # noqa: DTZ005, DTZ006 -- tills keep the time on the wall, without a zone
    return moment.replace(microsecond=0)


def _java_properties(entries: Mapping[str, str]) -> bytes:
    """Return properties as Java writes them (java.util.Properties.storeToXML)."""
    body = "".join(
        f'<entry key="{escape(key)}">{escape(_printable(value))}</entry>\n'
        for key, value in entries.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
        '<!DOCTYPE properties SYSTEM "http://java.sun.com/dtd/properties.dtd">\n'
        f"<properties>\n{body}</properties>\n"
    ).encode()


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
