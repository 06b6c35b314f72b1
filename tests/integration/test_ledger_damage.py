"""A damaged ledger is set aside, and what can be read of it is carried over."""

import contextlib
import errno
import json
import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, delivery, opened
from tillbridge.core.errors import LedgerError
from tillbridge.ledger import facts, sqlite
from tillbridge.ledger.backup import back_up
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.models import CommunityOverride, MenuItem, OrderRow
from tillbridge.ledger.orders import open_deliveries
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.pushes import get_overrides, put_override

ORDERS = 400


def order(number: int, ticket: str) -> dict:
    return {
        "store": "main",
        "order_id": f"ord_{number}",
        "payload": json.dumps({"id": f"ord_{number}", "note": "n" * 300}),
        "received_at": number,
        "ticket": ticket,
        "desired_state": "accepted",
        "service_state": "created",
        "updated_at": number,
    }


async def filled(data_dir: Path) -> Path:
    """Return a ledger with orders: a third waiting, a third begun, a third written."""
    rows = [order(n, ("waiting", "writing", "written")[n % 3]) for n in range(ORDERS)]
    items = [
        {"store": "main", "external_id": f"i{n}", "body": "{}", "pos_available": True}
        for n in range(50)
    ]

    def fill(connection: Connection) -> None:
        connection.execute(insert(OrderRow), rows)
        connection.execute(insert(MenuItem), items)

    async with opened(data_dir) as ledger:
        await ledger.write(fill)
        await ledger.write(
            lambda connection: facts.put_fact(connection, "main", "service_store_id", "st_1", at=1)
        )
        for number in range(20):
            await ledger.write(delivery(f"evt_{number}", body=b"b" * 500))
    return data_dir / LEDGER_FILE


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database\n" * 1000)


def bad_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3 // 4096 * 4096)


