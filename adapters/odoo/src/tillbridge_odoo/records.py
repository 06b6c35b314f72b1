"""The records of Odoo that the menu is made of, as Odoo has them now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tillbridge_odoo.odoo import PAGE, Odoo, Record
from tillbridge_odoo.register import Register, number, text
from tillbridge_odoo.taxes import FIELDS as TAX_FIELDS

_TEMPLATE = (
    "name",
    "list_price",
    "description_sale",
    "description_self_order",
    "public_description",
    "pos_categ_ids",
    "taxes_id",
    "attribute_line_ids",
    "combo_ids",
    "categ_id",
    "currency_id",
)
_PRODUCT = (
    "product_tmpl_id",
    "lst_price",
    "product_template_attribute_value_ids",
)
_CHOSEN = ("display_name", "taxes_id")
_LINE = ("product_tmpl_id", "attribute_id", "product_template_value_ids", "sequence")
_VALUE = ("name", "attribute_line_id", "attribute_id", "product_tmpl_id", "price_extra")
_ATTRIBUTE = ("name", "display_type", "create_variant")
_CATEGORY = ("name", "parent_id", "sequence")
_COMBO = ("name", "base_price", "combo_line_ids", "combo_item_ids", "qty_free", "qty_max")
_COMBO_ITEM = ("product_id", "combo_id", "combo_price", "extra_price")

_RULE = "loyalty.rule"
BY_VALUE = "attribute_line_id, product_attribute_value_id, id"


@dataclass(frozen=True, slots=True)
class Models:
    """What the models are called in this Odoo; combos have another name since 18."""

    combo: str
    combo_item: str

    @classmethod
    def of(cls, odoo: Odoo) -> "Models":
        """Return the names of this Odoo; no combos before 17."""
        for combo, item in (
            ("product.combo", "product.combo.item"),
            ("pos.combo", "pos.combo.line"),
        ):
            if "combo_ids" in odoo.fields("product.template") and odoo.has_model(combo):
                return cls(combo, item)
        return cls("", "")


@dataclass(frozen=True, slots=True)
class ComboItem:
    """One product that can be chosen in a combo; `extra` is what it costs more (major units)."""

    id: int
    product: int
    extra: object


@dataclass(frozen=True, slots=True)
class Combo:
    """One choice in a combo: `free` are in its price, up to `most` can be taken."""

    id: int
    name: str
    base_price: object
    items: tuple[ComboItem, ...]
    free: int = 1
    most: int = 1


@dataclass(frozen=True, slots=True)
class Records:
    """All of it, by number. `products` are the variants in use, `chosen` those in combos."""

    templates: Mapping[int, Record]
    products: Mapping[int, Record]
    lines: Mapping[int, Record]
    values: Mapping[int, Record]
    attributes: Mapping[int, Record]
    categories: Mapping[int, Record]
    combos: Mapping[int, Combo] = field(default_factory=dict)
    chosen: Mapping[int, Record] = field(default_factory=dict)
    taxes: Sequence[Record] = ()


def sold_domain(odoo: Odoo, register: Register) -> list[object]:
    """Return the domain of the templates that the point of sale sells.

    Where it is limited to categories it sells theirs alone, and not those of categories below.
    """
    domain = register.of_company(
        [["available_in_pos", "=", True], ["sale_ok", "=", True], ["active", "=", True]]
    )
    if register.categories:
        domain.append(["pos_categ_ids", "in", list(register.categories)])
    if cards := _cards(odoo, register):
        domain.append(["id", "not in", cards])
    return domain


def _cards(odoo: Odoo, register: Register) -> list[int]:
    """Return templates of gift cards and eWallets: written by us, no card would come of them."""
    if not odoo.has_model(_RULE):
        return []
    kinds = [["program_type", "in", ["gift_card", "ewallet"]]]
    rules = odoo.read(_RULE, kinds, ["product_ids"], context=register.context)
    ids = sorted({each for rule in rules for each in rule["product_ids"]})
    products = odoo.read_ids("product.product", ids, ["product_tmpl_id"], context=register.context)
    return sorted({number(each["product_tmpl_id"]) or 0 for each in products.values()})


def read_records(odoo: Odoo, register: Register, ids: Sequence[int], context: Record) -> Records:
    """Read all that the menu of these templates is made of."""
    templates = odoo.read_ids("product.template", ids, _TEMPLATE, context=context)
    products = _of_templates(odoo, "product.product", list(templates), _PRODUCT, "id", context)
    lines = _of_templates(
        odoo,
        "product.template.attribute.line",
        [each for each, template in templates.items() if template["attribute_line_ids"]],
        _LINE,
        "sequence, id" if "sequence" in odoo.fields("product.template.attribute.line") else "id",
        context,
    )
    configured = sorted({number(line["product_tmpl_id"]) or 0 for line in lines.values()})
    values = _of_templates(
        odoo,
        "product.template.attribute.value",
        configured,
        _VALUE,
        BY_VALUE,
        context,
        ["ptav_active", "=", True],
    )
    attributes = odoo.read_ids(
        "product.attribute",
        sorted({number(line["attribute_id"]) or 0 for line in lines.values()}),
        _ATTRIBUTE,
        context=context,
    )
    categories = odoo.read("pos.category", [], _CATEGORY, order="sequence, name", context=context)
    combos = _combos(odoo, templates, context)
    in_combos = sorted({item.product for combo in combos.values() for item in combo.items})
    return Records(
        templates=templates,
        products=products,
        lines=lines,
        values=values,
        attributes=attributes,
        categories={each["id"]: each for each in categories},
        combos=combos,
        chosen=odoo.read_ids("product.product", in_combos, _CHOSEN, context=context),
        taxes=read_taxes(odoo, register),
    )


def read_taxes(odoo: Odoo, register: Register) -> list[Record]:
    """Return the taxes of the company, and of those it is a branch of."""
    return odoo.read(
        "account.tax",
        [["company_id", "parent_of", [register.company]]],
        TAX_FIELDS,
        order="sequence, id",
        context=register.context,
    )


def read_combos(
    odoo: Odoo, models: Models, ids: Sequence[int], context: Record
) -> dict[int, Combo]:
    """Return the choices of combos with these numbers, with what can be chosen in them."""
    records = odoo.read_ids(models.combo, ids, _COMBO, context=context)
    named = [
        each
        for record in records.values()
        for each in record.get("combo_item_ids") or record.get("combo_line_ids") or ()
    ]
    items = odoo.read_ids(models.combo_item, named, _COMBO_ITEM, context=context)
    return {each: _combo(record, items) for each, record in records.items()}


def _combo(record: Record, items: Mapping[int, Record]) -> Combo:
    named = record.get("combo_item_ids") or record.get("combo_line_ids") or ()
    return Combo(
        id=record["id"],
        name=text(record["name"]),
        base_price=record.get("base_price"),
        items=tuple(_combo_item(items[each]) for each in named if each in items),
        free=int(record.get("qty_free", 1)),
        most=max(int(record.get("qty_max", 1)), int(record.get("qty_free", 1))),
    )


def _combo_item(record: Record) -> ComboItem:
    extra = record.get("extra_price", record.get("combo_price"))
    return ComboItem(record["id"], number(record["product_id"]) or 0, extra)


def _combos(odoo: Odoo, templates: Mapping[int, Record], context: Record) -> dict[int, Combo]:
    named = {each for template in templates.values() for each in template.get("combo_ids") or ()}
    return read_combos(odoo, Models.of(odoo), sorted(named), context) if named else {}


def _of_templates(
    odoo: Odoo,
    model: str,
    ids: Sequence[int],
    fields: Sequence[str],
    order: str,
    context: Record,
    *also: object,
) -> dict[int, Record]:
    found: dict[int, Record] = {}
    for start in range(0, len(ids), PAGE):
        domain = [["product_tmpl_id", "in", list(ids[start : start + PAGE])], *also]
        for record in odoo.read(model, domain, fields, order=order, context=context):
            found[record["id"]] = record
    return found
