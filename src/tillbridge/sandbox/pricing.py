"""What an order costs: lines, taxes and totals, in integer minor units, from pure values.

The specification shows the fields and not the arithmetic. Here a line's `subtotal` is quantity
times the unit price and its options; each tax component is rounded half up per line; the breakdown
adds the lines up, so all sums agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Component:
    """One tax: `rate` in percent; a `compound` one is levied on the taxes before it too."""

    agency: str
    rate: Decimal
    compound: bool


@dataclass(frozen=True, slots=True)
class PricedOption:
    """An add-on of a line. `unit_price` in minor units."""

    product_id: str
    product_name: str
    quantity: int
    unit_price: int
    external_id: str | None

    def body(self) -> dict[str, Any]:
        """As the order shows it."""
        return {
            "product_id": self.product_id,
            "product_name": self.product_name,
            "quantity": self.quantity,
            "unit_price": self.unit_price,
            "external_id": self.external_id,
        }


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A line before tax. `quantity` of an option is per one of the line."""

    product_id: str
    product_variant_id: str | None
    product_name: str
    quantity: int
    unit_price: int
    external_id: str | None
    variant_external_id: str | None
    options: tuple[PricedOption, ...] = ()
    components: tuple[Component, ...] = field(default=())

    @property
    def subtotal(self) -> int:
        """Before tax, or with it where prices include it; minor units."""
        extras = sum(option.unit_price * option.quantity for option in self.options)
        return self.quantity * (self.unit_price + extras)

    def body(self, tax_amount: int) -> dict[str, Any]:
        """As the order shows it."""
        return {
            "product_id": self.product_id,
            "product_variant_id": self.product_variant_id,
            "product_name": self.product_name,
            "quantity": self.quantity,
            "unit_price": self.unit_price,
            "subtotal": self.subtotal,
            "tax_amount": tax_amount,
            "external_id": self.external_id,
            "variant_external_id": self.variant_external_id,
            "options": [option.body() for option in self.options],
        }


@dataclass(frozen=True, slots=True)
class Extras:
    """What comes on top of the lines, or off them."""

    delivery_fee: int = 0
    discount: int = 0
    tip: int = 0


def components_of(
    tax_config: Mapping[str, Any], item_tax: Mapping[str, Any] | None
) -> tuple[Component, ...]:
    """The taxes of an item: its own where taxes are per product, else the store's default."""
    if not tax_config.get("enabled"):
        return ()
    if tax_config.get("tax_level") == "product" and item_tax is not None:
        chosen: Mapping[str, Any] | None = item_tax
    else:
        default = tax_config.get("default_tax_id")
        chosen = next(
            (tax for tax in tax_config.get("taxes", ()) if tax["tax_id"] == default), None
        )
    if chosen is None:
        return ()
    return tuple(
        Component(entry["agency"], Decimal(str(entry["rate"])), bool(entry.get("compound")))
        for entry in chosen["components"]
    )


def line_taxes(amount: int, components: Iterable[Component], *, inclusive: bool) -> list[int]:
    """The tax of each component on `amount`; inclusive prices hold the tax already."""
    factors: list[Decimal] = []
    for component in components:
        base = 1 + sum(factors, Decimal(0)) if component.compound else Decimal(1)
        factors.append(base * component.rate / 100)
    net = amount / (1 + sum(factors, Decimal(0))) if inclusive else Decimal(amount)
    return [int((net * factor).quantize(Decimal(1), ROUND_HALF_UP)) for factor in factors]


def price_order(lines: Sequence[PricedLine], extras: Extras, *, inclusive: bool) -> dict[str, Any]:
    """The money fields and `items` of an order."""
    items: list[dict[str, Any]] = []
    breakdown: dict[tuple[str, Decimal], int] = {}
    for line in lines:
        taxes = line_taxes(line.subtotal, line.components, inclusive=inclusive)
        items.append(line.body(sum(taxes)))
        for component, amount in zip(line.components, taxes, strict=True):
            key = (component.agency, component.rate)
            breakdown[key] = breakdown.get(key, 0) + amount
    subtotal = sum(line.subtotal for line in lines)
    tax = sum(breakdown.values())
    total = (
        subtotal + extras.delivery_fee + extras.tip - extras.discount + (0 if inclusive else tax)
    )
    return {
        "subtotal": subtotal,
        "tax": tax,
        "delivery_fee": extras.delivery_fee,
        "discount": extras.discount,
        "tip": extras.tip,
        "total_amount": total,
        "prices_include_tax": inclusive,
        "tax_breakdown": [
            {"name": agency, "rate": _plain(rate), "amount": amount}
            for (agency, rate), amount in breakdown.items()
        ],
        "items": items,
    }


def _plain(rate: Decimal) -> int | float:
    """A rate as JSON has it: 20, not 20.0."""
    return int(rate) if rate == rate.to_integral_value() else float(rate)
