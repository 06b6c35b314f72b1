"""Several bridges on one PostgreSQL: killed, frozen, cut off, while its standby is promoted."""

import asyncio
import contextlib
import re
import secrets
import signal
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.soak.soak import Soak
from tests.soak.stores import FolderStore, ProgramStore, Store
from tests.support.bridge_process import BridgeProcess, free_port, until
from tests.support.cable import listening_at_the_end_of, new_cable
from tests.support.postgresql_pair import Pair
from tests.support.world import World, make_world
from tillbridge.sandbox import MerchantSeed, StoreSeed

_HANGS_S = 5  # after so long the load balancer asks another bridge
_AVOIDED_S = 2.0


class Link:
    """The network between one bridge and the primary, wherever that is now.

    It leads through a network namespace (`tests.support.cable`), and a cut takes the cable's other
    end down. Where the system allows none, a cut only holds back what passes through here.
    """

    def __init__(self, primary: Callable[[], int]) -> None:
        self._primary = primary
        self._whole = asyncio.Event()
        self._whole.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._cable = new_cable()
        self._listener = listening_at_the_end_of(self._cable)
        self.host, self.port = self._listener.getsockname()

    @property
    def is_cable(self) -> bool:
        """Whether a cut loses packets."""
        return self._cable is not None

    async def start(self) -> asyncio.Server:
        """Listen, as the server does."""
        return await asyncio.start_server(self._connected, sock=self._listener)

    def cut(self) -> None:
        """Let nothing through from now on; nobody hears of it."""
        if self._cable is not None:
            self._cable.unplug()
        else:
            self._whole.clear()

    def join(self, *, lost: bool) -> None:
        """Let everything through again, also what was sent meanwhile, unless that is `lost`."""
        if lost:
            for writer in self._writers:
                writer.transport.abort()
        if self._cable is not None:
            self._cable.plug_in()
        else:
            self._whole.set()

    def close(self) -> None:
        """Remove the cable."""
        if self._cable is not None:
            self._cable.remove()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        with contextlib.suppress(OSError):
            theirs = await asyncio.open_connection("127.0.0.1", self._primary())
            await asyncio.gather(self._copy(reader, theirs[1]), self._copy(theirs[0], writer))
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while data := await reader.read(65_536):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # the other end hears of it below
        finally:
            self._writers.discard(writer)
            writer.close()


@dataclass(slots=True)
class Hosted:
    """One bridge."""

    name: str
    process: BridgeProcess
    receiver_port: int
    link: Link
    avoided_until: float = 0.0  # by the load balancer; the loop's time
    plague: asyncio.Task[None] | None = None  # what befalls it for a while

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.process.process is not None and self.process.process.returncode is None


