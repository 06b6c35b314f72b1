"""What was acknowledged is there after a kill, and nothing is acknowledged that a disk refused."""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlmodel import col

from tests.support import ledger_sender
from tests.support.ledger_harness import StoppedClock, delivery, opened
from tests.support.preloaded import preloaded
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.ledger.ledger import Storage
from tillbridge.ledger.models import Delivery
from tillbridge.ledger.problems import ProblemTracker


class Sender:
    """The process, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def read_until(self, enough: Callable[[list[str]], bool]) -> None:
        assert self.process.stdout is not None
        while not enough(self.lines):
            line = await asyncio.wait_for(self.process.stdout.readline(), 20)
            assert line, "the sender has ended"
            self.lines.append(line.decode().strip())

    async def kill(self) -> None:
        """Kill it, and read what it had still said."""
        if self.process.returncode is None:
            self.process.kill()
        out, _ = await self.process.communicate()
        self.lines += [line for line in out.decode().split("\n")[:-1] if line]

    @property
    def acknowledged(self) -> set[str]:
        return {line for line in self.lines if not line.startswith("-")}

    @property
    def refused(self) -> set[str]:
        return {line for line in self.lines if line.startswith("-")}


@asynccontextmanager
async def sending(data_dir: Path, **env: str) -> AsyncIterator[Sender]:
    sender = Sender(
        await asyncio.create_subprocess_exec(
            sys.executable,
            ledger_sender.__file__,
            str(data_dir),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, **env},
        )
    )
    try:
        yield sender
    finally:
        await sender.kill()


async def kept(data_dir: Path) -> set[str]:
    async with opened(data_dir) as ledger:
        assert ledger.rebuilt_from is None
        return await ledger.read(
            lambda connection: set(connection.scalars(select(col(Delivery.event_id))))
        )


@pytest.mark.parametrize("after", [1, 40, 700])
async def test_a_kill_loses_nothing_that_was_acknowledged(after: int, tmp_path: Path) -> None:
    async with sending(tmp_path) as sender:
        await sender.read_until(lambda lines: len(lines) >= after)
    assert len(sender.acknowledged) >= after
    assert sender.acknowledged <= await kept(tmp_path)


@pytest.mark.parametrize("fault", [f"fsync 1 {errno.EIO}", f"write 1 {errno.ENOSPC}"])
async def test_nothing_is_acknowledged_while_the_disk_refuses(fault: str, tmp_path: Path) -> None:
    library = preloaded("faults", tmp_path)
    switch = tmp_path / "switch"
    data = tmp_path / "data"
    async with sending(data, LD_PRELOAD=str(library), FAULT_DISK=str(switch)) as sender:
        await sender.read_until(lambda lines: len(lines) > 50)
        switch.write_text(fault)
        await sender.read_until(lambda _lines: len(sender.refused) > 50)
        # What was under way is through: from here on everything is refused.
        said = len(sender.lines)
        await sender.read_until(lambda lines: len(lines) > said + 50)
        assert all(line.startswith("-") for line in sender.lines[said:])
        switch.unlink()
        said = len(sender.acknowledged)
        await sender.read_until(lambda _lines: len(sender.acknowledged) > said + 50)
    there = await kept(data)
    assert sender.acknowledged <= there


async def test_a_full_disk_is_told_and_forgotten_when_there_is_room(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with opened(tmp_path, clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        told: list[Storage] = []
        again = asyncio.Event()
        ledger.on_writable_changed(told.append)
        ledger.on_writable_changed(lambda _storage: again.set())
        await set_most_pages(ledger.write, 1)  # SQLite takes the number it has
        refused = 0
        for _ in range(100):
            results = await asyncio.gather(
                *(ledger.write(delivery(body=b"b" * 4000)) for _ in range(5)),
                return_exceptions=True,
            )
            refused += sum(isinstance(result, LedgerUnwritable) for result in results)
            if refused:
                break
        # The first one may have been a batch of its own; the others were one.
        assert refused in {4, 5}, "a batch is committed whole or not at all"
        assert not ledger.writable
        assert told == [Storage("database or disk is full")]
        assert [each.code for each in tracker.current()] == ["ledger.unwritable"]
        again.clear()
        raise_limit = ledger.write(lambda connection: None)
        with pytest.raises(LedgerUnwritable):
            await asyncio.gather(ledger.write(delivery(body=b"b" * 100_000)), raise_limit)
        await set_most_pages(ledger.write, 1_000_000)
        await asyncio.wait_for(again.wait(), 20)
        assert ledger.writable
        assert tracker.current() == ()
        assert await ledger.write(delivery(body=b"b" * 100_000))


async def set_most_pages(write: Callable, pages: int) -> None:
    await write(
        lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}") and None
    )
