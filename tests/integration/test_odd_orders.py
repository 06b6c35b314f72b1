"""Whatever stands in an order, it breaks no page, no command and no ticket."""

import asyncio
import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from tests.support.page_harness import PageHarness, page_harness
from tillbridge.adapter import AdapterContext
from tillbridge.cli.orders import _show_order
from tillbridge.cli.say import document, lines
from tillbridge.config.store import StoreSettings
from tillbridge.ledger.backend import SQLite
from tillbridge.ledger.models import NewDelivery, OrderRow, metadata
from tillbridge.ledger.orders import find_called, open_deliveries
from tillbridge.ledger.problems import open_problems
from tillbridge.model.instant import to_iso
from tillbridge.model.order import OrderState, parse_order
from tillbridge.orders import views
from tillbridge.orders.intake import order_of, process_delivery
from tillbridge_printer.emulated.show import sheets_of
from tillbridge_printer.options import PrinterOptions

SETTINGS = StoreSettings.model_validate(
    {"location_id": "loc-1", "currency": "EUR", "pos": {"adapter": "folder"}}
)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)

TEXTS = st.one_of(
    st.text(max_size=8),
    st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf", "So"]), max_size=4),
    st.sampled_from(["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2", "two", "1e9"]),
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**70), 10**40, 0, -1]),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.lists(TEXTS, max_size=2),
    st.dictionaries(st.text(max_size=3), TEXTS, max_size=2),
)
GOOD = {
    "id": "ord_1",
    "order_number": "1003",
    "order_type": "delivery",
    "payment_status": "paid",
    "customer_id": "cus_1",
    "currency": "EUR",
    "subtotal": 1000,
    "tax": 100,
    "delivery_fee": 0,
    "discount": 0,
    "tip": 0,
    "total_amount": 1100,
    "prices_include_tax": False,
    "tax_breakdown": [{"name": "VAT", "rate": 10, "amount": 100}],
    "special_instructions": "Ring twice",
    "created_at": "2026-11-22T11:00:00.000Z",
}
LINE = {
    "product_id": "p",
    "product_variant_id": None,
    "product_name": "Pizza",
    "quantity": 2,
    "unit_price": 500,
    "subtotal": 1000,
    "tax_amount": 100,
    "external_id": "P01",
    "variant_external_id": None,
}
OPTION = {"product_id": "q", "product_name": "Cheese", "quantity": 1, "unit_price": 0}


def odd(good: Mapping[str, object], *never: str) -> st.SearchStrategy[dict[str, object]]:
    names = [name for name in good if name not in never]
    some = st.dictionaries(st.sampled_from(names), ODD, max_size=4)
    return some.map(lambda each: {**good, **each})


@st.composite
def orders(draw: st.DrawFn) -> dict[str, object]:
    line = draw(odd(LINE)) | {"options": draw(st.one_of(ODD, st.lists(odd(OPTION), max_size=2)))}
    return draw(odd(GOOD, "id")) | {"items": draw(st.one_of(ODD, st.just([line, LINE])))}


@contextlib.contextmanager
def taken_in(data: dict[str, object]) -> Iterator[tuple[Connection, OrderRow]]:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    body = json.dumps({"event_type": "order.created", "data": data}).encode()
    with engine.connect() as connection:
        SQLite.record(
            connection,
            [
                NewDelivery(
                    store="main",
                    delivery_id="d",
                    event_id="e",
                    event_type="order.created",
                    received_at=1_000,
                    body=body,
                )
            ],
        )
        (delivery,) = open_deliveries(connection, 1)
        process_delivery(connection, "main", SETTINGS, delivery, 2_000)
        (row,) = find_called(connection, "ord_1")
        yield connection, row
    engine.dispose()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def harness(runner: asyncio.Runner) -> Iterator[PageHarness]:
    entered = page_harness()
    yield runner.run(entered.__aenter__())
    runner.run(entered.__aexit__(None, None, None))


SOME = settings(max_examples=25, deadline=None)
FEW = settings(max_examples=8, deadline=None)  # a ticket is drawn


def test_no_page_breaks(harness: PageHarness, runner: asyncio.Runner) -> None:
    async def look(connection: Connection, row: OrderRow) -> None:
        shown = views.order_details(connection, row)
        listed = {**views.brief_order(row), "new": True, "day": "2026-11-23"}
        harness.control.orders.whole, harness.control.orders.rows = shown, [listed]
        for path in ("/orders", "/orders/ord_1", "/orders/ord_1/payload", "/orders.csv"):
            answer = await harness.get(path)
            assert answer.status == 200, path

    @SOME
    @given(orders())
    def check(data: dict[str, object]) -> None:
        with taken_in(data) as (connection, row):
            runner.run(look(connection, row))
            for problem in open_problems(connection):
                assert problem.text.encode()

    check()


@SOME
@given(orders())
def test_no_command_breaks(data: dict[str, object]) -> None:
    with taken_in(data) as (connection, row), contextlib.redirect_stdout(utf8()) as out:
        order = views.order_details(connection, row)
        lines(_show_order(order, {}))
        document(order)
        out.flush()


def utf8() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8")


@FEW
@given(orders())
def test_no_ticket_breaks(data: dict[str, object]) -> None:
    with taken_in(data) as (_connection, row):
        order = order_of(row.order_id, row.payload)
    options = PrinterOptions.model_validate({"printer": "file:x", "timezone": "Asia/Kathmandu"})
    context = AdapterContext("main", "EUR", "loc", Path())
    (sheet, *_more) = sheets_of(order, options, context, marks=set(), now=NOW)
    paper = "\n".join(line.text for line in sheet.lines)
    unclear = [each for each in order.lines if not each.quantity_clear]
    assert paper.count("? x") >= len(unclear)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (2, "2"),
        (2.0, "2"),
        ("3", "3"),
        (" 3 ", "3"),
        (2.5, "?"),
        (0, "?"),
        (-1, "?"),
        ("two", "?"),
        ("3.0", "?"),
        ("٣", "?"),
        (True, "?"),
        (None, "?"),
        ([2], "?"),
        (10**9, "?"),
    ],
)
def test_a_quantity_is_understood_or_shown_as_a_question(said: object, read: str) -> None:
    data = GOOD | {"items": [LINE | {"quantity": said, "options": [OPTION]}]}
    (line,) = parse_order(data).lines
    assert line.quantity_text == read
    assert line.options[0].quantity_text == "1"
    with taken_in(data) as (connection, row):
        codes = {each.code for each in open_problems(connection)}
        order = order_of(row.order_id, row.payload)
        told = views.lines_view(row)
    assert ("order.quantity_unclear" in codes) == (read == "?")
    assert order.special_instructions == (
        "Ring twice [ASK HOW MANY: Pizza]" if read == "?" else "Ring twice"
    )
    assert told is not None
    assert str(told["lines"][0]["quantity"]) == read


def test_a_quantity_that_is_not_there_is_not_one() -> None:
    line = {name: value for name, value in LINE.items() if name != "quantity"}
    (read,) = parse_order(GOOD | {"items": [line]}).lines
    assert read.quantity_text == "?"


def test_a_row_of_another_age_is_shown_too() -> None:
    for placed_at in (-(2**62), 2**62):
        row = OrderRow(
            store="main",
            order_id=str(placed_at),
            received_at=0,
            payload="",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        told = views.order_view(row.replace(placed_at=placed_at))
        assert told["placed_at"] == to_iso(placed_at)
        assert to_iso(placed_at)[:4] in {"0001", "9999"}
