"""Numbers from outside are refused before a conversion could stop the whole process."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.prices import PriceReader
from tillbridge.model.lenient import decimal
from tillbridge.model.money import to_minor
from tillbridge.model.numbers import (
    MAX_EXPONENT,
    map_leaves,
    parse_decimal,
    parse_finite_float,
    parse_json_float,
    parse_json_int,
)
from tillbridge.orders.intake import OrderCreated, order_of, read_event
from tillbridge.pos.folder.json_pieces import parse
from tillbridge.service.transport import parse_json
from tillbridge_aloha.modifiers import number
from tillbridge_clover.groups import _count
from tillbridge_clover.parts import _rate
from tillbridge_sql.cells import CellError, number_of, price_of, rate_of, text_of
from tillbridge_square.adapter import SquareAdapter
from tillbridge_square.options import SquareOptions

BOMBS = ["1e999999999", "1E1000000", "9E999990", "-1e99999", "1e-999999999", "0e999999999"]


def _refused(call: Callable[[str], object], text: str) -> bool:
    """Return whether the call refuses the text, by an error or as nothing."""
    try:
        return call(text) in {None, ""}
    except (ValueError, ArithmeticError):
        return True


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize(
    "call",
    [
        parse_decimal,
        lambda text: to_minor(Decimal(text), "EUR"),
        _count,
        _rate,
        lambda text: number_of({"seats": text}, "seats"),
        lambda text: price_of({"price": Decimal(text)}, PriceReader("EUR")),
        lambda text: rate_of({"rate": text}),
        lambda text: number({"id": text}, "id"),
        lambda text: decimal(Decimal(text)),
        lambda text: decimal(parse_json(f'{{"rate": {text}}}'.encode())["rate"]),
    ],
)
def test_a_number_with_a_huge_exponent_is_refused(call: Callable[[str], object], bomb: str) -> None:
    assert _refused(call, bomb)


def test_a_huge_number_of_a_database_is_shown_as_it_is() -> None:
    assert text_of({"external_id": Decimal("1E+1000000")}, "external_id") == "1E+1000000"
    assert text_of({"external_id": Decimal("42.0")}, "external_id") == "42"
    with pytest.raises(CellError):
        number_of({"seats": "1e100000"}, "seats")


@given(st.text())
def test_any_text_is_a_number_of_a_sane_size_or_refused(text: str) -> None:
    try:
        found = parse_decimal(text)
    except ValueError:
        return
    assert found.is_finite()
    assert abs(found.adjusted()) <= MAX_EXPONENT


@given(st.integers() | st.decimals(allow_nan=True, allow_infinity=True))
def test_any_number_is_of_a_sane_size_or_refused(value: int | Decimal) -> None:
    try:
        found = parse_decimal(value)
    except ValueError:
        return
    assert found == value
    assert len(format(found, "f")) < 1200


@pytest.mark.parametrize("text", ["9" * 22, "9" * 5000, "1" + "0" * 40 + ".50"])
def test_an_amount_with_too_many_digits_is_no_money(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of money"):
        to_minor(text, "EUR")


def test_one_number_beyond_reason_does_not_cost_the_document() -> None:
    digits = "1" * 5000
    fraction = "1e999999999999999999999"
    items = ", ".join(f'{{"price": {price}}}' for price in (digits, fraction, "5"))
    prices = [item["price"] for item in parse(f'{{"items": [{items}]}}')["items"]]
    assert prices == [digits, fraction, 5]
    assert parse_json_int("12") == 12
    assert parse_json_float("0.10") == Decimal("0.10")


def test_an_item_of_square_with_a_price_of_5000_digits_is_one_bad_row(tmp_path: Path) -> None:
    def item(name: str, amount: str) -> str:
        money = f'{{"amount": {amount}, "currency": "EUR"}}'
        variation = (
            f'{{"id": "v-{name}", "item_variation_data": '
            f'{{"name": "", "pricing_type": "FIXED_PRICING", "price_money": {money}}}}}'
        )
        data = f'{{"name": "{name}", "variations": [{variation}]}}'
        return f'{{"type": "ITEM", "id": "{name}", "item_data": {data}}}'

    path = tmp_path / "catalog.json"
    path.write_text(f'{{"objects": [{item("soup", "9" * 5000)}, {item("bread", "250")}]}}')
    context = AdapterContext("bar", "EUR", "loc", tmp_path)
    found = SquareAdapter(SquareOptions(export=path), context).read_catalogue()
    assert list(found.items) == ["bread"]
    assert [row.external_id for row in found.bad_rows] == ["soup"]


def test_an_amount_beyond_all_numbers_is_not_told_and_never_infinity() -> None:
    body = b'{"data": {"id": "ord_1", "total_amount": 1e400, "tip": -1e999}}'
    event = read_event("order.created", body)
    assert isinstance(event, OrderCreated)
    assert json.loads(event.payload) == {"id": "ord_1", "total_amount": None, "tip": None}
    stored_before = order_of("ord_1", '{"id": "ord_1", "total_amount": Infinity, "tip": NaN}')
    assert dict(stored_before.payload) == {"id": "ord_1", "total_amount": None, "tip": None}
    assert parse_finite_float("1.5") == 1.5


def test_the_leaves_of_json_are_changed_and_its_shape_stays() -> None:
    found = map_leaves({"a": [1, {"b": 2}], "c": (), "d": None}, lambda each: f"<{each}>")
    assert found == {"a": ["<1>", {"b": "<2>"}], "c": [], "d": "<None>"}
