"""Plays rounds: orders and faults for a while, then peace, in which all has to come together."""

import asyncio
import contextlib
import errno
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.soak.people import Dish, People
from tests.soak.stores import DatabaseStore, FolderStore, PrinterStore, ProgramStore, Store
from tests.support.bridge_process import BridgeProcess, free_port, until
from tests.support.world import World, make_world
from tillbridge.sandbox import MerchantSeed, StoreSeed
from tillbridge.sandbox.state import Link
from tillbridge_sql.rig_servers import missing

#: What has to be zero.
LOSSES = (
    *("lost", "doubled", "not in the database", "not accepted", "menus"),
    *("clicks undone", "clicks refused", "ended"),
)
_SERVICE_FAILS = (
    {"action": "error", "percent": 5},
    {"action": "error", "percent": 3, "when": "after", "status": 504},
)
_STOPS_WITHIN_S = 20  # then systemd kills it (TimeoutStopSec in systemd/tillbridge.service)
_CALLS = ("write", "fsync", "rename", "open")


class Soak:
    """A bridge with its stores; the seed decides what befalls it, and after how long."""

    stalled_s = 60.0  # without an order that moves
    starts_within_s = 300.0  # with little of a busy processor

    def __init__(self, world: World, stores: list[Store], seed: int) -> None:
        self.world = world
        self.stores = stores
        self.chance = random.Random(seed)
        self.trade = random.Random(seed)  # of what goes on meanwhile: nobody decides its order
        self.counts: Counter[str] = Counter(dict.fromkeys(LOSSES, 0))
        self.findings: list[str] = []
        self.placed: dict[str, Store] = {}  # in this round, by order
        self.acknowledged: set[str] = set()
        self.doubled: set[str] = set()
        self.people = People(stores, self.trade, self.counts)
        self.people.folders.append(world.folder / "data")
        self.disk = Path(world.bridge.env["FAULT_DISK"])
        self.disk_failed = False  # since the bridge was started
        self.trading = (self.customers, self.staff, *[self.people.trade] * 4)
        self.faults = [
            *[self.kill_at_work] * 18,
            *[self.kill_on_its_way] * 8,
            *[self.fail] * 6,
            *[self.freeze] * 2,
            *[self.lose_the_service] * 2,
            self.stop,
            self.crowd,
        ]

    # -- a round

    async def round(self, faults: int) -> None:
        """Play one with so many faults, and count what it has lost."""
        self.placed = {}
        await self.begin()
        for rule in _SERVICE_FAILS:
            await self.world.control("faults", rule)
        busy = [asyncio.create_task(each()) for each in self.trading]
        try:
            for _fault in range(faults):
                await asyncio.sleep(self.chance.uniform(0, 0.6))
                await self.chance.choice(self.faults)()
        finally:
            for task in busy:
                task.cancel()
            ended = await asyncio.gather(*busy, return_exceptions=True)
        failures = [each for each in ended if not isinstance(each, asyncio.CancelledError)]
        assert not failures, failures
        await self.heal()
        await self.converge()
        for failure in await self.people.click_in_peace():
            self.found("clicks refused", failure)
        await self.converge()
        await self.count()

    async def begin(self) -> None:
        """Begin with a bridge that has just been started."""
        await self.kill()
        if not self.findings:
            self.world.bridge.log_path.unlink()
        await self.start(slow_ms=0)

    async def customers(self) -> None:
        """Order, here and there."""
        while True:
            store = self.trade.choice(self.stores)
            item = self.trade.choice(list(store.prices))
            try:
                order = await self.world.order(item, wait=False, store_id=store.store_id)
            except AssertionError:  # the bridge has paused the store: nobody can order
                self.counts["refused"] += 1
            else:
                self.placed[order] = store
                self.counts["orders"] += 1
            await asyncio.sleep(self.trade.uniform(0, 0.3))

    async def staff(self) -> None:
        """Change prices, and take tickets to the kitchen."""
        while True:
            store = self.trade.choice(self.stores)
            if self.trade.random() < 0.3:
                item = self.trade.choice(list(store.prices))
                # However late the bridge reads it, no price differs by half: that would be held.
                await asyncio.to_thread(store.reprice, item, self.trade.randint(560, 780))
                self.counts["prices changed"] += 1
            for each in self.stores:
                if not isinstance(each, DatabaseStore):
                    each.look()
            await asyncio.sleep(self.trade.uniform(0.05, 0.6))

    # -- the bridge

    async def start(self, *, slow_ms: int | None = None, wait: bool = True) -> None:
        """Start the bridge; a disk that is slow now is slow until it ends."""
        bridge = self.world.bridge
        if slow_ms is None:
            slow_ms = self.chance.choice((*[0] * 8, 3, 30, 100))
        bridge.env["SLOW_FSYNC_US"] = str(slow_ms * 1000)
        self.disk_failed = self.disk.exists()
        self.counts["starts"] += 1
        self.counts["with a slow disk"] += slow_ms > 0
        await bridge.start(wait=False)
        if wait:
            await bridge.logged("bridge.ready", within_s=self.starts_within_s)

    async def running(self) -> BridgeProcess:
        """Return the bridge; where it has ended it is started, as a service manager does."""
        bridge = self.world.bridge
        assert bridge.process is not None
        if (code := bridge.process.returncode) is not None:
            if self.disk_failed:
                self.counts["ended by its disk"] += 1
            else:
                self.found("ended", f"with {code}, and nobody asked it to")
            await self.start()
        return bridge

    # -- faults

    async def kill(self) -> None:
        """Kill it, as it is."""
        await (await self.running()).kill()
        self.counts["kills"] += 1

    async def kill_at_work(self) -> None:
        """Kill it, and mostly wait until it is there again."""
        await self.kill()
        await self.start(wait=self.chance.random() < 0.8)

    async def kill_on_its_way(self) -> None:
        """Kill it, and once more while it starts."""
        await self.kill()
        await self.start(wait=False)
        await asyncio.sleep(self.chance.uniform(0, 0.4))
        await self.kill()
        await self.start()

    async def stop(self) -> None:
        """Ask it to end."""
        bridge = await self.running()
        await bridge.logged("bridge.ready", within_s=self.starts_within_s)
        try:
            code = await bridge.stop(within_s=_STOPS_WITHIN_S)
        except TimeoutError:
            self.found("ended", "too late when it was asked to")
            await bridge.kill()
        else:
            if code and not self.disk_failed:
                self.found("ended", f"with {code} when it was asked to")
        self.counts["stops"] += 1
        await self.start()

    async def freeze(self) -> None:
        """Stop its time."""
        process = (await self.running()).process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self.chance.choice((0.1, 0.5, 1)))
        process.send_signal(signal.SIGCONT)
        self.counts["freezes"] += 1

    async def fail(self) -> None:
        """Let every n-th call to the disk fail for a while, and perhaps kill it meanwhile."""
        await self.running()
        call, every = self.chance.choice(_CALLS), self.chance.choice((1, 1, 2, 3, 5, 8))
        self.disk.write_text(f"{call} {every} {self.chance.choice((errno.EIO, errno.ENOSPC))}")
        self.disk_failed = True
        self.counts["disk failures"] += 1
        await asyncio.sleep(self.chance.uniform(0.1, 1.2))
        if self.chance.random() < 0.5:
            await self.world.bridge.kill()
            await self.start(wait=False)  # which may fail, too
            await asyncio.sleep(self.chance.uniform(0, 0.6))
            await self.world.bridge.kill()
            self.counts["kills"] += 2
            self.disk.unlink()
            await self.start()
        else:
            self.disk.unlink()

    async def lose_the_service(self) -> None:
        """Let the service fail at every call for a while, as while it is deployed."""
        rule = await self.world.control("faults", {"action": "error"})
        await asyncio.sleep(self.chance.uniform(1, 4))
        await self.world.control(f"faults/{rule['rule_id']}", method="DELETE")
        self.counts["outages"] += 1

    async def crowd(self) -> None:
        """Let it share one core with busy loops, and kill it there."""
        process = (await self.running()).process
        assert process is not None
        busy = ("taskset", "-c", "0", sys.executable, "-c", "while True: pass")
        crowd = [subprocess.Popen(busy) for _ in range(3)]
        try:
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.sched_setaffinity(int(thread.name), {0})
            await asyncio.sleep(self.chance.uniform(0.5, 1.5))
            self.counts["crowds"] += 1
            await self.kill_at_work()
        finally:
            for each in crowd:
                each.kill()
                each.wait()

    # -- what has become of it

    async def heal(self) -> None:
        """End all faults; what the service has given up is delivered once more."""
        await self.world.control("faults", method="DELETE")
        await self.mend()
        await self.people.leave()
        for order in self.placed.keys() - self.acknowledged:
            await self.world.control("webhooks/redeliver", {"order_id": order, "mode": "same"})

    async def mend(self) -> None:
        """Let the bridge run without any fault."""
        await self.kill()
        await self.start(slow_ms=0)

    async def look(self) -> None:
        """Let each store count its tickets."""
        for store in self.stores:
            await asyncio.to_thread(store.look)

    async def converge(self) -> None:
        """Wait until all has come together, or no order has moved for long: what is left is lost.

        A bridge with little of a busy processor needs minutes for hundreds of orders.
        """
        seen, moved = Counter[str](), time.monotonic()
        while not await self.is_converged():
            states = Counter(map(self.state_of, self.placed))
            if states != seen:
                seen, moved = states, time.monotonic()
            if time.monotonic() - moved > self.stalled_s:
                return
            await asyncio.sleep(0.1)

    async def is_converged(self) -> bool:
        """Return whether each order has its ticket and is accepted, and all menus are on sale."""
        if any(self.state_of(order) != "accepted" for order in self.placed):
            return False
        await self.look()
        return (
            all(store.has(order) for order, store in self.placed.items())
            and all(self.is_on_sale(store) for store in self.stores)
            and not self.people.differ(self.sold_out())
        )

    def state_of(self, order: str) -> str:
        """Return what the service knows of an order."""
        return self.world.service.world.orders[order].state

    def connected(self, store: Store) -> Link:
        """Return what the service knows of a store."""
        return self.world.service.world.connected(store.store_id)

    def is_on_sale(self, store: Store) -> bool:
        """Return whether the storefront is open, and sells at the till's prices."""
        link = self.connected(store)
        sold = {key: item.price for key, item in link.catalogue.items.items()}
        return sold == store.prices and link.store.status == "active"

    def sold_out(self) -> dict[Dish, bool]:
        """Return whether the storefront says of each dish that it is sold out."""
        return {
            (store.name, key): not item.available
            for store in self.stores
            for key, item in self.connected(store).catalogue.items.items()
        }

    async def count(self) -> None:
        """Count what this round has lost."""
        await self.look()
        known = await asyncio.to_thread(self.known_to_the_bridge)
        for order, store in self.placed.items():
            if order in self.acknowledged and order not in known:
                self.found("not in the database", order)
            if not store.has(order):
                self.found("lost", f"{order} of {store.name}, {self.state_of(order)}")
            elif self.state_of(order) != "accepted":
                self.found("not accepted", f"{order} of {store.name}, {self.state_of(order)}")
        for store in self.stores:
            for order, number in store.plain.items():
                if number > 1 and order not in self.doubled:
                    self.doubled.add(order)
                    self.found("doubled", f"{order} of {store.name}, {number} tickets")
            if not self.is_on_sale(store):
                self.found("menus", store.name)
        sold_out = self.sold_out()
        for dish in self.people.differ(sold_out):
            self.found("clicks undone", " of ".join(dish[::-1]))
        self.people.look(sold_out)

    def known_to_the_bridge(self) -> set[str]:
        """Return the orders that are in its database."""
        database = f"file:{self.world.folder}/data/ledger.db?mode=ro"
        with contextlib.closing(sqlite3.connect(database, uri=True)) as connection:
            return {
                order
                for (order,) in connection.execute(
                    "SELECT order_id FROM orders"
                    " UNION SELECT json_extract(body, '$.data.id') FROM inbox"
                )
            }

    def found(self, what: str, detail: str) -> None:
        """Count a loss."""
        self.counts[what] += 1
        self.findings.append(f"{what}: {detail}")

    # -- between the service and the bridge

    async def relay(self, request: web.Request) -> web.Response:
        """Hand a delivery on, note what was acknowledged, and lose some answers."""
        body = await request.read()
        url = f"http://127.0.0.1:{self.world.receiver_port}{request.path}"
        try:
            async with self.world.http.request(
                request.method, url, data=body, headers=request.headers
            ) as answer:
                status, told = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            return web.Response(status=502)
        return self.relayed(request, body, status, told)

    def relayed(self, request: web.Request, body: bytes, status: int, told: bytes) -> web.Response:
        """Note what a bridge has acknowledged; return what the service hears of it."""
        if request.method == "POST" and status == 200:
            order = json.loads(body)["data"].get("id")
            if order:
                self.acknowledged.add(order)
            if self.trade.random() < 0.05:
                self.counts["lost answers"] += 1
                return web.Response(status=504)
        return web.Response(status=status, body=told)


