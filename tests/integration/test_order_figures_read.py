"""The orders' figures as counted from a ledger, with and without a daemon."""

from pathlib import Path

from sqlalchemy import Connection, insert

from tests.support.ledger_harness import opened
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import log_event
from tillbridge.ledger.snapshot import read_figures, take_figures

NOW = 1_800_000_000_000
HOUR = 3_600_000


def order(order_id: str, hours_ago: int, **changed: object) -> dict:
    at = NOW - hours_ago * HOUR
    fields = {
        "store": "main",
        "order_id": order_id,
        "payload": "",
        "received_at": at,
        "ticket": "written",
        "written_at": at + 2_000,
        "desired_state": "accepted",
        "service_state": "accepted",
        "updated_at": at,
        "reason_code": None,
    }
    return {**fields, **changed}


def fill(connection: Connection) -> None:
    gone = {"ticket": "refused", "written_at": None, "desired_state": "cancelled"}
    connection.execute(
        insert(OrderRow),
        [
            order("well", 1),
            order("again", 2),
            order("by_hand", 3, desired_state="cancelled", reason_code="OTHER"),
            order("kitchen", 4, desired_state="cancelled", reason_code="OTHER"),
            order("lost", 30, reason_code="POS_OFFLINE", **gone),
            order("left", 40),
            order("ancient", 24 * 8),
            order("other", 1, store="bar"),
        ],
    )
    at = NOW - HOUR
    log_event(connection, "main", "well", "order.received", at)
    log_event(connection, "main", "well", "order.accepted", at + 4_000)
    log_event(connection, "main", "well", "order.accepted", at + 9_000)
    log_event(connection, "main", "again", "order.retried", at)
    log_event(connection, "main", "by_hand", "order.to_cancel", at, code="OTHER", by="person")
    log_event(connection, "main", "kitchen", "ticket.rejected", at)
    log_event(connection, "main", "kitchen", "order.to_cancel", at, code="OTHER")
    log_event(connection, "main", "lost", "order.to_cancel", at, code="POS_OFFLINE")
    log_event(connection, "main", "left", "order.withdrawn", at, how="left_to_person")


async def test_figures_are_counted_by_store_and_span(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        running = await ledger.read(lambda connection: take_figures(connection, NOW))
        alone = read_figures(tmp_path / "ledger.db", NOW)
    assert running == alone
    assert set(alone) == {"main", "bar"}
    day, week = (alone["main"].by_span[span] for span in ("24h", "7d"))
    assert (day.orders, day.needed_a_hand, day.lost) == (4, 2, 0)
    assert (week.orders, week.needed_a_hand, week.lost) == (6, 4, 1)
    assert day.to_accept is not None
    assert (day.to_accept.median, day.to_accept.count) == (4.0, 1)
    assert day.to_ticket is not None
    assert day.to_ticket.median == 2.0
