"""Prices by a pricelist, and lines for what belongs to a whole order."""

from decimal import Decimal
from typing import Any

import pytest

from tillbridge.adapter import PosFailure, PriceMismatch
from tillbridge_odoo.emulated.shop import Shop, line_of, order_for
from tillbridge_odoo.prices import PricelistPrices

NOW = "2026-06-01 12:00:00"


def rule(applied_on: str = "3_global", compute: str = "fixed", **values: object) -> dict[str, Any]:
    return {
        "applied_on": applied_on,
        "compute_price": compute,
        "base": "list_price",
        "min_quantity": 0,
        "date_start": False,
        "date_end": False,
        "product_id": False,
        "product_tmpl_id": False,
        "categ_id": False,
        "fixed_price": 0,
        "percent_price": 0,
        "price_discount": 0,
        "price_round": 0,
        "price_surcharge": 0,
        "price_min_margin": 0,
        "price_max_margin": 0,
        **values,
    }


PRODUCT = {"id": 7, "product_tmpl_id": [5, "Soup"], "lst_price": Decimal(10)}
TEMPLATE = {"categ_id": [3, "Starters"]}


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ([], "10"),
        ([rule(fixed_price=8)], "8"),
        ([rule(compute="percentage", percent_price=25)], "7.5"),
        ([rule(compute="formula", price_discount=10, price_surcharge=Decimal("0.5"))], "9.5"),
        ([rule(compute="formula", price_discount=13, price_round=Decimal("0.5"))], "8.5"),
        ([rule(compute="formula", price_discount=90, price_min_margin=-2)], "8"),
        ([rule(compute="formula", price_discount=-90, price_max_margin=3)], "13"),
        ([rule("0_product_variant", product_id=[7, "Soup"], fixed_price=1), rule()], "1"),
        ([rule("0_product_variant", product_id=[8, "Other"], fixed_price=1)], "10"),
        ([rule("1_product", product_tmpl_id=[5, "Soup"], fixed_price=2)], "2"),
        ([rule("2_product_category", categ_id=[1, "All"], fixed_price=3)], "3"),
        ([rule("2_product_category", categ_id=[9, "Drinks"], fixed_price=3)], "10"),
        ([rule(fixed_price=8, min_quantity=6)], "10"),
        ([rule(fixed_price=8, date_start="2026-06-01 12:00:01")], "10"),
        ([rule(fixed_price=8, date_end="2026-06-01 11:59:59")], "10"),
        ([rule(fixed_price=8, date_start="2026-01-01 00:00:00", date_end=NOW)], "8"),
    ],
)
def test_the_first_rule_that_fits_makes_the_price(rules: list[dict[str, Any]], wanted: str) -> None:
    prices = PricelistPrices(rules, NOW, {3: 2, 2: 1, 1: None, 9: 9})
    assert prices.of(PRODUCT, TEMPLATE) == Decimal(wanted)


def test_the_menu_has_the_prices_of_the_pricelist(shop: Shop) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    pricelist = shop.store.add("product.pricelist", name="Online")
    for values in (
        {"applied_on": "3_global", "compute_price": "percentage", "percent_price": 10.0},
        {"applied_on": "1_product", "product_tmpl_id": soup, "fixed_price": 5.0},
    ):
        given = {"compute_price": "fixed", "base": "list_price", **values}
        shop.store.add("product.pricelist.item", pricelist_id=pricelist, **given)
    shop.store.set("pos.config", 1, pricelist_id=pricelist, use_pricelist=True)
    pos = shop.open(order_prices="check")
    menu = pos.read_catalogue().items
    assert [menu[f"tmpl-{each}"].price for each in (soup, bread)] == [500, 180]
    with pytest.raises(PriceMismatch):
        pos.write_ticket(order_for(line_of(f"tmpl-{soup}", price=450)), "ord_1")
    pos.write_ticket(order_for(line_of(f"tmpl-{soup}", price=500)), "ord_1")
    assert shop.orders()[0]["pricelist_id"] == pricelist
    shop.store.set("product.pricelist.item", 2, fixed_price=6.0)
    assert pos.read_catalogue().items[f"tmpl-{soup}"].price == 600


def test_a_price_that_depends_on_the_cost_is_refused_by_name(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pricelist = shop.store.add("product.pricelist", name="Staff")
    shop.store.add(
        "product.pricelist.item",
        pricelist_id=pricelist,
        applied_on="3_global",
        compute_price="formula",
        base="standard_price",
    )
    shop.store.set("pos.config", 1, pricelist_id=pricelist, use_pricelist=True)
    (bad,) = shop.open().read_catalogue().bad_rows
    assert (bad.external_id, bad.place) == (f"tmpl-{soup}", f'Odoo, product.template {soup} "Soup"')
    with pytest.raises(PosFailure, match="depends on its cost"):
        shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")


def test_a_pricelist_that_is_switched_off_is_left_alone(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pricelist = shop.store.add("product.pricelist", name="Online")
    shop.store.set("pos.config", 1, pricelist_id=pricelist, use_pricelist=False)
    assert shop.open().read_catalogue().items[f"tmpl-{soup}"].price == 450


def test_prices_in_another_currency_are_refused_by_name(shop: Shop) -> None:
    shop.store.add("res.currency", id=2, name="USD")
    shop.product("Soup", 4.5, currency_id=2)
    (bad,) = shop.open().read_catalogue().bad_rows
    assert "USD" in bad.text


def test_fee_tip_and_discount_become_lines_of_their_products(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    fee = shop.product("Delivery", 0.0, default_code="DELIVERY")
    tip, discount = shop.product("Tip", 0.0), shop.product("Discount", 0.0)
    pos = shop.open(
        orders="paid", delivery_product="DELIVERY", tip_product=tip, discount_product=discount
    )
    asked = order_for(line_of(f"tmpl-{soup}", price=450), delivery_fee=300, tip=100, discount=50)
    pos.write_ticket(asked, "ord_1")
    written = [(each["product_id"], each["price_unit"]) for each in shop.lines()]
    assert written == [(soup, 4.5), (fee, 3.0), (tip, 1.0), (discount, -0.5)]
    (order,) = shop.orders()
    assert (order["amount_total"], order["amount_paid"], order["state"]) == (8.0, 8.0, "paid")


def test_a_product_for_fees_that_is_not_there_is_told(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open(delivery_product="GONE")
    with pytest.raises(PosFailure, match="'GONE', which the option delivery_product names"):
        pos.write_ticket(order_for(line_of(f"tmpl-{soup}"), delivery_fee=300), "ord_1")
    pos.write_ticket(order_for(line_of(f"tmpl-{soup}"), delivery_fee=0), "ord_1")
    assert len(shop.lines()) == 1
