"""Which models there are in each version, with the fields that matter here, and their types."""

from collections.abc import Mapping
from dataclasses import dataclass

_COMMON = """
res.company: name char, currency_id many2one, tax_calculation_rounding_method selection
res.currency: name char, active boolean
res.users: name char, login char, active boolean
pos.config: name char, active boolean, company_id many2one, currency_id many2one,
 module_pos_restaurant boolean, limit_categories boolean, iface_available_categ_ids many2many,
 payment_method_ids many2many, floor_ids many2many, pricelist_id many2one, use_pricelist boolean,
 tip_product_id many2one, iface_tipproduct boolean, self_ordering_mode selection,
 picking_type_id many2one, discount_product_id many2one,
 current_session_id many2one, current_session_state char
res.lang: name char, code char, active boolean
pos.session: name char, state selection, sequence_number integer, config_id many2one,
 rescue boolean, user_id many2one
pos.category: name char, parent_id many2one, sequence integer
pos.payment.method: name char, active boolean, type selection, is_cash_count boolean,
 company_id many2one, use_payment_terminal selection, split_transactions boolean, sequence integer
account.tax: name char, amount float, amount_type selection, price_include boolean,
 include_base_amount boolean, is_base_affected boolean, children_tax_ids many2many,
 sequence integer, company_id many2one, active boolean, type_tax_use selection
product.category: name char, parent_id many2one
product.attribute: name char, display_type selection, create_variant selection, sequence integer
product.attribute.value: name char, attribute_id many2one
loyalty.rule: program_type selection, product_ids many2many
product.template.attribute.line: product_tmpl_id many2one, attribute_id many2one,
 value_ids many2many, product_template_value_ids one2many, sequence integer, active boolean
product.template.attribute.value: name char, attribute_line_id many2one, attribute_id many2one,
 product_tmpl_id many2one, price_extra float, product_attribute_value_id many2one,
 ptav_active boolean
product.template: name char, list_price float, standard_price float, description_sale text,
 pos_categ_ids many2many, taxes_id many2many, attribute_line_ids one2many, combo_ids many2many,
 available_in_pos boolean, sale_ok boolean, active boolean, company_id many2one,
 self_order_available boolean, type selection, categ_id many2one, sequence integer,
 default_code char, product_variant_ids one2many, currency_id many2one
product.product: product_tmpl_id many2one, active boolean, lst_price float*,
 product_template_attribute_value_ids many2many, display_name char*, qty_available float*,
 virtual_available float*
product.pricelist: name char, currency_id many2one, active boolean
product.pricelist.item: pricelist_id many2one, applied_on selection, product_tmpl_id many2one,
 product_id many2one, categ_id many2one, compute_price selection, base selection,
 fixed_price float, percent_price float, price_discount float, price_surcharge float,
 price_round float, price_min_margin float, price_max_margin float, min_quantity float,
 date_start datetime, date_end datetime
restaurant.floor: name char, pos_config_ids many2many, table_ids one2many, sequence integer,
 active boolean
restaurant.table: floor_id many2one, seats integer, active boolean
stock.picking.type: name char, warehouse_id many2one
pos.payment: name char, pos_order_id many2one, amount float, payment_method_id many2one,
 payment_date datetime, transaction_id char, card_type char, cardholder_name char,
 payment_status char, ticket char
pos.make.payment: config_id many2one, amount float, payment_method_id many2one, payment_name char
pos.order: name char, state selection, pos_reference char, session_id many2one,
 config_id many2one, company_id many2one, user_id many2one, partner_id many2one,
 date_order datetime, sequence_number integer, fiscal_position_id many2one,
 pricelist_id many2one, amount_paid float, amount_total float, amount_tax float,
 amount_return float, lines one2many, payment_ids one2many, to_invoice boolean,
 is_tipped boolean, tip_amount float, access_token char, last_order_preparation_change char,
 ticket_code char, table_id many2one, customer_count integer, account_move many2one
pos.order.line: order_id many2one, product_id many2one, qty float, price_unit float,
 price_subtotal float, price_subtotal_incl float, price_extra float, discount float,
 tax_ids many2many, full_product_name char, customer_note char, uuid char,
 attribute_value_ids many2many, pack_lot_ids one2many, combo_parent_id many2one,
 combo_line_ids one2many, note char, name char, refunded_orderline_id many2one,
 refunded_qty float*
"""
_17 = """
product.template: detailed_type selection, description_self_order html
pos.combo: name char, base_price float, combo_line_ids one2many, sequence integer
pos.combo.line: product_id many2one, combo_price float, lst_price float*, combo_id many2one
restaurant.table: name char, identifier char
pos.order: note text, tracking_number char*
pos.order.line: combo_id many2one
"""
_18 = """
product.template: is_storable boolean, public_description html
product.combo: name char, base_price float*, combo_item_ids one2many, sequence integer
product.combo.item: product_id many2one, extra_price float, lst_price float*, combo_id many2one
restaurant.table: table_number integer
pos.payment: uuid char
pos.order: uuid char, general_note text, floating_order_name char, tracking_number char*
pos.order.line: price_type selection, combo_item_id many2one
"""
_19 = """
product.template: is_storable boolean, public_description html
product.combo: name char, base_price float*, combo_item_ids one2many, sequence integer,
 qty_free integer, qty_max integer
product.combo.item: product_id many2one, extra_price float, lst_price float*, combo_id many2one
restaurant.table: table_number integer
pos.payment: uuid char
pos.order: uuid char, general_customer_note text, internal_note text, floating_order_name char,
 tracking_number char, preset_id many2one, is_refund boolean
pos.order.line: price_type selection, combo_item_id many2one
"""
_OWN = {17: _17, 18: _18, 19: _19}
_STAMPS = {"create_date": "datetime", "write_date": "datetime"}


@dataclass(frozen=True, slots=True)
class FieldOf:
    """A field; `stored` is False for what is worked out when it is read."""

    type: str
    stored: bool = True


Schema = Mapping[str, Mapping[str, FieldOf]]


def schema_of(version: int) -> Schema:
    """Return the models and fields of a version: 17, 18 or 19."""
    found: dict[str, dict[str, FieldOf]] = {}
    for part in (_COMMON, _OWN[version]):
        for model, fields in _parsed(part).items():
            found.setdefault(model, {}).update(fields)
    for fields in found.values():
        fields["id"] = FieldOf("integer")
        fields.setdefault("display_name", FieldOf("char", stored=False))
        fields.update({name: FieldOf(kind) for name, kind in _STAMPS.items()})
    if version >= 18:
        del found["product.template"]["standard_price"]
    return found


def inherited(schema: Schema) -> frozenset[str]:
    """Return the fields that a product has from its template."""
    return frozenset(schema["product.template"]) - frozenset(schema["product.product"])


def _parsed(text: str) -> dict[str, dict[str, FieldOf]]:
    found: dict[str, dict[str, FieldOf]] = {}
    for line in text.replace("\n ", " ").strip().splitlines():
        model, fields = line.split(":", 1)
        found[model] = {
            name: FieldOf(kind.rstrip("*"), stored=not kind.endswith("*"))
            for name, kind in (each.split() for each in fields.split(","))
        }
    return found
