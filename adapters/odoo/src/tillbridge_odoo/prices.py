"""What a product costs at the point of sale, in major units: as listed, or by its pricelist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol

from tillbridge.adapter.texts import _
from tillbridge_odoo.amounts import decimal_of
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.register import Register, number, text

_RULE = (
    "applied_on",
    "product_id",
    "product_tmpl_id",
    "categ_id",
    "compute_price",
    "base",
    "fixed_price",
    "percent_price",
    "price_discount",
    "price_round",
    "price_surcharge",
    "price_min_margin",
    "price_max_margin",
    "min_quantity",
    "date_start",
    "date_end",
)
# The order in which Odoo looks for the rule of a product: the most special first.
_ORDER = "applied_on, min_quantity desc, categ_id desc, id desc"
_HUNDRED = Decimal(100)


class Unpriced(Exception):
    """The price of a product cannot be worked out here; what it depends on."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Prices(Protocol):
    """Knows the price of every product."""

    def of(self, product: Record, template: Record) -> Decimal:
        """Return the price of one. Raises Unpriced."""
        ...


@dataclass(frozen=True, slots=True)
class SalesPrices:
    """The sales price of each product, with the extra prices of its attributes."""

    def of(self, product: Record, template: Record) -> Decimal:
        """Return it as Odoo works it out."""
        return decimal_of(product["lst_price"])


@dataclass(frozen=True, slots=True)
class PricelistPrices:
    """Prices by the rules of a pricelist, of one piece, at `now` (UTC, as Odoo writes it).

    `parents` are the product categories above each.
    """

    rules: Sequence[Record]
    now: str
    parents: Mapping[int, int | None] = field(default_factory=dict)

    def of(self, product: Record, template: Record) -> Decimal:
        """Return the price by the first rule that fits, or the sales price. Raises Unpriced."""
        listed = decimal_of(product["lst_price"])
        for rule in self.rules:
            if self._is_now(rule) and self._fits(rule, product, template):
                return _price(rule, listed)
        return listed

    def _is_now(self, rule: Record) -> bool:
        start, end = text(rule["date_start"]), text(rule["date_end"])
        return (
            decimal_of(rule["min_quantity"]) <= 1
            and (not start or start <= self.now)
            and (not end or self.now <= end)
        )

    def _fits(self, rule: Record, product: Record, template: Record) -> bool:
        match rule["applied_on"]:
            case "3_global":
                return True
            case "2_product_category":
                return number(rule["categ_id"]) in self._above(number(template["categ_id"]))
            case "1_product":
                return number(rule["product_tmpl_id"]) == number(product["product_tmpl_id"])
            case "0_product_variant":
                return number(rule["product_id"]) == number(product["id"])
        return False

    def _above(self, category: int | None) -> set[int]:
        found: set[int] = set()
        while category is not None and category not in found:
            found.add(category)
            category = self.parents.get(category)
        return found


def read_prices(odoo: Odoo, register: Register) -> Prices:
    """Return what the point of sale's products cost: by its pricelist, if it has one."""
    if register.pricelist is None:
        return SalesPrices()
    rules = odoo.read(
        "product.pricelist.item",
        [["pricelist_id", "=", register.pricelist]],
        _RULE,
        order=_ORDER,
        context=register.context,
    )
    parents = {
        each["id"]: number(each["parent_id"])
        for each in odoo.read("product.category", [], ["parent_id"], context=register.context)
    }
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return PricelistPrices(rules, now, parents)


def _price(rule: Record, listed: Decimal) -> Decimal:
    if rule["compute_price"] == "fixed":
        return decimal_of(rule["fixed_price"])
    if rule["base"] not in {"list_price", False}:
        raise Unpriced(
            _("Its price in the pricelist depends on its cost, or on another pricelist.")
        )
    if rule["compute_price"] == "percentage":
        return listed * (1 - decimal_of(rule["percent_price"]) / _HUNDRED)
    price = listed * (1 - decimal_of(rule["price_discount"]) / _HUNDRED)
    if step := decimal_of(rule["price_round"]):
        price = (price / step).quantize(Decimal(1), ROUND_HALF_UP) * step
    price += decimal_of(rule["price_surcharge"])
    if margin := decimal_of(rule["price_min_margin"]):
        price = max(price, listed + margin)
    if margin := decimal_of(rule["price_max_margin"]):
        price = min(price, listed + margin)
    return price