class SeveralSoak(Soak):
    """Three bridges with many stores; `long_s` is how long one is frozen or cut off."""

    stalled_s = 120.0

    def __init__(self, world: World, stores: list[Store], seed: int, long_s: float) -> None:
        world.bridge.env |= {"FAULT_DISK": str(world.folder / "no-fault")}
        super().__init__(world, stores, seed)
        self.long_s = long_s
        self.pair = Pair()
        self.hosted: list[Hosted] = []
        self.people.folders.clear()
        self.promoted = False  # in this round
        self.faults = [
            *[self.kill_one] * 5,
            *[self.freeze_one] * 3,
            *[self.cut_one] * 3,
            *[self.stop_one] * 2,
            *[self.promote] * 2,
        ]

    def add(self, name: str, key: str, defect: str) -> Hosted:
        """Configure another bridge, as the first but for its name, folder and ports."""
        world = self.world
        config = world.folder / f"bridge-{name}.toml"
        receiver, page = free_port(), free_port()
        link = Link(lambda: self.pair.primary.port)
        text = world.config.read_text("utf-8")
        text = text.replace('data_dir = "data"', f'data_dir = "data-{name}"\nname = "{name}"')
        text = re.sub(rf"\b{world.receiver_port}\b", str(receiver), text)
        text = re.sub(rf"\b{world.page_port}\b", str(page), text)
        text += '\n[ledger]\nurl = { env = "LEDGER_URL" }\nkey = { env = "LEDGER_KEY" }\n'
        config.write_text(text, "utf-8")
        secret = {"LEDGER_URL": self.pair.url(link.port, link.host), "LEDGER_KEY": key}
        process = BridgeProcess(config, env={**world.bridge.env, **secret})
        process.log_path = world.folder / f"bridge-{name}.log"
        if defect:
            process.module = "tests.soak.broken_bridge"
            process.env["SOAK_DEFECT"] = defect
        self.people.folders.append(world.folder / f"data-{name}")
        self.hosted.append(Hosted(name, process, receiver, link))
        return self.hosted[-1]

    # -- a round

    async def begin(self) -> None:
        """Begin with a pair of servers, and all bridges running."""
        await asyncio.to_thread(self.pair.follow)
        self.promoted = False
        for each in self.hosted:
            if each.is_running and not self.findings:
                await self.end(each)
                each.process.log_path.unlink()
            await self.restart(each)
        for each in self.hosted:
            await each.process.logged("bridge.ready", within_s=60)

    async def restart(self, each: Hosted) -> None:
        """Start it unless it runs, as a service manager does; it may end where it could not."""
        if each.is_running:
            return
        if each.process.process is not None and each.process.process.returncode not in {0, -9}:
            began = each.process.events("bridge.ready")
            refused = each.process.events("bridge.not_started")
            if began or not refused:
                code = each.process.process.returncode
                self.found("ended", f"{each.name} with {code}, and nobody asked it to")
            else:
                self.counts["not started"] += 1
        self.counts["starts"] += 1
        await each.process.start(wait=False)

    async def end(self, each: Hosted) -> None:
        """Kill it, whatever befalls it."""
        await self.spare(each)
        if each.process.process is not None:
            await each.process.kill()

    async def spare(self, each: Hosted) -> None:
        """End what befalls it."""
        if each.plague is not None:
            each.plague.cancel()
            await asyncio.gather(each.plague, return_exceptions=True)
            each.plague = None

    async def watch(self) -> None:
        """Start what has ended, as a service manager does."""
        for each in self.hosted:
            await self.restart(each)

    # -- faults

    async def kill_one(self) -> None:
        """Kill one of them, and start it again."""
        each = self.chance.choice(self.hosted)
        await self.end(each)
        self.counts["kills"] += 1
        await asyncio.sleep(self.chance.choice((0, 0, 1, 3)))
        await self.watch()

    async def stop_one(self) -> None:
        """Ask one to end: it hands its stores over."""
        each = self.chance.choice(self.hosted)
        if each.plague is not None or not each.process.events("bridge.ready"):
            return
        self.counts["stops"] += 1
        try:
            code = await each.process.stop(within_s=15)
        except TimeoutError:
            self.found("ended", f"{each.name} too late when it was asked to")
            await each.process.kill()
        else:
            if code:
                self.found("ended", f"{each.name} with {code} when it was asked to")
        await self.watch()

    async def freeze_one(self) -> None:
        """Stop the time of one; it goes on while others have its stores."""
        await self.befall(self._frozen, "freezes")

    async def cut_one(self) -> None:
        """Cut one off from the database."""
        await self.befall(self._cut_off, "cuts")

    async def befall(
        self, fault: Callable[[Hosted, bool], Coroutine[Any, Any, None]], name: str
    ) -> None:
        """Let something befall a bridge for a while, once there are two that are whole."""
        while len(whole := [each for each in self.hosted if each.plague is None]) < 2:
            await asyncio.sleep(0.1)
        await self.watch()
        lost, each = self.chance.random() < 0.5, self.chance.choice(whole)
        self.counts[name] += 1
        each.plague = asyncio.create_task(fault(each, lost))
        each.plague.add_done_callback(lambda _done: setattr(each, "plague", None))

    async def _frozen(self, each: Hosted, _lost: bool) -> None:
        process = each.process.process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.long_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)

    async def _cut_off(self, each: Hosted, lost: bool) -> None:
        each.link.cut()
        try:
            await asyncio.sleep(self.long_s)
        finally:
            each.link.join(lost=lost)

    async def promote(self) -> None:
        """Lose the primary; the standby takes its place."""
        if self.promoted:
            return
        self.promoted = True
        self.counts["promotions"] += 1
        await asyncio.to_thread(self.pair.promote, kill=self.chance.random() < 0.7)

    # -- what has become of it

    async def mend(self) -> None:
        """Let all bridges run without any fault."""
        for each in self.hosted:
            await self.spare(each)
        await self.watch()

    async def is_converged(self) -> bool:
        """Return whether all has come together; a bridge that ends meanwhile is started."""
        await self.watch()
        if not all(each.process.events("bridge.ready") for each in self.hosted):
            return False  # the stores of its earlier run may be nobody's yet
        return await super().is_converged() and len(self.leases()) == len(self.stores)

    def known_to_the_bridge(self) -> set[str]:
        """Return the orders that are in the database."""
        return set(
            self.pair.rows(
                "SELECT order_id FROM orders UNION"
                " SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,id}' FROM inbox"
            )
        )

    def leases(self) -> list[str]:
        """Return which bridge serves each store."""
        return self.pair.rows(
            "SELECT name FROM leases JOIN bridges USING (holder) WHERE holder <> ''"
        )

    # -- between the service and the bridges

    async def relay(self, request: web.Request) -> web.Response:
        """Hand a delivery to any bridge that answers, as a load balancer does."""
        body, now = await request.read(), asyncio.get_running_loop().time()
        usable = [each for each in self.hosted if each.avoided_until <= now]
        for each in self.trade.sample(usable, len(usable)):
            url = f"http://127.0.0.1:{each.receiver_port}{request.path}"
            try:
                async with self.world.http.request(
                    request.method,
                    url,
                    data=body,
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=_HANGS_S),
                ) as answer:
                    status, told = answer.status, await answer.read()
            except (aiohttp.ClientError, TimeoutError):
                status, told = 502, b""
            if status < 500:
                return self.relayed(request, body, status, told)
            each.avoided_until = asyncio.get_running_loop().time() + _AVOIDED_S
        return web.Response(status=503)


