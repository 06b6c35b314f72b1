"""What stands in rows becomes what the model has, and an order becomes parameters."""

import sqlite3
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext, ItemUnavailable, StoreClosed
from tillbridge.adapter.conformance.subject import order_of, plain_items
from tillbridge.adapter.prices import PriceReader
from tillbridge.model.instant import is_never
from tillbridge.model.money import exponent, to_major
from tillbridge.model.order import parse_order
from tillbridge_sql import cells
from tillbridge_sql.adapter import ADAPTER, SqlAdapter
from tillbridge_sql.cells import CellError
from tillbridge_sql.order_values import OrderValues, of_key

CURRENCIES = st.sampled_from(["EUR", "JPY", "KWD"])


@given(st.integers(0, 10**9), CURRENCIES)
def test_a_price_is_the_same_whatever_type_the_column_has(minor: int, currency: str) -> None:
    text = to_major(minor, currency)
    for value in (text, Decimal(text), float(text)):
        assert cells.price_of({"price": value}, PriceReader(currency)) == minor


@given(st.integers(1, 10**7), st.sampled_from([0.05, 0.07, 0.1, 0.19, 0.21, 0.255]), CURRENCIES)
def test_a_price_kept_without_tax_gets_its_tax_back(minor: int, rate: float, currency: str) -> None:
    kept = float(to_major(minor, currency)) / (1 + rate)
    assert cells.price_of({"price": kept * (1 + rate)}, PriceReader(currency)) == minor


@pytest.mark.parametrize("value", [None, "", "ask", -1, float("nan"), float("inf"), b"4", True])
def test_what_is_no_price_is_refused(value: object) -> None:
    with pytest.raises(CellError):
        cells.price_of({"price": value}, PriceReader("EUR"))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((b"\x01", True), (b"\x00", False), (1, True), (0.0, False), (Decimal(1), True)),
        *(("Y", True), ("no", False), ("T", True), ("", False), (None, True), (True, True)),
    ],
)
def test_yes_and_no_in_every_database(value: object, wanted: object) -> None:
    assert cells.flag_of({"on": value}, "on", default=True) is wanted


def test_a_name_of_bytes_in_another_encoding_is_refused() -> None:
    assert cells.name_of({"name": "Käse".encode()}) == "Käse"
    with pytest.raises(CellError, match="cannot be read"):
        cells.name_of({"name": "Käse".encode("latin-1")})


def test_ids_are_text_without_what_the_driver_adds() -> None:
    for value in (17, 17.0, Decimal("17.000"), "17  ", b"17"):
        assert cells.id_of({"external_id": value}) == "17"


def test_instants_without_a_zone_are_utc() -> None:
    at = datetime(2026, 1, 2, 18, tzinfo=UTC)
    for value in (at, at.replace(tzinfo=None), "2026-01-02T18:00:00Z", "2026-01-02 18:00:00"):
        assert cells.instant_of({"until": value}, "until") == 1_767_376_800_000


@pytest.mark.parametrize(
    "value",
    ["9999-12-31 23:59:59", "9999-12-31T23:59:59-05:00", datetime(9999, 12, 31, tzinfo=UTC)],
)
def test_for_ever_is_an_instant_that_the_bridge_takes_as_no_end(value: object) -> None:
    until = cells.instant_of({"until": value}, "until")
    assert until is not None
    assert is_never(until)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(CellError):
        cells.instant_of({"until": "tomorrow"}, "until")


@given(st.text(min_size=1, max_size=80))
def test_the_short_key_is_sixteen_characters_that_any_table_holds(key: str) -> None:
    short = str(of_key(key)["key16"])
    assert len(short) == 16
    assert short.isalnum()
    assert short.isascii()


AMOUNT = st.integers(0, 10**6)
OPTION = st.fixed_dictionaries({"quantity": st.integers(1, 4), "unit_price": AMOUNT})
LINE = st.fixed_dictionaries(
    {
        "quantity": st.integers(1, 9),
        "unit_price": AMOUNT,
        "options": st.lists(OPTION, max_size=3),
    }
)


