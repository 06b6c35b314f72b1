"""Delivery fee, tip and discount of a whole order, as lines of products that options name.

The ordering service says them as amounts that are final, so these lines bear no tax.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tillbridge.adapter import Order, PosFailure
from tillbridge.adapter.texts import _
from tillbridge.model.money import major
from tillbridge_odoo.basket import TicketLine
from tillbridge_odoo.odoo import Odoo
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.products import AmountProduct, amount_product
from tillbridge_odoo.register import Register
from tillbridge_odoo.taxes import LineAmounts


def extra_lines(
    odoo: Odoo, register: Register, options: OdooOptions, order: Order
) -> list[TicketLine]:
    """Return a line for each amount that has a product. Raises PosFailure for one that is gone."""
    return [
        _line(amount_product(odoo, register, option, product), amount)
        for option, product, amount in _amounts(options, order.payload, register.currency)
    ]


def _amounts(
    options: OdooOptions, payload: Mapping[str, Any], currency: str
) -> Iterator[tuple[str, int | str, Decimal]]:
    for option, product, name, sign in (
        ("delivery_product", options.delivery_product, "delivery_fee", 1),
        ("tip_product", options.tip_product, "tip", 1),
        ("discount_product", options.discount_product, "discount", -1),
    ):
        amount = payload.get(name)
        if product is not None and isinstance(amount, int) and amount:
            yield option, product, sign * major(abs(amount), currency)


def _line(found: AmountProduct, amount: Decimal) -> TicketLine:
    if found.product is None:
        raise PosFailure(
            _("Odoo has no product {wanted!r}, which the option {option} names.").format(
                wanted=found.wanted, option=found.option
            ),
            fix=_("Correct the option {option}.").format(option=found.option),
        )
    return TicketLine(
        product=found.product,
        name=found.name,
        quantity=1,
        unit=amount,
        extra=Decimal(0),
        amounts=LineAmounts(amount, amount, amount),
        taxes=(),
    )
