"""The power goes while deliveries are acknowledged: each acknowledged order is there after boot."""

import asyncio
import contextlib
import random
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.support import hasty_bridge
from tests.support.bridge_process import BridgeProcess, until
from tests.support.power_cut import Disk
from tests.support.preloaded import preloaded
from tests.support.world import World

ORDERS = 40


class HastyBridge(BridgeProcess):
    """The program with `synchronous = NORMAL`."""

    def command(self, *arguments: str) -> list[str]:
        return [
            sys.executable,
            str(Path(hasty_bridge.__file__)),
            "--config",
            str(self.config),
            *arguments,
        ]


async def pour_and_cut(shop: World, recorded_by: Path, chance: random.Random) -> Disk:
    """Let orders pour in, kill the bridge among them, and return the disk as it then was."""
    await shop.bridge.stop()
    shop.bridge.log_path = shop.folder.with_name("bridge-recorded.log")
    journal = shop.folder.with_name("journal")
    journal.unlink(missing_ok=True)
    disk = Disk.of(shop.folder)
    watched = {
        "LD_PRELOAD": str(recorded_by),
        "POWER_CUT_ROOT": str(shop.folder),
        "POWER_CUT_JOURNAL": str(journal),
    }
    shop.bridge.env |= watched
    await shop.bridge.start()

    async def customers() -> None:
        for _ in range(ORDERS):
            with contextlib.suppress(AssertionError):  # one that nobody takes is no loss
                await shop.order(f"p{chance.randint(1, 12)}", wait=False)

    pouring = asyncio.create_task(customers())
    enough = chance.randint(5, ORDERS - 10)

    async def acknowledged() -> bool:
        return len(await acknowledged_by(shop)) >= enough

    await until(f"{enough} orders are acknowledged", acknowledged)
    await shop.bridge.kill()
    await pouring
    for name in watched:
        del shop.bridge.env[name]
    disk.play(journal)
    return disk


async def acknowledged_by(shop: World) -> set[str]:
    """Return the orders that were answered with a 200."""
    told = await shop.control("deliveries", method="GET")
    return {
        each["order_id"]
        for each in told["deliveries"]
        if each["order_id"] and any(attempt["status"] == 200 for attempt in each["attempts"])
    }


def kept(shop: World) -> set[str]:
    """Return the orders of the ledger as it is found after the cut."""
    ledger = shop.folder / "data" / "ledger.db"
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {order for (order,) in connection.execute("SELECT order_id FROM orders")} | {
            order
            for (order,) in connection.execute("SELECT json_extract(body, '$.data.id') FROM inbox")
        }


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "seed",
    [
        None,
        1,
        *(
            pytest.param(seed, marks=pytest.mark.slow(reason="other moments of the same cut"))
            for seed in (2, 3)
        ),
    ],
)
async def test_each_acknowledged_order_is_there_after_the_power_was_cut(
    shop: World, tmp_path: Path, seed: int | None
) -> None:
    disk = await pour_and_cut(
        shop, preloaded("power_cut", tmp_path), random.Random(f"moment {seed}")
    )
    acknowledged = await acknowledged_by(shop)
    disk.lights_out(None if seed is None else random.Random(seed))
    assert acknowledged <= kept(shop)
    await shop.control("clock", {"speed": 200})  # so that refused deliveries come again soon
    await shop.bridge.start()
    await until(
        "every acknowledged order has its ticket",
        lambda: acknowledged <= set(shop.till.tickets()),
        within_s=60,
    )
    for order in sorted(acknowledged):
        await shop.reaches(order, "accepted", within_s=60)


@pytest.mark.timeout(180)
async def test_a_ledger_that_did_not_wait_for_its_disk_would_lose_some(
    shop: World, tmp_path: Path
) -> None:
    """What the test above finds is found by it: here the same cut takes what was acknowledged."""
    await shop.bridge.stop()
    shop.bridge = HastyBridge(shop.config, env=shop.bridge.env)
    await shop.bridge.start()
    disk = await pour_and_cut(shop, preloaded("power_cut", tmp_path), random.Random("moment"))
    acknowledged = await acknowledged_by(shop)
    assert disk.unsafe_writes
    disk.lights_out()
    assert acknowledged - kept(shop)
