"""The menu of a point of sale, made of Odoo's records. Pure."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from tillbridge.adapter import BadRow, Catalogue, Category, Item, Menu, Source, Variant
from tillbridge.adapter.texts import _
from tillbridge_odoo.amounts import minor
from tillbridge_odoo.choices import Choices, Unsellable
from tillbridge_odoo.names import Kind, named
from tillbridge_odoo.odoo import Record
from tillbridge_odoo.prices import Prices, Unpriced
from tillbridge_odoo.records import Records
from tillbridge_odoo.register import Register, label, number, text
from tillbridge_odoo.taxes import Taxes

_TAG = re.compile(r"<[^>]*>")
_BREAK = re.compile(r"<\s*(?:br|/p|/div|/li)\b[^>]*>", re.IGNORECASE)
_PRICE_FIX = _("Give it a fixed price, or a discount on its sales price, in the pricelist.")
_CURRENCY_FIX = _("Let the point of sale and its company have one currency.")
_COLUMNS = {
    "external_id": "id",
    "name": "name",
    "price": "list_price",
    "description": "public_description",
    "categories": "pos_categ_ids",
    "addon_groups": "attribute_line_ids",
    "tax": "taxes_id",
    "variants": "product_variant_ids",
    "variants.price": "lst_price",
    "variants.variant_name": "product_template_attribute_value_ids",
    "categories.name": "name",
    "add_ons.price": "price_extra",
    "add_ons.name": "name",
    "addon_groups.name": "name",
    "menus.name": "name",
}
_NAME_FIX = _("Give the product a name in Odoo.")


class MenuMaker:
    """Makes the menu of one reading."""

    def __init__(
        self,
        register: Register,
        records: Records,
        prices: Prices,
        *,
        mode: str,
        left_out: Iterable[int] = (),
    ) -> None:
        """Take what was read; templates in `left_out` are for amounts, and not on the menu."""
        self._left_out = frozenset(left_out)
        self._register = register
        self._records = records
        self._prices = prices
        self._mode = mode
        self._taxes = Taxes.of(records.taxes)
        self._choices = Choices(records, self._taxes, register.currency, mode)
        self._variants: dict[int, list[Record]] = {}
        for product in records.products.values():
            self._variants.setdefault(number(product["product_tmpl_id"]) or 0, []).append(product)

    def make(self) -> Catalogue:
        """Return all items; one that cannot be said is a bad row, and stays as it was."""
        items: list[Item] = []
        bad: list[BadRow] = []
        for template_id, template in self._records.templates.items():
            products = self._variants.get(template_id)
            if template_id in self._special or not products:
                continue  # a tip or discount, or a product all of whose variants are archived
            try:
                items.append(self._item(template, products))
            except Unsellable as slip:
                bad.append(
                    BadRow(
                        place=_place("product.template", template),
                        text=slip.text,
                        fix=slip.fix,
                        external_id=named(Kind.TEMPLATE, template_id),
                        field=slip.field_name,
                    )
                )
        used = {category for item in items for category in item.categories}
        return Catalogue.of(
            items,
            categories=[each for each in self._categories() if each.external_id in used],
            add_ons=self._choices.add_ons.values(),
            addon_groups=self._choices.groups.values(),
            menus=[Menu(self._menu_id, self._register.name)],
            bad_rows=bad,
            source=self._source(),
        )

    def _source(self) -> Source:
        records, register = self._records, self._register
        places: dict[str, str] = {}
        part_places = {self._menu_id: f'Odoo, pos.config {register.id} "{register.name}"'}
        for kind, model, found, into in (
            (Kind.PRODUCT, "product.product", records.products, places),
            (Kind.TEMPLATE, "product.template", records.templates, places),
            (Kind.CATEGORY, "pos.category", records.categories, part_places),
            (Kind.LINE, "product.template.attribute.line", records.lines, part_places),
            (Kind.VALUE, "product.template.attribute.value", records.values, part_places),
        ):
            into |= {named(kind, each): _place(model, record) for each, record in found.items()}
        for each, combo in records.combos.items():
            place = f'Odoo, combo {each} "{combo.name}"'
            part_places[named(Kind.COMBO, each)] = place
            part_places |= {named(Kind.COMBO_ITEM, item.id): place for item in combo.items}
        return Source(places, _COLUMNS, part_places)

    @property
    def _menu_id(self) -> str:
        return named(Kind.POS, self._register.id)

    @property
    def _special(self) -> frozenset[int]:
        products = self._records.products
        return frozenset(
            number(products[each]["product_tmpl_id"]) or 0
            for each in self._register.special
            if each in products
        ).union(self._left_out)

    def _categories(self) -> Sequence[Category]:
        return [
            Category(named(Kind.CATEGORY, each), _one_line(record["name"]))
            for each, record in self._records.categories.items()
        ]

    def _item(self, template: Record, products: Sequence[Record]) -> Item:
        name = _one_line(template["name"])
        if not name:
            raise Unsellable("name", _("The product has no name."), _NAME_FIX)
        currency = label(template.get("currency_id"))
        if currency and currency != self._register.currency:
            text_ = _(
                "Its price is in {currency}, and the point of sale's in another currency."
            ).format(currency=currency)
            raise Unsellable("currency_id", text_, _CURRENCY_FIX)
        taxes = self._taxes_of(template)
        variants = [
            Variant(
                external_id=named(Kind.PRODUCT, product["id"]),
                variant_name=self._variant_name(product) or name,
                price=self._price(product, template, taxes),
            )
            for product in products
        ]
        known = self._records.categories
        return Item(
            external_id=named(Kind.TEMPLATE, template["id"]),
            name=name,
            price=min(variant.price for variant in variants),
            description=_description(template),
            categories=tuple(
                named(Kind.CATEGORY, each) for each in template["pos_categ_ids"] if each in known
            ),
            addon_groups=self._choices.of(template, taxes),
            variants=tuple(variants) if len(variants) > 1 else (),
            tax=self._taxes.item_tax(taxes),
            menus=(self._menu_id,),
        )

    def _taxes_of(self, template: Record) -> list[int]:
        """Return a product's taxes; a combo is taxed as its parts are, where they agree."""
        parts = {
            tuple(self._taxes.known(self._records.chosen[item.product]["taxes_id"]))
            for combo in template.get("combo_ids") or ()
            for item in (self._records.combos[combo].items if combo in self._records.combos else ())
            if item.product in self._records.chosen
        }
        if len(parts) == 1:
            return list(parts.pop())
        return self._taxes.known(template["taxes_id"])

    def _price(self, product: Record, template: Record, taxes: Sequence[int]) -> int:
        try:
            listed = self._prices.of(product, template)
        except Unpriced as failure:
            raise Unsellable("pricelist_id", failure.text, _PRICE_FIX) from failure
        price = self._taxes.shown(listed, taxes, self._mode)
        if price < 0:
            raise Unsellable(
                "list_price", _("The price is below zero."), _("Correct the sales price in Odoo.")
            )
        return minor(price, self._register.currency)

    def _variant_name(self, product: Record) -> str:
        values: Mapping[int, Record] = self._records.values
        named_values = product["product_template_attribute_value_ids"]
        return ", ".join(_one_line(values[each]["name"]) for each in named_values if each in values)


def _place(model: str, record: Record) -> str:
    """Return how a person finds a record."""
    name = _one_line(record.get("name"))
    return f"Odoo, {model} {record['id']}" + (f' "{name}"' if name else "")


def _description(template: Record) -> str:
    for field in ("description_self_order", "public_description"):
        if plain := _plain(text(template.get(field))):
            return plain
    return text(template.get("description_sale")).strip()


def _plain(markup: str) -> str:
    """Return the text in a field of HTML; paragraphs are lines."""
    lines = html.unescape(_TAG.sub("", _BREAK.sub("\n", markup))).split("\n")
    return "\n".join(line for line in (" ".join(each.split()) for each in lines) if line)


def _one_line(value: object) -> str:
    return " ".join(text(value).split())
