"""The orders' figures as counted from a ledger, with and without a daemon."""

from datetime import UTC
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from tests.support.ledger_harness import opened
from tests.support.postgresql import url_of
from tillbridge.ledger.figures import read_figures, sales_of, take_figures
from tillbridge.ledger.menu_codec import AcceptedItem, encode_accepted
from tillbridge.ledger.models import MenuItem, OrderRow, StoreOverride
from tillbridge.ledger.orders import log_event
from tillbridge.ledger.pushes import put_override
from tillbridge.menu.views import items_off_sale
from tillbridge.model.catalogue import Item

pytestmark = pytest.mark.usefixtures("each_database")

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
        alone = read_figures(tmp_path / "ledger.db", NOW, url=url_of(tmp_path))
    assert running == alone
    assert set(alone) == {"main", "bar"}
    day, week = (alone["main"].by_span[span] for span in ("24h", "7d"))
    assert (day.orders, day.needed_a_hand, day.lost) == (4, 2, 0)
    assert (week.orders, week.needed_a_hand, week.lost) == (6, 4, 1)
    assert day.to_accept is not None
    assert (day.to_accept.median, day.to_accept.count) == (4.0, 1)
    assert day.to_ticket is not None
    assert day.to_ticket.median == 2.0


async def test_sales_are_read_of_what_the_service_sent_as_long_as_it_is_kept(
    tmp_path: Path,
) -> None:
    paid = '{"total_amount": 1850, "currency": "eur"}'
    async with opened(tmp_path) as ledger:
        await ledger.write(
            lambda db: db.execute(
                insert(OrderRow),
                [
                    order("paid", 1, payload=paid),
                    order("again", 2, payload=paid),
                    order("pruned", 2),
                    order("broken", 2, payload="{"),
                    order("odd", 2, payload='{"total_amount": "1850", "currency": 7}'),
                ],
            )
        )
        known = await ledger.read(lambda db: take_figures(db, NOW, {"main": UTC, "new": UTC}))
    zones = {"main": UTC, "new": UTC}
    assert known == read_figures(tmp_path / "ledger.db", NOW, zones, url=url_of(tmp_path))
    assert known["new"].sales == sales_of((), UTC, NOW)
    sales = known["main"].sales
    assert sales is not None
    assert sales.today.orders == 5
    assert sales.today.revenue == {"EUR": 3700}


async def test_off_sale_is_what_the_board_shows(tmp_path: Path) -> None:
    def item(key: str, *, available: bool, pos: bool) -> AcceptedItem:
        return AcceptedItem(Item(key, key, 100, available=available), None, pos)

    def fill_menu(db: Connection) -> None:
        items = [
            item("on", available=True, pos=True),
            item("off at the till", available=False, pos=False),
            item("taken off", available=False, pos=True),
            item("both", available=False, pos=False),
        ]
        db.execute(insert(MenuItem), [{"store": "main", **encode_accepted(each)} for each in items])
        for key, until in (("taken off", None), ("both", NOW + 1), ("on", NOW - 1), ("size", None)):
            put_override(
                db, StoreOverride(store="main", external_id=key, until=until, by="anna", at=NOW - 9)
            )

    async with opened(tmp_path) as ledger:
        await ledger.write(fill_menu)
        known = await ledger.read(lambda db: take_figures(db, NOW, {"main": None}))
        board = await ledger.read(lambda db: items_off_sale(db, "main", NOW))
    assert known["main"].off_sale == len(board) == 4
