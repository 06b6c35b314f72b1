"""The ledger in numbers, and what it forgets in time."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, delivery, opened
from tillbridge.core.errors import LedgerError
from tillbridge.ledger import facts, problems
from tillbridge.ledger.backup import BACKUPS_STORED, back_up, back_ups, forget_old_files
from tillbridge.ledger.community import latest_parents, parent_of, put_parent
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.models import (
    CommunityChild,
    Delivery,
    Hold,
    LogEntry,
    MenuItem,
    OrderRow,
    Push,
)
from tillbridge.ledger.orders import handled, open_deliveries
from tillbridge.ledger.prune import CutOffs, Pruned, cut_offs, prune
from tillbridge.ledger.snapshot import Held, Snapshot, StoreSnapshot, read_snapshot, take_snapshot
from tillbridge.model.community import ChildOrder, ParentOrder

DAY = 86_400_000


def order(order_id: str, **changed: object) -> dict:
    fields = {
        "store": "main",
        "order_id": order_id,
        "payload": '{"customer": "planted"}',
        "received_at": 1000,
        "ticket": "written",
        "desired_state": "accepted",
        "service_state": "accepted",
        "closed_at": None,
        "updated_at": 1000,
    }
    return {**fields, **changed}


def fill(connection: Connection) -> None:
    connection.execute(
        insert(OrderRow),
        [
            order("done", service_state="completed", desired_state="completed", closed_at=5),
            order("late", ticket="waiting", received_at=700, service_state="created"),
            order("later", ticket="writing", received_at=800, service_state="created"),
            order(
                "cancelled", ticket="waiting", desired_state="cancelled", service_state="created"
            ),
            order("elsewhere", store="other"),
        ],
    )
    connection.execute(
        insert(MenuItem),
        [
            {"store": "main", "external_id": f"i{n}", "body": "{}", "pos_available": True}
            for n in range(3)
        ],
    )
    connection.execute(
        insert(Hold),
        {"store": "main", "digest": "d", "since": 9, "reasons": ["wild"], "summary": {}},
    )
    connection.execute(
        insert(Push), {"store": "main", "kind": "full", "started_at": 1, "state": "running"}
    )
    facts.put_fact(connection, "main", "service_store_id", "st_1", at=1)
    facts.put_fact(connection, "", "running", {"pid": 1}, at=1)
    problems.open_problem(connection, "pos.offline", "main", "", {"detail": "x"}, 3)


async def test_the_numbers_are_the_same_with_and_without_a_daemon(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        await ledger.write(delivery())
        running = await ledger.read(take_snapshot)
        assert read_snapshot(tmp_path / LEDGER_FILE) == running
    stopped = read_snapshot(tmp_path / LEDGER_FILE)
    assert stopped == running
    assert stopped.store("main") == StoreSnapshot(
        waiting=2,
        oldest_waiting_at=700,
        by_state={"completed": 1, "created": 3},
        untold=3,
        unhandled=1,
        acknowledged_items=3,
        refused_items=0,
        pushes_running=1,
        held=Held(9, ("wild",), "d"),
        facts={"service_store_id": "st_1"},
    )
    assert stopped.store("other").by_state == {"accepted": 1}
    assert stopped.store("nobody") == StoreSnapshot()
    assert stopped.facts == {"running": {"pid": 1}}
    assert [each.text for each in stopped.problems] == ["The till is not taking orders: x"]


async def test_the_numbers_of_a_new_ledger_are_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        assert await ledger.read(take_snapshot) == Snapshot({}, (), {})


def test_no_ledger_and_a_damaged_one_are_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="There is no database"):
        read_snapshot(tmp_path / LEDGER_FILE)
    (tmp_path / LEDGER_FILE).write_bytes(b"garbage" * 1000)
    with pytest.raises(LedgerError, match="cannot be read"):
        read_snapshot(tmp_path / LEDGER_FILE)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
async def test_the_numbers_can_be_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
    tmp_path.chmod(0o500)
    try:
        assert read_snapshot(tmp_path / LEDGER_FILE).store("main").waiting == 2
    finally:
        tmp_path.chmod(0o700)


def test_reading_the_numbers_does_not_import_what_is_slow() -> None:
    script = (
        "import sys, tillbridge.ledger.snapshot\n"
        "sys.exit(bool({'sqlalchemy', 'pydantic', 'aiohttp'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_personal_data_never_outlives_history() -> None:
    before = cut_offs(1000 * DAY, keep_personal_data_days=60, keep_history_days=30)
    assert before == CutOffs(personal_data=970 * DAY, history=970 * DAY)
    before = cut_offs(1000 * DAY, keep_personal_data_days=30, keep_history_days=400)
    assert before == CutOffs(personal_data=970 * DAY, history=600 * DAY)


async def test_personal_data_goes_first_and_history_later(tmp_path: Path) -> None:
    def fill_with_ages(connection: Connection) -> None:
        connection.execute(
            insert(OrderRow),
            [
                order("new", closed_at=90, updated_at=90),
                order("old", closed_at=40, updated_at=40),
                order("ancient", closed_at=5, updated_at=5),
                order("never_closed", updated_at=40),
                order("still_waiting", ticket="waiting", updated_at=1),
            ],
        )
        connection.execute(
            insert(LogEntry),
            [{"store": "main", "order_id": "o", "at": at, "event": "e"} for at in (5, 40)],
        )
        connection.execute(
            insert(Push),
            [
                {
                    "store": "main",
                    "kind": "full",
                    "started_at": 1,
                    "finished_at": at,
                    "state": state,
                }
                for at, state in ((5, "success"), (None, "running"))
            ],
        )

    before = CutOffs(personal_data=50, history=10)
    async with opened(tmp_path) as ledger:
        for _ in range(4):
            await ledger.write(delivery(event_type="unheard.of", body=b"planted"))
        waiting = await ledger.read(lambda connection: open_deliveries(connection, 10))
        for each, at in zip(waiting, (5, 40, 90), strict=False):
            await ledger.write(partial(handled, delivery=each.id, outcome="", at=at))
        await ledger.write(fill_with_ages)
        total = Pruned()
        while pruned := await ledger.write(lambda connection: prune(connection, before, 1)):
            assert pruned.emptied + pruned.forgotten <= 6, "one small batch at a time"
            total += pruned
        assert total.forgotten == 4
        payloads = await ledger.read(
            lambda connection: dict(
                connection.execute(select(col(OrderRow.order_id), col(OrderRow.payload))).all()
            )
        )
        assert {name for name, payload in payloads.items() if payload} == {"new", "still_waiting"}
        assert set(payloads) == {"new", "old", "never_closed", "still_waiting"}
        bodies = await ledger.read(
            lambda connection: list(connection.scalars(select(col(Delivery.body))))
        )
        assert sorted(map(bytes, bodies)) == [b"", b"planted", b"planted"]
        assert await ledger.write(delivery(waiting[1].event_id)) is False


async def test_a_communitys_orders_lose_their_customers_and_then_go_with_their_parts(
    tmp_path: Path,
) -> None:
    def parent(order_id: str) -> ParentOrder:
        child = ChildOrder(f"{order_id}_child", "st_main")
        return ParentOrder(order_id, "delivered", children=(child,), body={"customer": "planted"})

    def fill_with_ages(connection: Connection) -> None:
        for order_id, at in (("new", 90), ("old", 40), ("ancient", 5)):
            put_parent(connection, "communities/x", parent(order_id), at=at)

    async with opened(tmp_path) as ledger:
        await ledger.write(fill_with_ages)
        while await ledger.write(lambda connection: prune(connection, CutOffs(50, 10), 1)):
            pass
        left = await ledger.read(lambda connection: latest_parents(connection, "communities/x", 10))
        assert [(each.order_id, bool(each.payload)) for each in left] == [
            ("new", True),
            ("old", False),
        ]
        children = await ledger.read(
            lambda connection: set(connection.scalars(select(col(CommunityChild.order_id))))
        )
        assert children == {"new_child", "old_child"}
        kept = await ledger.read(lambda connection: parent_of(connection, "old_child"))
        assert kept is not None


async def test_five_back_ups_are_kept_and_old_files_forgotten(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        await ledger.write(fill)
        for _ in range(BACKUPS_STORED + 1):
            clock.forward(3600)
            back_up(tmp_path, at=clock.now_ms())
        clock.forward(3600)
        newest = back_up(tmp_path, at=clock.now_ms())
        assert len(back_ups(tmp_path)) == BACKUPS_STORED
        assert back_ups(tmp_path)[0] == newest
        assert read_snapshot(newest).store("main").waiting == 2
        damaged = tmp_path / f"{LEDGER_FILE}.damaged-20200101T000000.000Z"
        for path in (damaged, newest):
            path.touch()
            os.utime(path, (1000, 1000))
        assert forget_old_files(tmp_path, before=2_000_000) == 2
        assert not damaged.exists()
        assert len(back_ups(tmp_path)) == BACKUPS_STORED - 1
