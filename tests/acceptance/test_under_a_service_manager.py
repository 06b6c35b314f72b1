"""The program under a service manager: ready, alive, hung, stopping."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from tests.support.bridge_process import until
from tests.support.service_manager import ListeningManager
from tests.support.world import World


@pytest.fixture
def manager(world: World) -> Iterator[ListeningManager]:
    made = ListeningManager(world.folder, watchdog_s=0.6)
    world.bridge.env |= made.environment
    yield made
    made.close()


@pytest.mark.own_interpreter
async def test_ready_is_told_when_both_listeners_answer(
    world: World, manager: ListeningManager
) -> None:
    await world.bridge.start(wait=False)
    await until("ready is told", lambda: manager.heard("READY=1"))
    for port in (world.receiver_port, world.page_port):
        async with world.http.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
    assert (world.folder / "data" / "ledger.db").exists()
    assert "STATUS=Serving main" in manager.told
    assert await world.bridge.stop() == 0
    assert manager.heard("STOPPING=1")


async def test_a_hung_loop_tells_nothing(world: World, manager: ListeningManager) -> None:
    await world.bridge.start()
    await until("it is alive", lambda: manager.heard("WATCHDOG=1"))
    assert world.bridge.process is not None
    world.bridge.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(0.1)  # what it had told before
    manager.hear()
    await asyncio.sleep(1)  # more than the watchdog's time
    assert manager.hear() == []
    world.bridge.process.send_signal(signal.SIGCONT)
    await until("it is alive again", lambda: "WATCHDOG=1" in manager.hear())


@pytest.mark.own_interpreter
async def test_what_a_watchdog_ends_leaves_a_traceback_and_no_damage(
    world: World, manager: ListeningManager
) -> None:
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale()
    order = await world.order("p1")
    assert world.bridge.process is not None
    world.bridge.process.send_signal(signal.SIGABRT)
    await world.bridge.process.wait()
    assert b"Fatal Python error: Aborted" in world.bridge.log_path.read_bytes()
    await world.bridge.start()
    await world.reaches(order, "accepted")
    assert world.till.tickets() == [order]


async def test_without_a_service_manager_there_is_no_pulse(world: World) -> None:
    await world.bridge.start()
    await world.bridge.stop()
    assert b"service_manager" not in world.bridge.log_path.read_bytes()
