"""Orders are found among thousands, and the bridge tells how it does."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from tests.support.ledger_harness import opened
from tillbridge.ledger import orders
from tillbridge.ledger.models import LogEntry, OrderRow
from tillbridge.ledger.orders import OrderFilter, log_event

MANY = 5_000


def fill(connection: Connection) -> None:
    """Five thousand orders: each tenth cancelled, the last three wait for the till."""
    rows: list[dict[str, Any]] = [
        {
            "store": "main" if number % 2 else "bar",
            "order_id": f"ord_{number}",
            "order_number": f"A-{number}",
            "payload": "{}",
            "received_at": number * 1_000,
            "ticket": "waiting" if number > MANY - 3 else "written",
            "ticket_reference": f"T{number}%",
            "written_at": None if number > MANY - 3 else number * 1_000 + 500,
            "desired_state": "cancelled" if number % 10 == 0 else "accepted",
            "service_state": "accepted",
            "updated_at": number,
            "closed_at": number if number % 10 == 0 else None,
        }
        for number in range(1, MANY + 1)
    ]
    connection.execute(insert(OrderRow), rows)
    log = [
        {
            "store": row["store"],
            "order_id": row["order_id"],
            "at": row["received_at"] + 800,
            "event": "order.accepted",
            "detail": {},
        }
        for row in rows
    ]
    connection.execute(insert(LogEntry), log)
    log_event(connection, "main", "ord_7", "order.handled", 9, how="typed", by="page:anna")
    log_event(connection, "bar", "ord_8", "order.handled", 9, how="settled", by="page:anna")
    log_event(connection, "bar", "ord_8", "order.retried", 10, by="page:bob")
    log_event(connection, "main", "ord_9", "order.to_cancel", 10, code="OTHER", by="page:bob")
    log_event(connection, "main", "ord_11", "order.to_cancel", 10, code="OTHER")


async def test_orders_are_found_page_by_page_and_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)

        async def ids(*asked: str, page: int = 1, stores: tuple[str, ...] | None = None) -> list:
            text, state = asked
            found = await ledger.read(
                lambda connection: orders.find_page(
                    connection, OrderFilter(text, state, stores), page=page
                )
            )
            return [found.count, *(row.order_id for row in found.rows)]

        assert (await ids("", ""))[:3] == [MANY, "ord_5000", "ord_4999"]
        assert (await ids("", "", page=2))[1] == "ord_4950"
        assert (await ids("", "", page=9_999))[1:] == []
        assert await ids("a-4321", "") == [1, "ord_4321"]
        assert await ids("T77%", "") == [1, "ord_77"], "% is a character like any other"
        assert (await ids("", "", stores=("bar",)))[0] == MANY / 2
        assert (await ids("", "waiting"))[0] == 2, "one of the three is cancelled"
        assert (await ids("", "cancelled"))[0] == MANY / 10
        assert (await ids("", "open"))[0] == MANY * 9 / 10
        assert (await ids("", "by_hand")) == [3, "ord_9", "ord_8", "ord_7"]


async def test_who_handled_an_order_is_known_until_it_is_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        page = await ledger.read(
            lambda connection: orders.find_page(connection, OrderFilter(state="by_hand"))
        )
        assert {key: each.detail["by"] for key, each in page.handled.items()} == {
            "ord_7": "page:anna"
        }


async def test_new_orders_are_counted_since_somebody_looked(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        new = await ledger.read(
            lambda connection: orders.received_since(connection, 4_990_000, stores=("bar",))
        )
        assert new == 5