def cut_within_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def flipped_pages(path: Path) -> None:
    dice = random.Random(7)
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in dice.sample(range(5, pages), pages // 6):
            file.seek(page * 4096)
            file.write(dice.randbytes(4096))


def no_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE alembic_version")
        connection.commit()


@pytest.mark.parametrize(
    "damage", [garbage, bad_header, truncated, cut_within_a_page, flipped_pages, no_version]
)
async def test_a_damaged_file_is_set_aside_and_a_new_one_begun(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    path = await filled(tmp_path)
    damage(path)
    damaged = path.read_bytes()
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        assert ledger.rebuilt_from is not None
        assert ledger.rebuilt_from.name.startswith("ledger.db.damaged-2027")
        assert ledger.rebuilt_from.read_bytes() == damaged
        tickets = await ledger.read(
            lambda connection: set(connection.scalars(select(col(OrderRow.ticket))))
        )
        assert tickets <= {"writing", "written"}, "the POS is asked before any order is written"
        rebuilt = await ledger.read(lambda connection: facts.get_fact(connection, "", "rebuilt"))
        assert rebuilt == {"at_ms": clock.at_ms, "set_aside": ledger.rebuilt_from.name}
        assert await ledger.write(delivery())
        tracker = await ProblemTracker.start(ledger, clock=clock)
        assert [each.code for each in tracker.current()] == ["ledger.rebuilt"]
        assert ledger.rebuilt_from.name in tracker.current()[0].text
        await tracker.settle()
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is None


@pytest.mark.parametrize(("damage", "saved"), [(flipped_pages, 0.5), (no_version, 1)])
async def test_what_can_be_read_is_carried_over(
    damage: Callable[[Path], None], saved: float, tmp_path: Path
) -> None:
    damage(await filled(tmp_path))
    async with opened(tmp_path) as ledger:
        rows = await ledger.read(
            lambda connection: connection.execute(
                select(col(OrderRow.order_id), col(OrderRow.payload))
            ).all()
        )
        assert len(rows) >= ORDERS * saved
        assert all(json.loads(row.payload)["id"] == row.order_id for row in rows)
        waiting = await ledger.read(lambda connection: open_deliveries(connection, 100))
        assert len(waiting) >= 20 * saved


async def test_overrides_of_a_communitys_items_are_carried_over(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    override = CommunityOverride(
        store="communities/x", external_id="itm_1", available=False, until=5, by="staff", at=1
    )
    async with opened(tmp_path) as ledger:
        await ledger.write(partial(put_override, override=override))
    no_version(path)
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is not None
        found = await ledger.read(
            lambda connection: get_overrides(connection, "communities/x", CommunityOverride)
        )
        assert found == {"itm_1": override}


async def test_the_menu_is_not_carried_over(tmp_path: Path) -> None:
    """It comes back from the POS and the service; a part of it would be taken for the whole."""
    no_version(await filled(tmp_path))
    async with opened(tmp_path) as ledger:
        assert not await ledger.read(lambda connection: connection.execute(select(MenuItem)).all())


async def test_orders_that_cannot_be_read_come_out_of_the_newest_back_up(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    back_up(tmp_path, at=1)
    garbage(path)
    async with opened(tmp_path) as ledger:
        rows = await ledger.read(
            lambda connection: connection.execute(
                select(col(OrderRow.ticket), col(OrderRow.order_id))
            ).all()
        )
        assert len(rows) == ORDERS
        assert {row.ticket for row in rows} == {"writing", "written"}
        assert len(await ledger.read(lambda connection: open_deliveries(connection, 100))) == 20


async def test_the_write_ahead_log_goes_with_the_damaged_file(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    path.with_name("ledger.db-wal").write_bytes(b"what was left")
    garbage(path)
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is not None
        aside = ledger.rebuilt_from
        assert aside.with_name(aside.name + "-wal").exists()


async def test_an_empty_file_is_a_new_ledger(tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).touch()
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is None
        assert await ledger.write(delivery())


class _Disk:
    """Stands before the checks of SQLite: they answer what a disk that fails lets them see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> None:
        self.asked = 0
        self._answers = answers
        self._check = sqlite._check
        monkeypatch.setattr(sqlite, "_check", self._answer)

    def _answer(self, path: Path) -> str:
        self.asked += 1
        return self._answers.pop(0) if self._answers else self._check(path)


UNREAD = "Page 7: unable to get the page. error code=266"


@pytest.mark.parametrize("answers", [[UNREAD], ["Freelist: failed to get page 9"], [UNREAD] * 2])
async def test_a_disk_that_fails_to_read_for_a_moment_costs_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    await filled(tmp_path)
    disk = _Disk(monkeypatch, answers)
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is None
    assert disk.asked > 1
    assert not list(tmp_path.glob("*.damaged-*"))


async def test_a_disk_that_goes_on_failing_is_named_and_the_ledger_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await filled(tmp_path)
    _Disk(monkeypatch, [UNREAD] * 3)
    with pytest.raises(LedgerError, match=r"disk failed while reading.*error code=266") as caught:
        async with opened(tmp_path):
            pass
    assert str(path) in caught.value.text
    assert "was not changed" in caught.value.fix
    assert not list(tmp_path.glob("*.damaged-*"))


async def test_a_file_the_system_does_not_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    _Disk(monkeypatch, ["Freelist: failed to get page 9"] * 3)

    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(LedgerError, match="Input/output error"):
        async with opened(tmp_path):
            pass
    assert not list(tmp_path.glob("*.damaged-*"))


async def test_damage_is_noticed_while_nobody_but_the_writer_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer has its pages in memory: it goes on writing into a file that nobody can read."""
    monkeypatch.setattr("tillbridge.ledger.ledger._VERIFY_EVERY_S", 0.0)
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: facts.put_fact(connection, "", "x", 1, at=1))
        for kind in ("", "-wal"):
            path = tmp_path / f"{LEDGER_FILE}{kind}"
            path.write_bytes(b"\xa5" * path.stat().st_size)
        deadline = time.monotonic() + 10
        while not ledger.storage.damaged:
            assert time.monotonic() < deadline
            with contextlib.suppress(LedgerError):
                await ledger.write(lambda connection: facts.put_fact(connection, "", "x", 2, at=2))