@asynccontextmanager
async def opened(folder: Path, seed: int, defect: str = "") -> AsyncIterator[Soak]:
    """Open the stores: all connected, all menus on sale. `defect`: of a bridge that is broken."""
    kinds: dict[str, Callable[[str, Path], Store]] = {
        "folder": FolderStore,
        "program": ProgramStore,
        "printer": PrinterStore,
    }
    if not missing("postgresql"):
        kinds["database"] = DatabaseStore
    seeds = tuple(StoreSeed(f"st_{name}", name) for name in kinds)
    async with make_world(
        folder / "shop",
        merchants=(MerchantSeed(stores=seeds),),
        webhook_retry_delays_s=(0.3, 1.0, 3.0, 6.0, 12.0),
    ) as world:
        stores = [kind(name, world.folder) for name, kind in kinds.items()]
        world.bridge.env |= {
            "FAULT_DISK": str(folder / "disk"),
            "FAULT_ROOT": str(world.folder),
        }
        soak = Soak(world, stores, seed)
        relay = web.Application()
        relay.router.add_route("*", "/{path:.*}", soak.relay)
        runner = web.AppRunner(relay, access_log=None, shutdown_timeout=1)
        await runner.setup()
        world.public_port = free_port()
        await web.TCPSite(runner, "127.0.0.1", world.public_port).start()
        world.write_config(stores="".join(store.settings() for store in stores))
        if defect:
            world.bridge.module = "tests.soak.broken_bridge"
            world.bridge.env["SOAK_DEFECT"] = defect
        try:
            await soak.start(slow_ms=0)
            for name in kinds:
                code, out, err = await world.connect(name)
                assert code == 0, out + err
            await until("all menus are on sale", soak.is_converged)
            yield soak
        finally:
            await world.bridge.kill()
            for store in stores:
                await asyncio.to_thread(store.close)
            await runner.cleanup()
