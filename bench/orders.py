"""Orders per second from the guest to `accepted`: the daemon, a till of files, the sandbox.

Each order passes the webhook, the database, the till's folder, and a call of the service that
accepts it. A store writes one ticket after another, and for each the disk is waited for nine times,
one after the other: three commits of the ledger, and six times in the till's folder. So how many
orders a second depends on the disk alone, not on how many there were: with 60 as with 200 orders
130 without any wait, 13 if one takes 8 ms, 3.9 if it takes 30. The processor time of an order is
what can be compared with another day's; it does not depend on how many there were either.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.footprint import processor_s
from bench.measure import Bench, Measured, Options, Result, commit_ms
from tests.support.world import make_world

_ORDERS = 200
_GUESTS = 16


def run(options: Options) -> Iterator[Result]:
    """Let guests order at one store, as fast as they can."""
    count = _ORDERS * (5 if options.long else 1)
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        disk_ms = commit_ms(folder)
        per_s, each_s = asyncio.run(_sold(Path(folder), count))
    yield Measured("a commit on this disk (4 KiB, fsync)", disk_ms, "ms")
    yield Measured(f"{count:,} orders of {_GUESTS} guests, until the last is accepted", per_s, "/s")
    yield Measured("processor time of the bridge for an order", each_s * 1000, "ms")


async def _sold(folder: Path, count: int) -> tuple[float, float]:
    """Return orders per second, and the bridge's processor time for one (s)."""
    async with make_world(folder) as world:
        world.write_config()
        await world.bridge.start()
        code, out, err = await world.connect()
        if code:
            raise RuntimeError(out + err)
        await world.menu_is_on_sale()
        await world.reaches(await world.order("p1"), "accepted")
        assert world.bridge.process is not None
        pid = world.bridge.process.pid
        left = iter(range(count))

        async def guest() -> list[str]:
            return [await world.order("p1", wait=False) for _ in left]

        started, before_s = time.perf_counter(), processor_s(pid)
        for ordered in await asyncio.gather(*(guest() for _ in range(_GUESTS))):
            for order in ordered:
                await world.reaches(order, "accepted", within_s=120)
        took_s = time.perf_counter() - started
        return count / took_s, (processor_s(pid) - before_s) / count


BENCH = Bench("orders", "orders per second from the guest to accepted, and their cost", run)
