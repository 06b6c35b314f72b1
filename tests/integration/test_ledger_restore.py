"""A backup in the ledger's place: nothing newer is lost, and the POS is asked first."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, delivery, opened
from tillbridge.config.bridge import BridgeSettings
from tillbridge.core.errors import ConfigError, LedgerError, LedgerLocked
from tillbridge.daemon.checks import enforce_budget
from tillbridge.ledger import audit, facts
from tillbridge.ledger.backup import back_up, back_ups, set_asides, vault_of
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.models import Delivery, LogEntry, MenuItem, OrderRow, Push
from tillbridge.ledger.orders import get_order, handled, update_order
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.recover import restore

AT = 2_000_000_000_000


def order(number: int, ticket: str, *, updated_at: int = 1) -> dict:
    return {
        "store": "main",
        "order_id": f"ord_{number}",
        "payload": json.dumps({"id": f"ord_{number}"}),
        "received_at": number,
        "ticket": ticket,
        "desired_state": "accepted",
        "service_state": "created",
        "updated_at": updated_at,
    }


def add(connection: Connection, *rows: dict) -> None:
    connection.execute(insert(OrderRow), list(rows))


async def backed_up(data_dir: Path) -> Path:
    """A ledger with an order that waits and one that is written, and its backup."""
    async with opened(data_dir) as ledger:
        await ledger.write(lambda connection: add(connection, order(1, "waiting")))
        await ledger.write(lambda connection: add(connection, order(2, "written")))
        await ledger.write(delivery("evt_1"))
        item = {"store": "main", "external_id": "i1", "body": "{}", "pos_available": True}
        job = {"store": "main", "kind": "full", "started_at": 1, "state": "running"}

        def rest(connection: Connection) -> None:
            connection.execute(insert(MenuItem), [item])
            connection.execute(insert(Push), [job])
            facts.put_fact(connection, "main", "service_store_id", "st_1", at=1)

        await ledger.write(rest)
        ledger.vault.put("main/refresh_token", "hush-hush")
        return back_up(data_dir, at=1)


async def test_orders_that_may_be_in_the_pos_are_asked_for_first(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    (tmp_path / LEDGER_FILE).unlink()
    done = restore(tmp_path, saved, at=AT, who="command:anna")
    assert done.to_ask == 1
    assert done.replaced is None
    async with opened(tmp_path) as ledger:
        tickets = dict(
            await ledger.read(
                lambda c: c.execute(select(col(OrderRow.order_id), col(OrderRow.ticket))).all()
            )
        )
        assert tickets == {"ord_1": "writing", "ord_2": "written"}
        rebuilt = await ledger.read(lambda c: facts.get_fact(c, "", "rebuilt"))
        assert rebuilt["at_ms"] == AT
        assert await ledger.read(lambda c: facts.get_fact(c, "main", "service_store_id")) == "st_1"


async def test_the_menu_is_pushed_whole_and_no_old_job_is_asked_for(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    restore(tmp_path, saved, at=AT, who="command:anna")
    async with opened(tmp_path) as ledger:
        assert not await ledger.read(lambda c: c.scalar(select(func.count()).select_from(MenuItem)))
        assert await ledger.read(lambda c: c.scalar(select(col(Push.state)))) == "lost"


async def test_what_the_present_ledger_knows_of_orders_is_carried_over(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)

    def go_on(connection: Connection) -> None:
        update_order(connection, "main", "ord_1", 5, ticket="written", ticket_reference="T1")
        add(connection, order(3, "waiting", updated_at=6))
        handled(connection, 1, "order.new", 5)
        connection.execute(
            insert(LogEntry), [{"store": "main", "order_id": "ord_1", "at": 5, "event": "x.y"}]
        )

    async with opened(tmp_path) as ledger:
        await ledger.write(go_on)
        await ledger.write(delivery("evt_2"))
    done = restore(tmp_path, saved, at=AT, who="command:anna")
    assert done.to_ask == 1
    async with opened(tmp_path) as ledger:
        first = await ledger.read(lambda c: get_order(c, "main", "ord_1"))
        assert first is not None
        assert (first.ticket, first.ticket_reference) == ("written", "T1")
        third = await ledger.read(lambda c: get_order(c, "main", "ord_3"))
        assert third is not None
        assert third.ticket == "writing"
        events = await ledger.read(
            lambda c: c.execute(select(col(Delivery.event_id), col(Delivery.handled_at))).all()
        )
        assert [tuple(each) for each in events] == [("evt_1", 5), ("evt_2", None)]
        assert await ledger.read(lambda c: c.scalar(select(col(LogEntry.event)))) == "x.y"


async def test_the_ledger_from_before_is_kept_and_can_be_restored_itself(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: add(connection, order(3, "written")))
    done = restore(tmp_path, saved, at=AT, who="command:anna")
    assert done.replaced is not None
    assert set_asides(tmp_path) == [done.replaced]
    (tmp_path / LEDGER_FILE).unlink()
    restore(tmp_path, done.replaced, at=AT, who="command:anna")
    async with opened(tmp_path) as ledger:
        assert await ledger.read(lambda c: get_order(c, "main", "ord_3"))


async def test_a_damaged_present_ledger_is_no_obstacle(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    (tmp_path / LEDGER_FILE).write_bytes(b"this is no database\n" * 1000)
    done = restore(tmp_path, saved, at=AT, who="command:anna")
    assert done.replaced is not None
    assert "damaged" in done.replaced.name
    async with opened(tmp_path) as ledger:
        assert not ledger.rebuilt_from
        assert await ledger.read(lambda c: get_order(c, "main", "ord_2"))


async def test_a_new_machine_gets_the_secrets_too_and_wants_their_key(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    saved = await backed_up(old)
    assert vault_of(saved).exists()
    with pytest.raises(LedgerError, match="missing") as caught:
        restore(new, saved, at=AT, who="command:anna")
    assert caught.value.fix
    assert not (new / LEDGER_FILE).exists()
    shutil.copyfile(old / "ledger.key", new / "ledger.key")
    restore(new, saved, at=AT, who="command:anna")
    async with opened(new) as ledger:
        assert ledger.vault.get("main/refresh_token") == "hush-hush"


async def test_secrets_that_are_there_are_newer_and_stay(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    async with opened(tmp_path) as ledger:
        ledger.vault.put("main/refresh_token", "newer")
    restore(tmp_path, saved, at=AT, who="command:anna")
    async with opened(tmp_path) as ledger:
        assert ledger.vault.get("main/refresh_token") == "newer"


async def test_who_restored_is_in_the_audit_trail_and_the_chain_is_whole(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    restore(tmp_path, saved, at=AT, who="command:anna")
    async with opened(tmp_path) as ledger:
        (entry,) = await ledger.read(lambda c: audit.latest(c, 10))
        assert (entry.action, entry.who) == ("ledger.restore", "command:anna")
        assert (await ledger.read(audit.check)).broken is None


async def test_a_bridge_that_runs_keeps_its_ledger(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    async with opened(tmp_path):
        with pytest.raises(LedgerLocked):
            restore(tmp_path, saved, at=AT, who="command:anna")


@pytest.mark.parametrize("content", [None, b"this is no database\n" * 100])
async def test_what_is_no_back_up_changes_nothing(tmp_path: Path, content: bytes | None) -> None:
    await backed_up(tmp_path)
    wrong = tmp_path / "wrong.db"
    if content is not None:
        wrong.write_bytes(content)
    before = (tmp_path / LEDGER_FILE).read_bytes()
    with pytest.raises(ConfigError) as caught:
        restore(tmp_path, wrong, at=AT, who="command:anna")
    assert caught.value.fix
    assert (tmp_path / LEDGER_FILE).read_bytes() == before


async def test_a_back_up_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    saved = await backed_up(tmp_path)
    with closing(sqlite3.connect(saved)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = (tmp_path / LEDGER_FILE).read_bytes()
    with pytest.raises(LedgerError, match="newer"):
        restore(tmp_path, saved, at=AT, who="command:anna")
    assert (tmp_path / LEDGER_FILE).read_bytes() == before
    assert not (tmp_path / ".restore").exists()


async def test_the_data_folder_stays_within_its_budget(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        for number in range(4):
            clock.forward(3600)
            saved = back_up(tmp_path, at=clock.now_ms())
            with saved.open("ab") as file:
                file.truncate(40 << 20)
            os.utime(saved, (number, number))
        newest = back_ups(tmp_path)[0]
        await enforce_budget(ledger, tracker, BridgeSettings(disk_budget_mib=100))
        assert len(back_ups(tmp_path)) == 2
        assert back_ups(tmp_path)[0] == newest
        assert not tracker.current()
        with (tmp_path / "ledger.db-huge").open("wb") as file:
            file.truncate(200 << 20)
        await enforce_budget(ledger, tracker, BridgeSettings(disk_budget_mib=100))
        assert back_ups(tmp_path) == [newest]
        assert [each.code for each in tracker.current()] == ["disk.over_budget"]
        (tmp_path / "ledger.db-huge").unlink()
        await enforce_budget(ledger, tracker, BridgeSettings(disk_budget_mib=100))
        assert not tracker.current()
        await tracker.settle()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
async def test_what_root_makes_beside_the_service_belongs_to_the_service(tmp_path: Path) -> None:
    """Root looks after the bridge with its commands; the bridge must be able to go on with that."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    os.chown(data_dir, 12345, 12345)
    saved = await backed_up(data_dir)
    restore(data_dir, saved, at=AT, who="command:root")
    async with opened(data_dir) as ledger:
        await ledger.write(lambda connection: add(connection, order(9, "waiting")))
        owners = {path.name: path.stat().st_uid for path in data_dir.rglob("*")}
    assert owners
    assert set(owners.values()) == {12345}, owners
