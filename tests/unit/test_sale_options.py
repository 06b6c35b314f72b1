"""What an owner leaves out is not sold online, whichever adapter reads the export."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import AddOn, AddOnGroup, ExportUnreadable, Item, Variant
from tillbridge.adapter.sale_options import (
    NotForSale,
    SaleOptions,
    SaleRules,
    StockOptions,
    TaxOptions,
    chosen_taxes,
    is_sold_out,
)

PITA = Item("pita", "Pita", 0, addon_groups=("Filling",))
GROUPS = {"Filling": AddOnGroup("Filling", "Filling", 1, 1, required=True, add_ons=("a", "b"))}
ADD_ONS = {"a": AddOn("a", "Falafel", 650), "b": AddOn("b", "Lamb", 790)}


def rules(**options: object) -> SaleRules:
    return SaleRules(SaleOptions.model_validate(options), GROUPS, ADD_ONS)


@pytest.mark.parametrize(
    ("zero_prices", "sold"), [("sell", True), ("leave_out", False)], ids=["sell", "leave_out"]
)
def test_a_free_item_is_sold_as_the_option_says(zero_prices: str, *, sold: bool) -> None:
    of_export = rules(zero_prices=zero_prices)
    assert (of_export.offered(Item("w", "Tap water", 0)) is not None) is sold
    left_out = of_export.facts("menu.csv").left_out
    assert [(each.name, each.reason) for each in left_out] == (
        [] if sold else [("Tap water", "zero_price")]
    )


def test_a_free_item_that_is_refused_says_so() -> None:
    with pytest.raises(NotForSale, match='"Tap water" costs nothing') as refused:
        rules(zero_prices="refuse").offered(Item("w", "Tap water", 0))
    assert "leave_out" in refused.value.fix


@pytest.mark.parametrize("zero_prices", ["sell", "leave_out", "refuse"])
def test_an_item_whose_price_is_in_a_required_choice_is_sold(zero_prices: str) -> None:
    assert rules(zero_prices=zero_prices).offered(PITA) == PITA


def test_a_required_choice_with_a_free_option_is_no_price() -> None:
    of_export = SaleRules(
        SaleOptions(zero_prices="leave_out"), GROUPS, {**ADD_ONS, "b": AddOn("b", "Plain", 0)}
    )
    assert of_export.offered(PITA) is None


def test_only_the_free_sizes_are_left_out() -> None:
    sizes = (Variant("s", "Small", 0), Variant("l", "Large", 300), Variant("x", "Extra", 400))
    latte = Item("latte", "Latte", 0, variants=sizes)
    of_export = rules(zero_prices="leave_out")
    sold = of_export.offered(latte)
    assert sold is not None
    assert (sold.price, [each.external_id for each in sold.variants]) == (300, ["l", "x"])
    assert [each.name for each in of_export.facts("").left_out] == ["Latte (Small)"]


@given(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 3))
def test_no_free_price_passes_unless_it_is_sold(prices: list[int], price: int) -> None:
    sizes = tuple(Variant(str(at), str(at), each) for at, each in enumerate(prices))
    sold = rules(zero_prices="leave_out").offered(Item("i", "I", price, variants=sizes))
    if sold is not None:
        assert all(each.price > 0 for each in sold.variants)
        assert sold.variants or sold.price > 0
    else:
        assert not any(prices)


def test_items_of_a_category_are_left_out_by_its_name_in_any_case() -> None:
    of_export = rules(leave_out_categories=["Raw  materials"])
    flour = Item("flour", "Flour", 90, categories=("Bakery", "RAW MATERIALS"))
    assert of_export.offered(flour) is None
    assert of_export.offered(PITA) == PITA
    facts = of_export.facts("menu.csv")
    assert [(each.reason, each.detail) for each in facts.left_out] == [
        ("category", "RAW MATERIALS")
    ]
    assert not facts.warnings


def test_a_category_that_there_is_not_is_a_warning() -> None:
    facts = rules(leave_out_categories=["Mrech"]).facts("menu.csv")
    assert [(each.place, "Mrech" in each.text) for each in facts.warnings] == [("menu.csv", True)]


def test_taxes_are_chosen_by_name() -> None:
    there = [("Cash Tax", 16), ("Card  Tax", 5)]
    assert chosen_taxes(TaxOptions(), there, export="e") == (16, 5)
    assert chosen_taxes(TaxOptions(taxes=("card tax",)), there, export="e") == (5,)
    assert chosen_taxes(TaxOptions(taxes=()), there, export="e") == ()
    with pytest.raises(ExportUnreadable, match=r'no tax "VAT"; it has "Cash Tax", "Card Tax"'):
        chosen_taxes(TaxOptions(taxes=("VAT",)), there, export="e")


def test_sold_out_by_stock_counts_only_what_is_tracked() -> None:
    options = StockOptions(sold_out_at_stock=Decimal(2))
    assert is_sold_out(options, Decimal("2.000"))
    assert is_sold_out(options, Decimal(-3))
    assert not is_sold_out(options, Decimal(3))
    assert not is_sold_out(options, None)
    assert not is_sold_out(StockOptions(), Decimal(0))
