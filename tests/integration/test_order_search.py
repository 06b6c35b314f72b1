"""Orders are found among thousands, and the bridge tells how it does."""

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from tests.support.ledger_harness import opened
from tillbridge.ledger import orders
from tillbridge.ledger.models import LogEntry, OrderRow
from tillbridge.ledger.orders import OrderFilter, log_event
from tillbridge.orders.sentences import raw_types
from tillbridge.orders.views import orders_page

pytestmark = pytest.mark.usefixtures("each_database")

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


PAYLOADS = {
    "ord_a": {
        "total_amount": 1250,
        "currency": "usd",
        "order_type": "Dine-In",
        "special_instructions": "Table 12. No ice",
        "items": [
            {"product_name": "Käsespätzle", "options": [{"product_name": "Extra bacon"}]},
            "odd",
        ],
    },
    "ord_b": {
        "total_amount": 800,
        "currency": "USD",
        "order_type": "delivery",
        "customer": {"name": "Ana Ünal"},
        "items": [{"product_name": "Cola 50%"}],
    },
    "ord_c": {"total_amount": "?", "order_type": 7, "items": {"product_name": 3}},
    "ord_d": None,  # what was ordered is forgotten
}
A_DAY = 86_400_000


def fill_payloads(connection: Connection) -> None:
    rows: list[dict[str, Any]] = [
        {
            "store": "main",
            "order_id": order_id,
            "order_number": f"10{place}",
            "payload": "" if payload is None else json.dumps(payload),
            "received_at": 1_795_000_000_000 + (place // 2) * A_DAY,
            "ticket": "written",
            "desired_state": "cancelled" if order_id == "ord_b" else "accepted",
            "service_state": "accepted",
            "updated_at": 1,
        }
        for place, (order_id, payload) in enumerate(PAYLOADS.items())
    ]
    connection.execute(insert(OrderRow), rows)


async def test_an_order_is_found_by_what_is_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill_payloads)

        async def ids(text: str = "", **asked: Any) -> set[str]:  # noqa: ANN401 -- of a filter
            found = await ledger.read(
                lambda connection: orders.find_page(connection, OrderFilter(text, **asked))
            )
            return {row.order_id for row in found.rows}

        assert await ids("spätz") == {"ord_a"}
        assert await ids("KÄSE") == {"ord_a"}
        assert await ids("extra BACON") == {"ord_a"}, "what was chosen, too"
        assert await ids("50%") == {"ord_b"}
        assert await ids("ünal") == {"ord_b"}, "whatever is a capital"
        assert await ids("table 12") == {"ord_a"}
        assert await ids("product_name") == set(), "names of fields are no dishes"
        assert await ids("no ice") == set(), "what a guest wrote is for staff"
        assert await ids("#102") == {"ord_c"}
        assert await ids(types=raw_types("dine_in")) == {"ord_a"}
        assert await ids(types=raw_types("delivery")) == {"ord_b"}
        assert await ids(since=1_795_000_000_000 + A_DAY) == {"ord_c", "ord_d"}
        assert await ids(until=1_795_000_000_000 + A_DAY) == {"ord_a", "ord_b"}


async def test_a_day_has_totals_without_what_was_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill_payloads)
        now = 1_795_000_000_000 + A_DAY
        page = await ledger.read(
            lambda connection: orders_page(connection, OrderFilter(), 1, now, UTC)
        )
        assert page["days"] == [
            {"day": "2026-11-19", "count": 2, "cancelled": 0, "revenue": {}, "amounts": False},
            {
                "day": "2026-11-18",
                "count": 2,
                "cancelled": 1,
                "revenue": {"USD": 1250},
                "amounts": True,
            },
        ]
        assert [each["day"] for each in page["orders"]] == ["2026-11-19"] * 2 + ["2026-11-18"] * 2
        assert page["today"] == "2026-11-19"