@asynccontextmanager
async def opened_several(
    folder: Path, seed: int, *, stores: int, long_s: float, defect: str = ""
) -> AsyncIterator[SeveralSoak]:
    """Open three bridges with so many stores: all connected, all menus on sale.

    A folder lets nobody write an order twice, so that a defect has only programs as tills.
    """
    names = [f"shop{number}" for number in range(1, stores)] + ["program"]
    seeds = tuple(StoreSeed(f"st_{name}", name) for name in names)
    async with make_world(
        folder / "shop",
        merchants=(MerchantSeed(stores=seeds),),
        webhook_retry_delays_s=(0.3, 1.0, 3.0, 6.0, 12.0),
    ) as world:
        others = ProgramStore if defect else FolderStore
        tills: list[Store] = [others(name, world.folder) for name in names[:-1]]
        tills.append(ProgramStore(names[-1], world.folder))
        soak = SeveralSoak(world, tills, seed, long_s)
        relay = web.Application()
        relay.router.add_route("*", "/{path:.*}", soak.relay)
        runner = web.AppRunner(relay, access_log=None, shutdown_timeout=1)
        await runner.setup()
        world.public_port = free_port()
        await web.TCPSite(runner, "127.0.0.1", world.public_port).start()
        world.write_config(stores="".join(store.settings() for store in tills))
        key = urlsafe_b64encode(secrets.token_bytes(32)).decode()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(runner.cleanup)
            stack.callback(soak.pair.close)
            for name in ("a", "b", "c"):
                hosted = soak.add(name, key, defect)
                stack.callback(hosted.link.close)
                await stack.enter_async_context(await hosted.link.start())
            for hosted in soak.hosted:
                stack.push_async_callback(soak.end, hosted)
            cables = all(each.link.is_cable for each in soak.hosted)
            how = "by pulling a cable" if cables else "in a proxy: no network namespaces here"
            print(f"cuts: {how}", flush=True)
            first = soak.hosted[0]
            await first.process.start()
            world.bridge = first.process
            for store in tills:
                await until(f"{store.name} is connected", partial(_connected, world, store))
            for hosted in soak.hosted[1:]:
                await hosted.process.start()
            await until("all menus are on sale", soak.is_converged, within_s=120)
            yield soak


async def _connected(world: World, store: Store) -> bool:
    """Connect a store; the only bridge may be too slow to renew its leases on a busy machine."""
    code, out, err = await world.connect(store.name)
    assert code == 0 or "being started" in err or "not serve the store any more" in err, out + err
    return code == 0
