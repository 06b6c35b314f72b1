from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.sandbox.pages import money
from tillbridge.sandbox.pricing import (
    Component,
    PricedLine,
    PricedOption,
    components_of,
    line_taxes,
    price_order,
)

rates = st.decimals(min_value=0, max_value=30, places=3)
taxes = st.lists(st.builds(Component, st.text(max_size=3), rates, st.booleans()), max_size=3)
options = st.builds(
    PricedOption,
    st.just("prd_o"),
    st.just("Option"),
    st.integers(1, 5),
    st.integers(0, 10_000),
    st.none(),
)
lines = st.builds(
    PricedLine,
    product_id=st.just("prd_1"),
    product_variant_id=st.none(),
    product_name=st.just("Thing"),
    quantity=st.integers(1, 20),
    unit_price=st.integers(0, 100_000),
    external_id=st.just("a"),
    variant_external_id=st.none(),
    options=st.lists(options, max_size=3).map(tuple),
    components=taxes.map(tuple),
)


@given(
    st.lists(lines, min_size=1, max_size=5),
    st.fixed_dictionaries(dict.fromkeys(("fee", "discount", "tip"), st.integers(0, 999))),
    st.booleans(),
)
def test_the_sums_of_any_order_agree(
    ordered: list[PricedLine], extras: dict[str, int], inclusive: bool
) -> None:
    priced = price_order(ordered, inclusive=inclusive, **extras)
    assert priced["subtotal"] == sum(line["subtotal"] for line in priced["items"])
    assert priced["tax"] == sum(line["tax_amount"] for line in priced["items"])
    assert priced["tax"] == sum(part["amount"] for part in priced["tax_breakdown"])
    added = 0 if inclusive else priced["tax"]
    expected = priced["subtotal"] + added + extras["fee"] + extras["tip"] - extras["discount"]
    assert priced["total_amount"] == expected
    assert all(type(line["tax_amount"]) is int for line in priced["items"])


@given(st.integers(0, 10**9), taxes)
def test_inclusive_tax_is_within_the_price(amount: int, components: list[Component]) -> None:
    assert 0 <= sum(line_taxes(amount, components, inclusive=True)) <= amount + len(components)


def test_taxes_round_half_up_and_compound_ones_build_on_those_before() -> None:
    plain = Component("State", Decimal("2.5"), compound=False)
    on_top = Component("City", Decimal(10), compound=True)
    assert line_taxes(100, [plain, on_top], inclusive=False) == [3, 10]
    assert line_taxes(10_000, [plain, on_top], inclusive=False) == [250, 1025]
    assert line_taxes(11_275, [plain, on_top], inclusive=True) == [250, 1025]


def test_an_items_own_tax_counts_where_taxes_are_per_product() -> None:
    own = {"name": "Own", "components": [{"agency": "Own", "rate": 5}]}
    default = {
        "tax_id": "t",
        "name": "D",
        "components": [{"agency": "D", "rate": 7, "compound": False}],
    }
    config = {"enabled": True, "tax_level": "store", "default_tax_id": "t", "taxes": [default]}
    assert [part.agency for part in components_of(config, own)] == ["D"]
    assert [part.agency for part in components_of(config | {"tax_level": "product"}, own)] == [
        "Own"
    ]
    assert [part.agency for part in components_of(config | {"tax_level": "product"}, None)] == ["D"]
    assert components_of(config | {"enabled": False}, own) == ()


def test_money_reads_as_its_currency_does() -> None:
    assert money(123_450, "USD") == "$1,234.50"
    assert money(5, "EUR") == "€0.05"
    assert money(450, "JPY") == "¥450"
    assert money(1_500, "KWD") == "1.500 KWD"
    assert money(1_500, "CHF") == "15.00 CHF"
