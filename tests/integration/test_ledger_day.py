"""What happened lately as the ledger tells it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Executable, update
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, delivery, opened
from tests.support.problem_reports import report_open, report_over
from tillbridge.daemon.checks import record_downtime
from tillbridge.ledger.day import HOUR_MS, read_day
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.models import Delivery, OrderRow, TicketState
from tillbridge.ledger.orders import insert_order
from tillbridge.ledger.problems import ProblemTracker, past_problems
from tillbridge.ledger.prune import CutOffs, prune
from tillbridge.model.order import OrderState

pytestmark = pytest.mark.usefixtures("each_database")

NOW = 1_800_000_000_000


def order(order_id: str, hours_ago: float, **changed: object) -> OrderRow:
    fields: dict[str, Any] = {
        "store": "main",
        "order_id": order_id,
        "received_at": NOW - int(hours_ago * HOUR_MS),
        "payload": "{}",
        "desired_state": OrderState.ACCEPTED,
        "service_state": OrderState.CREATED,
        "ticket": TicketState.WRITTEN,
    }
    return OrderRow(**{**fields, **changed})


async def test_the_last_ticket_and_the_usual_time_of_a_delivery_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(partial(insert_order, row=order("a", 0.5, written_at=NOW - 1000)))
        await ledger.write(partial(insert_order, row=order("b", 0.6, written_at=NOW - 2000)))
        assert (await ledger.read(lambda db: read_day(db, NOW))).handled_ms is None
        for took_ms in (40, 5, 900, None):
            at = None if took_ms is None else NOW + took_ms
            await ledger.write(delivery(received_at=NOW))
            handled = update(Delivery).where(col(Delivery.handled_at).is_(None))
            await ledger.write(partial(_run, statement=handled.values(handled_at=at)))
        day = await ledger.read(lambda db: read_day(db, NOW))
    assert day.last_ticket == {"main": NOW - 1000}
    assert day.handled_ms == 40


async def test_waiting_orders_come_oldest_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        for row in (
            order("young", 0.1, ticket=TicketState.WAITING),
            order("old", 30, ticket=TicketState.WRITING, last_failure="offline", attempts=3),
            order("closed", 0.2, ticket=TicketState.WAITING, closed_at=NOW),
            order("gone", 0.2, ticket=TicketState.WAITING, desired_state=OrderState.CANCELLED),
        ):
            await ledger.write(partial(insert_order, row=row))
        await ledger.write(delivery(received_at=NOW - 5))
        day = await ledger.read(lambda db: read_day(db, NOW))
    assert [(each.order_id, each.attempts, each.failure) for each in day.waiting] == [
        ("old", 3, "offline"),
        ("young", 0, ""),
    ]
    assert day.last_delivery == {"main": NOW - 5}


async def test_a_problem_that_is_over_is_remembered_and_forgotten(tmp_path: Path) -> None:
    clock = StoppedClock(NOW)
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        report_open(tracker, "pos.offline", "main", detail="off")
        clock.forward(60)
        report_over(tracker, "pos.offline", "main")
        report_open(tracker, "pos.offline", "main", detail="off")
        clock.forward(30)
        report_over(tracker, "pos.offline", "main")
        report_open(tracker, "pos.offline", "main", detail="off")
        await tracker.settle()
        past = await ledger.read(lambda db: past_problems(db, ended_after=0))
        assert [(each.code, each.store, each.until - each.since) for each in past] == [
            ("pos.offline", "main", 60_000),
            ("pos.offline", "main", 30_000),
        ]
        await ledger.write(lambda db: prune(db, CutOffs(clock.at_ms + 1, clock.at_ms + 1)))
        assert await ledger.read(lambda db: past_problems(db, ended_after=0)) == []


async def test_the_time_without_a_bridge_is_a_gap(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda db: record_downtime(db, NOW))
        stopped = {"stopped_at": NOW - HOUR_MS}
        await ledger.write(lambda db: put_fact(db, "", "running", stopped, at=NOW - HOUR_MS))
        await ledger.write(lambda db: record_downtime(db, NOW))
        # killed: its last sign of life counts
        await ledger.write(lambda db: put_fact(db, "", "running", {"pid": 1}, at=NOW))
        await ledger.write(lambda db: put_fact(db, "main", "service_contact", {}, at=NOW + 5000))
        await ledger.write(lambda db: record_downtime(db, NOW + 65_000))
        # a restart is none
        await ledger.write(lambda db: put_fact(db, "", "running", {"stopped_at": NOW}, at=NOW))
        await ledger.write(lambda db: record_downtime(db, NOW + 5000))
        past = await ledger.read(lambda db: past_problems(db, ended_after=0))
    assert [(each.code, each.until - each.since) for each in past] == [
        ("bridge.stopped", HOUR_MS),
        ("bridge.stopped", 60_000),
    ]


def _run(db: Connection, statement: Executable) -> None:
    db.execute(statement)
