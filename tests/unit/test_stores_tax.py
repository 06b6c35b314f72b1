"""Whether till, service and orders agree about taxes; what differs is told in words."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.stores.taxes import (
    Component,
    Levied,
    OrderTax,
    TaxedItem,
    Taxes,
    differences,
    taxed_orders,
    total,
)

VAT = Levied("tax_1", "VAT", (Component("10"),))
LOW = Levied("tax_2", "Reduced", (Component("4"),))
STORE = Taxes(
    enabled=True, level="store", pricing_mode="inclusive", default=VAT.tax_id, taxes=(VAT, LOW)
)


def item(name: str, *rates: str, tax: str = "VAT") -> TaxedItem:
    return TaxedItem(name, tax, rates)


def test_what_agrees_is_not_told() -> None:
    assert differences(STORE, [item("Margherita", "10"), item("Tea", "10.00")]) == ()
    assert differences(STORE, [], [OrderTax("17", inclusive=True, rates=("10",))]) == ()


def test_a_rate_that_differs_is_told_with_both_rates_the_count_and_the_first_item() -> None:
    items = [item("Margherita", "9.5"), item("Calzone", "9.5"), item("Tea", "10")]
    assert differences(STORE, items) == (
        "the till says 9.5 % on 2 items, the service says 10 %; first: Margherita",
    )


def test_the_most_common_difference_comes_first() -> None:
    items = [item("A", "5"), item("B", "9"), item("C", "9")]
    assert [each.split(" on ")[0] for each in differences(STORE, items)] == [
        "the till says 9 %",
        "the till says 5 %",
    ]


def test_a_store_that_takes_no_tax_agrees_with_items_without() -> None:
    off = Taxes(enabled=False, level="store", pricing_mode=None, default=VAT.tax_id, taxes=(VAT,))
    assert differences(off, [item("Tea", "0"), TaxedItem("Bread", "", ())]) == ()
    (told,) = differences(off, [item("Tea", "10")])
    assert "the service charges no tax" in told


def test_by_category_or_product_the_tax_of_the_same_name_counts() -> None:
    for level in ("category", "product"):
        taxes = Taxes(
            enabled=True,
            level=level,
            pricing_mode="inclusive",
            default=VAT.tax_id,
            taxes=(VAT, LOW),
        )
        assert differences(taxes, [item("Tea", "10"), item("Bread", "4", tax="Reduced")]) == ()
        (told,) = differences(taxes, [item("Bread", "5", tax="reduced")])
        assert "the service says 4 %" in told


def test_a_tax_of_an_unknown_name_may_be_any_of_them() -> None:
    taxes = Taxes(
        enabled=True,
        level="product",
        pricing_mode="inclusive",
        default=VAT.tax_id,
        taxes=(VAT, LOW),
    )
    assert differences(taxes, [item("Tea", "4", tax="Getränke")]) == ()
    assert differences(taxes, [item("Gift card", "0", tax="None")]) == ()
    (told,) = differences(taxes, [item("Tea", "19", tax="Getränke")])
    assert told == "the till says 19 % on 1 item, the service has no such tax; first: Tea"


def test_components_agree_one_by_one_or_as_what_they_come_to() -> None:
    parts = Levied("tax_1", "Sales tax", (Component("6"), Component("2.25"), Component("1")))
    taxes = Taxes(
        enabled=True, level="store", pricing_mode="exclusive", default=parts.tax_id, taxes=(parts,)
    )
    assert differences(taxes, [item("Tea", "2.25", "6", "1"), item("Ale", "9.25")]) == ()
    (told,) = differences(taxes, [item("Tea", "6", "2.25")])
    assert "the till says 8.25 %" in told
    assert "the service says 9.25 %" in told


def test_a_compound_component_is_on_top_of_those_before_it() -> None:
    compound = Levied("tax_1", "GST+PST", (Component("5"), Component("10", compound=True)))
    taxes = Taxes(
        enabled=True,
        level="store",
        pricing_mode="exclusive",
        default=compound.tax_id,
        taxes=(compound,),
    )
    assert total(compound.components) == Decimal("15.5")
    assert differences(taxes, [item("Tea", "15.5"), item("Ale", "5", "10")]) == ()
    (told,) = differences(taxes, [item("Tea", "15")])
    assert "the service says 15.5 %" in told


def test_an_order_with_another_rate_is_told() -> None:
    orders = [OrderTax("17", inclusive=True, rates=("10",)), OrderTax("18", None, ("9.5",))]
    assert differences(STORE, [], orders) == (
        "order 18 was taxed at 9.5 %, which is not one of the service's taxes",
    )


def test_an_order_whose_prices_include_tax_differently_is_told() -> None:
    (told,) = differences(STORE, [], [OrderTax("17", inclusive=False, rates=("10",))])
    assert told == "order 17 says that prices do not include tax, the service's taxes say they do"
    added = Taxes(
        enabled=True, level="store", pricing_mode="exclusive", default=VAT.tax_id, taxes=(VAT,)
    )
    (told,) = differences(added, [], [OrderTax("17", inclusive=True, rates=("10",))])
    assert "say that" not in told
    assert "prices include tax" in told


def test_how_an_order_was_taxed_is_read_from_whatever_comes() -> None:
    lines = [
        {"name": "VAT", "rate": 10, "amount": 90},
        {"name": "VAT", "rate": 10.0, "amount": 10},
        {"name": "x", "rate": "bad", "amount": 1},
        {"name": "x", "rate": 4, "amount": 0},
        None,
    ]
    told = taxed_orders({"tax_breakdown": lines, "prices_include_tax": True}, "17")
    assert told.inclusive is True
    assert {Decimal(rate) for rate in told.rates} == {Decimal(10)}
    assert taxed_orders({}, "17") == OrderTax("17", None, ())
    assert taxed_orders({"tax_breakdown": 7, "prices_include_tax": "yes"}, "1").rates == ()


rates = st.decimals(0, 100, places=2).map(str)


@given(st.lists(rates, max_size=4), st.randoms())
def test_the_same_rates_in_any_order_agree(found: list[str], random: object) -> None:
    mixed = list(found)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    tax = Levied("t", "T", tuple(map(Component, found)))
    taxes = Taxes(enabled=True, level="store", pricing_mode=None, default=tax.tax_id, taxes=(tax,))
    assert differences(taxes, [item("Tea", *mixed)]) == ()


@given(st.lists(rates, min_size=1, max_size=4), rates)
def test_a_rate_that_changes_what_is_paid_is_always_told(found: list[str], more: str) -> None:
    tax = Levied("t", "T", tuple(map(Component, found)))
    taxes = Taxes(enabled=True, level="store", pricing_mode=None, default=tax.tax_id, taxes=(tax,))
    told = differences(taxes, [item("Tea", *found, more)])
    assert bool(told) == (Decimal(more) > 0)


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1e999999", "-1e999999", "9" * 50, 1e308, 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["rate", "amount", "name"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(odd, odd, st.text(max_size=5))
def test_no_order_makes_the_comparison_stumble(lines: object, mode: object, number: str) -> None:
    order = taxed_orders({"tax_breakdown": lines, "prices_include_tax": mode}, number)
    differences(STORE, [TaxedItem(number, number, order.rates)], [order])


@given(st.lists(st.sampled_from(["1e999999", "-7", "x", "", "NaN", "9" * 60]), max_size=4))
def test_no_till_makes_the_comparison_stumble(found: list[str]) -> None:
    compound = Levied("t", "T", tuple(Component(rate, compound=True) for rate in found))
    taxes = Taxes(
        enabled=True, level="store", pricing_mode=None, default=compound.tax_id, taxes=(compound,)
    )
    differences(taxes, [item("Tea", *found)])