@given(
    lines=st.lists(LINE, min_size=1, max_size=4),
    total=AMOUNT,
    tax=AMOUNT,
    included=st.booleans(),
    currency=CURRENCIES,
)
def test_lines_options_and_the_rest_add_up_to_what_was_paid(
    *, lines: list[dict[str, object]], total: int, tax: int, included: bool, currency: str
) -> None:
    order = parse_order(
        {
            "id": "o",
            "items": lines,
            "total_amount": total,
            "tax": tax,
            "prices_include_tax": included,
        }
    )
    values = OrderValues(order, "o", currency)
    paid = Decimal(str(values.of_order["order_extra"]))
    rows = []
    for line in values.lines:
        quantity = int(str(line.values["line_quantity"]))
        paid += quantity * Decimal(str(line.values["line_price"]))
        rows.append(line.values["row"])
        for option in line.options:
            count = int(str(option.values["option_quantity"]))
            paid += quantity * count * Decimal(str(option.values["option_price"]))
            rows.append(option.values["row"])
    if not included:
        paid += Decimal(tax).scaleb(-exponent(currency))
    assert paid == Decimal(str(values.of_order["order_total"]))
    assert rows == list(range(len(rows)))
    assert values.of_order["extra_row"] == len(rows)


def test_a_file_of_sqlite_is_a_till_too(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "till.db") as made:
        made.executescript(
            "CREATE TABLE items (id TEXT PRIMARY KEY);"
            "INSERT INTO items VALUES ('sku-1'), ('sku-2');"
            "CREATE TABLE open (id INTEGER); INSERT INTO open VALUES (5);"
            "CREATE TABLE orders (n INTEGER PRIMARY KEY, k TEXT UNIQUE, total, session);"
            "CREATE TABLE lines (n INTEGER, item TEXT, price)"
        )
    made.close()
    (tmp_path / "queries.sql").write_text(
        "-- name: find_order\nSELECT n AS reference FROM orders WHERE k = :key\n"
        "-- name: check_session\nSELECT id AS session FROM open\n"
        "-- name: check_item\nSELECT id AS item FROM items WHERE id = :product_id\n"
        "-- name: order\nINSERT INTO orders (k, total, session)"
        " VALUES (:key, :order_total, :session)\n"
        "-- name: order\nSELECT n AS number FROM orders WHERE k = :key\n"
        "-- name: line\nINSERT INTO lines VALUES (:number, :item, :line_price)\n"
    )
    said = {"url": "sqlite:///till.db", "queries": "queries.sql", "orders": True}
    pos = ADAPTER.open(
        ADAPTER.options.model_validate(said), AdapterContext("main", "EUR", "loc", tmp_path)
    )
    assert isinstance(pos, SqlAdapter)
    order = order_of("ord_1", plain_items(2))
    assert pos.write_ticket(order, order.id) == pos.write_ticket(order, order.id)
    with pytest.raises(ItemUnavailable) as missing:
        pos.write_ticket(order_of("ord_2", plain_items(3)), "ord_2")
    assert missing.value.external_ids == ("sku-3",)
    assert pos.find_ticket("ord_2") is None
    with sqlite3.connect(tmp_path / "till.db") as looked:
        assert looked.execute("SELECT n, total, session FROM orders").fetchall() == [(1, 10.75, 5)]
        assert len(looked.execute("SELECT * FROM lines").fetchall()) == 2
        looked.execute("DELETE FROM open")
    looked.close()
    with pytest.raises(StoreClosed):
        pos.write_ticket(order_of("ord_3", plain_items(1)), "ord_3")
    pos.close()


TEXT_PRICES = (
    "CREATE TABLE dish (id TEXT, label TEXT, price TEXT);"
    "INSERT INTO dish VALUES ('1', 'Soup', '1.500'), ('2', 'Stew', '12.000')"
)


@pytest.mark.parametrize(
    ("options", "more", "prices"),
    [
        ({}, "", []),
        ({"decimal": ","}, "", [150_000, 1_200_000]),
        ({"decimal": "."}, "", [150, 1_200]),
        ({}, "; INSERT INTO dish VALUES ('3', 'Tea', '2,50')", [150_000, 1_200_000, 250]),
    ],
)
def test_the_option_or_other_prices_say_what_a_point_in_a_text_means(
    options: dict[str, str], more: str, prices: list[int], tmp_path: Path
) -> None:
    (tmp_path / "dump.sql").write_text(TEXT_PRICES + more)
    (tmp_path / "q.sql").write_text(
        "-- name: items\nSELECT id AS external_id, label AS name, price FROM dish\n"
    )
    said = {"url": "sqlite://", "dump": "dump.sql", "queries": "q.sql", **options}
    context = AdapterContext("main", "EUR", "loc", tmp_path)
    pos = SqlAdapter(ADAPTER.options.model_validate(said), context)  # type: ignore[arg-type] # they are
    try:
        found = pos.read_catalogue()
    finally:
        pos.close()
    assert [item.price for item in found.items.values()] == prices
    if not prices:
        assert [(row.field, row.value) for row in found.bad_rows] == [
            ("price", "1.500"),
            ("price", "12.000"),
        ]
        assert "the option decimal" in found.bad_rows[0].fix
