"""An order is readable whatever its odd fields, so long as it says which order it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.order import parse_order

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_lines_options_and_money_are_read() -> None:
    order = parse_order(
        {
            "id": "ord_1",
            "order_number": "17",
            "order_type": "delivery",
            "currency": "usd",
            "total_amount": 1450,
            "created_at": "2026-11-21T19:02:00.000Z",
            "items": [
                {
                    "product_name": "Margherita",
                    "quantity": 2,
                    "unit_price": 650,
                    "subtotal": 1300,
                    "external_id": "p1",
                    "variant_external_id": None,
                    "options": [
                        {
                            "product_name": "Basil",
                            "quantity": 1,
                            "unit_price": 50,
                            "external_id": "x",
                        }
                    ],
                }
            ],
        }
    )
    assert (order.id, order.currency, order.total_amount) == ("ord_1", "USD", 1450)
    assert order.lines[0].options[0].unit_price == 50
    assert order.lines[0].variant_external_id is None


@pytest.mark.parametrize("data", [None, [], "ord_1", {}, {"id": ""}, {"id": None}, {"id": {}}])
def test_an_order_without_an_id_is_unreadable(data: object) -> None:
    with pytest.raises(ValueError, match=r"id|object"):
        parse_order(data)


@given(
    st.dictionaries(
        st.sampled_from(["items", "currency", "created_at", "total_amount", "order_number"]),
        json_values,
    )
)
def test_odd_fields_never_make_an_order_unreadable(odd: dict[str, Any]) -> None:
    order = parse_order({**odd, "id": "ord_1"})
    assert order.id == "ord_1"
    assert order.payload == {**odd, "id": "ord_1"}
    assert order.total_amount is None or type(order.total_amount) is int
