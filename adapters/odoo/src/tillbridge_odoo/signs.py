"""The signs that something of the menu has changed, for a small part of what reading it costs.

Odoo stamps a record (`write_date`) when one of its own columns is written, with the second in which
the transaction began. So a stamp can say little: an extra price belongs to another record than the
product, and combos to a third; what is archived is not seen any more; a link between records (a
combo of a product) moves no stamp; and a long import comes with stamps that are older than what was
read before it. The signs are therefore number and stamp of every record that the menu is made of,
and which combos each product has. What is left (a category or a tax linked anew) is found by
reading everything, every few minutes.
"""

from collections.abc import Mapping

from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.records import Models
from tillbridge_odoo.register import Register

Signs = Mapping[str, object]


def read_signs(odoo: Odoo, register: Register, sold: list[object], context: Record) -> Signs:
    """Return the signs of now; equal ones mean that nothing has changed that they tell of.

    `sold` is the domain of the products that are sold.
    """
    in_use: list[object] = [["available_in_pos", "=", True], ["active", "=", True]]
    models = Models.of(odoo)
    signs: dict[str, object] = {
        "register": register,
        "templates": _stamps(odoo, "product.template", sold, context),
        "products": _stamps(odoo, "product.product", register.of_company(in_use), context),
        "values": _stamps(
            odoo, "product.template.attribute.value", [["ptav_active", "=", True]], context
        ),
        "names of values": _stamps(odoo, "product.attribute.value", [], context),
        "attributes": _stamps(odoo, "product.attribute", [], context),
        "categories": _stamps(odoo, "pos.category", [], context),
        "taxes": _stamps(
            odoo, "account.tax", [["company_id", "parent_of", [register.company]]], context
        ),
    }
    if models.combo:
        signs["combos"] = _stamps(odoo, models.combo, [], context)
        signs["combo items"] = _stamps(odoo, models.combo_item, [], context)
        signs["with combos"] = odoo.read(
            "product.template", [*sold, ["combo_ids", "!=", False]], ["combo_ids"], context=context
        )
    if register.pricelist is not None:
        signs["pricelist"] = _stamps(
            odoo, "product.pricelist.item", [["pricelist_id", "=", register.pricelist]], context
        )
    return signs


def _stamps(odoo: Odoo, model: str, domain: list[object], context: Record) -> list[Record]:
    return odoo.read(model, domain, ["write_date"], context=context)
