"""What is known already is neither a new delivery nor a second order."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, func, select

from tests.support.ledger_harness import delivery
from tillbridge.ledger.backend import SQLite
from tillbridge.ledger.models import OrderRow, metadata
from tillbridge.ledger.orders import get_order, has_delivery, insert_order
from tillbridge.model.order import OrderState


@pytest.fixture
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as opened:
        metadata.create_all(opened)
        yield opened


def rows(connection: Connection, table: str = "inbox") -> int:
    return connection.execute(select(func.count()).select_from(metadata.tables[table])).scalar_one()


def order(order_id: str, number: str = "1", *, store: str = "main") -> OrderRow:
    return OrderRow(
        store=store,
        order_id=order_id,
        order_number=number,
        payload="{}",
        placed_at=None,
        received_at=1,
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
        updated_at=1,
    )


def test_all_are_new_where_none_is_known(connection: Connection) -> None:
    assert SQLite.record(connection, [delivery("a"), delivery("b"), delivery("c")]) == [True] * 3
    assert rows(connection) == 3


def test_an_event_is_known_by_its_id_whatever_its_delivery_is_called(
    connection: Connection,
) -> None:
    SQLite.record(connection, [delivery("a")])
    assert SQLite.record(connection, [delivery("a", delivery_id="another")]) == [False]
    assert rows(connection) == 1
    assert not has_delivery(connection, "main", "another")


def test_two_events_of_one_delivery_id_are_two(connection: Connection) -> None:
    assert SQLite.record(
        connection, [delivery("a", delivery_id="d"), delivery("b", delivery_id="d")]
    ) == [
        True,
        True,
    ]
    assert has_delivery(connection, "main", "d")
    assert not has_delivery(connection, "other", "d")


def test_the_same_event_of_another_store_is_another(connection: Connection) -> None:
    SQLite.record(connection, [delivery("a")])
    assert SQLite.record(connection, [delivery("a", store="other"), delivery("a")]) == [True, False]


@pytest.mark.parametrize(
    ("events", "new"),
    [
        ("a x b", [False, True, False]),
        ("x a y", [True, False, True]),
        ("x x", [True, False]),
        ("a x x y a", [False, True, False, True, False]),
        ("x y a b", [True, True, False, False]),
    ],
)
def test_it_is_told_which_of_a_batch_are_new(
    connection: Connection, events: str, new: list[bool]
) -> None:
    SQLite.record(connection, [delivery(each) for each in "abcdef"])
    assert SQLite.record(connection, [delivery(each) for each in events.split()]) == new
    assert rows(connection) == 6 + sum(new)


def test_a_new_event_beside_a_known_one_that_came_just_before(connection: Connection) -> None:
    SQLite.record(connection, [delivery("a")])
    assert SQLite.record(connection, [delivery("a"), delivery("b")]) == [False, True]
    assert SQLite.record(connection, [delivery("b"), delivery("c"), delivery("a")]) == [
        False,
        True,
        False,
    ]


def test_the_first_order_of_an_id_stays(connection: Connection) -> None:
    assert insert_order(connection, order("o", "1"))
    assert not insert_order(connection, order("o", "2"))
    assert insert_order(connection, order("o", "3", store="other"))
    found = get_order(connection, "main", "o")
    assert found is not None
    assert found.order_number == "1"
    assert rows(connection, "orders") == 2
