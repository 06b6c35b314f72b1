"""Orders per second from the guest to `accepted`: the daemon, a till of files, the sandbox.

Each order passes the webhook, the database, the till's folder, and a call of the service that
accepts it. A store writes one ticket after another, and for each the disk is waited for nine times,
one after the other: three commits of the ledger, and six times in the till's folder. So how many
orders a second depends on the disk alone, not on how many there were: with 60 as with 200 orders
130 without any wait, 13 if one takes 8 ms, 3.9 if it takes 30. The processor time of an order is
what can be compared with another day's; it does not depend on how many there were either. Many
stores wait for their disks beside each other: there, the processor decides.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from bench.footprint import processor_s
from bench.measure import Bench, Measured, Options, Result, commit_ms
from tests.soak.stores import FolderStore
from tests.support.bridge_process import until
from tests.support.world import World, make_world
from tillbridge.sandbox import MerchantSeed, StoreSeed

_ORDERS = 200
_GUESTS = 16
_VERY_MANY = 1000
_OPEN = 64  # so many of them are connected and have orders, the rest wait to be


def run(options: Options) -> Iterator[Result]:
    """Let guests order at one store, and at some of 1,000 where it may take longer."""
    for stores in (1, _VERY_MANY) if options.long else (1,):
        count = _ORDERS * (5 if options.long else 1)
        with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
            disk_ms = commit_ms(folder)
            per_s, each_s = asyncio.run(_sold(Path(folder), count, stores))
        of = "" if stores == 1 else f" at {_OPEN} of {stores:,} stores"
        until_accepted = f"{count:,} orders of {_GUESTS} guests{of}, until the last is accepted"
        yield Measured("a commit on this disk (4 KiB, fsync)", disk_ms, "ms")
        yield Measured(until_accepted, per_s, "/s")
        yield Measured(f"processor time of the bridge for an order{of}", each_s * 1000, "ms")


async def _sold(folder: Path, count: int, stores: int) -> tuple[float, float]:
    """Return orders per second, and the bridge's processor time for one (s)."""
    names = [f"shop{number}" for number in range(stores)]
    seeds = tuple(StoreSeed(f"st_{name}", name) for name in names[:_OPEN])
    async with make_world(folder, merchants=(MerchantSeed(stores=seeds),)) as world:
        tills = [FolderStore(name, folder) for name in names]
        world.write_config(stores="".join(each.settings() for each in tills))
        await world.bridge.start()
        open_ones = tills[:_OPEN]
        unconnected = iter(open_ones)
        await asyncio.gather(*(_connect(world, unconnected) for _ in range(_GUESTS)))
        await world.reaches(
            await world.order("p1", store_id=tills[0].store_id), "accepted", within_s=600
        )
        assert world.bridge.process is not None
        pid = world.bridge.process.pid
        places = cycle(open_ones)
        left = iter(range(count))

        async def guest() -> list[str]:
            return [
                await world.order("p1", wait=False, store_id=next(places).store_id) for _ in left
            ]

        started, before_s = time.perf_counter(), processor_s(pid)
        for ordered in await asyncio.gather(*(guest() for _ in range(_GUESTS))):
            for order in ordered:
                await world.reaches(order, "accepted", within_s=120)
        took_s = time.perf_counter() - started
        return count / took_s, (processor_s(pid) - before_s) / count


async def _connect(world: World, tills: Iterator[FolderStore]) -> None:
    """Connect those that nobody else connects; return once their menus are on sale."""
    for till in tills:
        code, out, err = await world.connect(till.name)
        if code:
            raise RuntimeError(out + err)

        async def is_on_sale(till: FolderStore = till) -> bool:
            link = world.service.world.connected(till.store_id)
            return len(link.catalogue.items) == len(till.prices)

        await until(f"the menu of {till.name} is on sale", is_on_sale, within_s=600)


BENCH = Bench("orders", "orders per second from the guest to accepted, and their cost", run)
