"""The products that stand for delivery fee, tip and discount: found, and loaded by the till."""

from collections.abc import Iterator
from dataclasses import dataclass

from tillbridge.adapter.texts import _
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.register import Register, number, text


@dataclass(frozen=True, slots=True)
class AmountProduct:
    """What one option names. `product` is None where Odoo has none.

    `dropped` says why the screen of the point of sale does not load it, "" where it does.
    """

    option: str
    wanted: int | str
    product: int | None = None
    template: int | None = None
    name: str = ""
    dropped: str = ""


def amount_products(odoo: Odoo, register: Register, options: OdooOptions) -> list[AmountProduct]:
    """Return the products of the three options, as far as they are given."""
    return [
        amount_product(odoo, register, option, wanted)
        for option, wanted in _options(options)
        if wanted is not None
    ]


def amount_product(odoo: Odoo, register: Register, option: str, wanted: int | str) -> AmountProduct:
    """Return what an option names."""
    field = "id" if isinstance(wanted, int) else "default_code"
    found = odoo.read(
        "product.product",
        register.of_company([[field, "=", wanted]]),
        ["display_name", "product_tmpl_id", "available_in_pos", "sale_ok", "pos_categ_ids"],
        limit=1,
        context={**register.context, "display_default_code": False},
    )
    if not found:
        return AmountProduct(option, wanted)
    return AmountProduct(
        option,
        wanted,
        product=found[0]["id"],
        template=number(found[0]["product_tmpl_id"]),
        name=text(found[0]["display_name"]),
        dropped=_dropped(found[0], register),
    )


def _dropped(product: Record, register: Register) -> str:
    """Return why the screen of 17 does not load a product. It drops an order's lines of such."""
    if product["id"] == register.tip_product:
        return ""
    if not product["available_in_pos"]:
        return _("it is not available in the point of sale")
    if not product["sale_ok"]:
        return _("it cannot be sold")
    if register.categories and not set(register.categories) & set(product["pos_categ_ids"]):
        return _("it is in none of the categories that the point of sale is limited to")
    return ""


def _options(options: OdooOptions) -> Iterator[tuple[str, int | str | None]]:
    yield "delivery_product", options.delivery_product
    yield "tip_product", options.tip_product
    yield "discount_product", options.discount_product
