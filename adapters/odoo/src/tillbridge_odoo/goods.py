"""Asking Odoo for what an order names."""

from collections.abc import Sequence

from tillbridge_odoo.basket import Goods, Wanted
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.records import Models, read_combos, read_taxes
from tillbridge_odoo.register import Register, number
from tillbridge_odoo.taxes import Taxes

_PRODUCT = (
    "display_name",
    "product_tmpl_id",
    "lst_price",
    "list_price",
    "categ_id",
    "taxes_id",
    "available_in_pos",
    "sale_ok",
    "combo_ids",
    "pos_categ_ids",
    "product_template_attribute_value_ids",
)
_VALUE = ("name", "price_extra", "product_tmpl_id")


def read_goods(odoo: Odoo, register: Register, wanted: Sequence[Wanted]) -> Goods:
    """Return the products, values and combos that an order names, as far as they are in use."""
    context = {**register.context, "display_default_code": False}
    named = sorted({each.product for each in wanted if each.product is not None})
    templates = sorted({each.template for each in wanted if each.template is not None})
    products = {
        each["id"]: each
        for each in odoo.read(
            "product.product",
            register.of_company(["|", ["id", "in", named], ["product_tmpl_id", "in", templates]]),
            _PRODUCT,
            context=context,
        )
    }
    of_template: dict[int, list[int]] = {}
    for each, product in products.items():
        of_template.setdefault(number(product["product_tmpl_id"]) or 0, []).append(each)
    combos = sorted(
        {each for product in products.values() for each in product.get("combo_ids") or ()}
    )
    found = read_combos(odoo, Models.of(odoo), combos, context) if combos else {}
    parts = sorted({item.product for combo in found.values() for item in combo.items})
    return Goods(
        products=products,
        templates=of_template,
        values=_values(odoo, wanted, context),
        combos=found,
        parts=odoo.read_ids("product.product", parts, _PRODUCT, context=context),
        taxes=Taxes.of(read_taxes(odoo, register)),
    )


def _values(odoo: Odoo, wanted: Sequence[Wanted], context: Record) -> dict[int, Record]:
    ids = sorted({value.number for each in wanted for value in each.values})
    if not ids:
        return {}
    domain = [["id", "in", ids], ["ptav_active", "=", True]]
    model = "product.template.attribute.value"
    return {each["id"]: each for each in odoo.read(model, domain, _VALUE, context=context)}
