"""The process that `export_to_call` measures: a store's flow, from a renamed export to the call.

Run as `python -m bench.export_caller FOLDER ROUNDS`; prints one JSON object. The service is a stub
on loopback in the same process: it notes when the availability call arrives.
"""

import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from bench.export_store import CHANGED, STORE, open_pos, write_menu
from tests.support.store_context import store_context
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.menu.flow import MenuFlow
from tillbridge.pos.watch import FileWatch, FolderEvents
from tillbridge.service.client import ServiceLink
from tillbridge.service.oauth import App
from tillbridge.service.tokens import TokenStore
from tillbridge.service.types import Tokens

SETTLE_MS = 150
ITEMS = 1000
_NOISE_EVERY_S = 0.02
_IDLE_S = 5.0
_TASKS = Path("/proc/self/task")


class Stub:
    """Answers as the service does, and notes when availability calls arrive."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[float] = asyncio.Queue()

    def app(self) -> web.Application:
        """Return its endpoints."""
        app = web.Application()
        store = "/v2/pos/stores/st_main"
        app.router.add_post(f"{store}/items/availability", self._availability)
        app.router.add_get(f"{store}/menus/status", self._status)
        app.router.add_post(f"{store}/menus/batch", self._batch)
        return app

    async def _availability(self, request: web.Request) -> web.Response:
        self.arrived.put_nowait(time.perf_counter())
        items = (await request.json())["items"]
        return web.json_response({"status": "success", "updated": len(items), "not_found": []})

    async def _batch(self, request: web.Request) -> web.Response:
        body = await request.json()
        counts = {"added": len(body["add"]), "updated": len(body["update"]), "deleted": 0}
        return web.json_response({"status": "success", "message": "", **counts})

    async def _status(self, _request: web.Request) -> web.Response:
        return web.json_response({"store_id": "st_main", "last_synced_at": None})


@asynccontextmanager
async def served(stub: Stub) -> AsyncIterator[str]:
    """Serve the stub; yields its base URL."""
    runner = web.AppRunner(stub.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v2"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def flowing(folder: Path, base_url: str) -> AsyncIterator[None]:
    """Run the flow and the watch as the daemon does."""
    clock = Clock()
    now = clock.now_ms()
    tokens = Tokens("access", "refresh", now + 3_000_000, now)
    ledger = await Ledger.open(folder / "data", clock=clock)
    tracker = await ProblemTracker.start(ledger, clock=clock)
    link = ServiceLink(base_url, App("app", lambda: "secret", "http://127.0.0.1:1/c"), clock=clock)
    pos = open_pos(folder)
    settings = StoreSettings.model_validate(
        {"location_id": "loc-1", "currency": "USD", "pos": {"adapter": "folder"}}
    )
    context = store_context(
        settings,
        pos=pos,
        service=link.store(TokenStore(tokens)).client,
        ledger=ledger,
        problems=tracker,
        clock=clock,
        job_poll_s=2,
        base_url=base_url,
    )
    flow = MenuFlow(context)
    events = FolderEvents()
    watch = FileWatch(events, store=STORE, poll_s=2)
    watch.subscribe(pos.catalogue_files(), SETTLE_MS, flow.export_changed)
    tasks = [asyncio.create_task(each.run()) for each in (events, watch, flow)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pos.close()
        await link.close()
        await ledger.close()


async def measured(folder: Path, rounds: int) -> dict[str, object]:
    """Return how long each change took beyond settle_ms, and what idling costs."""
    stub = Stub()
    async with served(stub) as base_url, flowing(folder, base_url):
        await asyncio.sleep(2)
        quiet = [await _one(folder, stub, number) for number in range(rounds)]
        noise = asyncio.create_task(_noise(folder))
        try:
            noisy = [await _one(folder, stub, number) for number in range(rounds, 2 * rounds)]
        finally:
            noise.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await noise
        await asyncio.sleep(1)
        idle = await _idle()
    return {"quiet_ms": quiet, "noisy_ms": noisy, **idle}


async def _one(folder: Path, stub: Stub, number: int) -> float:
    """Rename an export in which one item's availability changed; return ms beyond settle_ms."""
    renamed = time.perf_counter()
    write_menu(folder / "menu.csv", ITEMS, changed=CHANGED, off=number)
    async with asyncio.timeout(30):
        arrived = await stub.arrived.get()
    await asyncio.sleep(0.4)
    while not stub.arrived.empty():
        stub.arrived.get_nowait()
    return (arrived - renamed) * 1000 - SETTLE_MS


async def _noise(folder: Path) -> None:
    """Keep other files in the export's folder changing."""
    number = 0
    while True:
        number += 1
        (folder / f"other-{number % 5}.log").write_text(str(number), encoding="ascii")
        await asyncio.sleep(_NOISE_EVERY_S)


async def _idle() -> dict[str, float | None]:
    """Return processor time in percent and wake-ups per second of a process with nothing to do."""
    used, woken = _processor_s(), sum(_switches())
    await asyncio.sleep(_IDLE_S)
    wakeups = (sum(_switches()) - woken) / _IDLE_S if _TASKS.exists() else None
    return {"idle_percent": (_processor_s() - used) / _IDLE_S * 100, "wakeups_per_s": wakeups}


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _switches() -> Iterator[int]:
    if not _TASKS.exists():
        return
    for task in _TASKS.iterdir():
        for line in (task / "status").read_text(encoding="ascii").splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                yield int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(Path(sys.argv[1]), int(sys.argv[2])))))
