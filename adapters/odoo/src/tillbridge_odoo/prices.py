"""What a product costs at the point of sale, in major units. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from tillbridge_odoo.amounts import decimal_of
from tillbridge_odoo.odoo import Record


class Prices(Protocol):
    """Knows the price of every product."""

    def of(self, product: Record, template: Record) -> Decimal:
        """Return the price of one. Raises Unsellable where it cannot be known."""
        ...


@dataclass(frozen=True, slots=True)
class SalesPrices:
    """The sales price of each product, with the extra prices of its attributes."""

    def of(self, product: Record, template: Record) -> Decimal:
        """Return it as Odoo works it out."""
        return decimal_of(product["lst_price"])
