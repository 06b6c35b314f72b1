"""Who calls next: orders first, and one probe after a 429."""

import asyncio

import pytest

from tillbridge.core.errors import RateLimited
from tillbridge.service.caller import Gate, GateClosed, Priority


class Road:
    """Lets calls through a gate and notes the order in which they came through."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.came: list[str] = []
        self.open = asyncio.Event()

    async def drive(self, name: str, priority: Priority, *, patience_s: float = 30) -> None:
        async with self.gate.passage(priority, patience_s=patience_s):
            self.came.append(name)
            await self.open.wait()

    async def send(self, *cars: tuple[str, Priority]) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.drive(name, priority)) for name, priority in cars]
        await settle()
        return tasks


async def limited(gate: Gate, retry_after_s: float) -> None:
    """A call that is answered with a 429."""
    with pytest.raises(RateLimited):
        async with gate.passage(Priority.MENU, patience_s=1):
            raise RateLimited("slow down", retry_after_s=retry_after_s)


async def settle() -> None:
    for _turn in range(10):
        await asyncio.sleep(0)


async def arrived(road: Road, count: int) -> None:
    async with asyncio.timeout(10):
        while len(road.came) < count:
            await asyncio.sleep(0.005)


async def test_waiting_calls_leave_in_the_order_of_their_priority() -> None:
    road = Road(Gate(places=1, for_orders=0))
    first = await road.send(("first", Priority.POLL))
    rest = await road.send(
        ("poll", Priority.POLL),
        ("menu", Priority.MENU),
        ("order-1", Priority.ORDERS),
        ("pause", Priority.STORE),
        ("86", Priority.AVAILABILITY),
        ("order-2", Priority.ORDERS),
    )
    road.open.set()
    await asyncio.gather(*first, *rest)
    assert road.came == ["first", "order-1", "order-2", "86", "pause", "menu", "poll"]


async def test_a_few_places_are_kept_for_orders() -> None:
    road = Road(Gate(places=4, for_orders=2))
    tasks = await road.send(*[(f"menu-{n}", Priority.MENU) for n in range(4)])
    assert road.came == ["menu-0", "menu-1"]
    tasks += await road.send(*[(f"order-{n}", Priority.ORDERS) for n in range(3)])
    assert road.came[2:] == ["order-0", "order-1"]
    road.open.set()
    await asyncio.gather(*tasks)
    assert len(road.came) == 7


async def test_after_a_429_nobody_goes_until_the_time_is_over_then_one_alone() -> None:
    gate = Gate()
    road = Road(gate)
    await limited(gate, 0.1)
    loop = asyncio.get_running_loop()
    closed_at = loop.time()
    tasks = await road.send(
        ("menu", Priority.MENU), ("order-1", Priority.ORDERS), ("order-2", Priority.ORDERS)
    )
    assert road.came == []
    await arrived(road, 1)
    assert loop.time() - closed_at >= 0.09
    await settle()
    assert road.came == ["order-1"]  # the probe
    road.open.set()
    await asyncio.gather(*tasks)
    assert road.came == ["order-1", "order-2", "menu"]


async def test_a_probe_that_is_refused_closes_the_gate_again() -> None:
    gate = Gate()
    await limited(gate, 0.01)
    await limited(gate, 5)
    assert gate.closed_for_s() > 4


async def test_an_answer_to_an_older_call_does_not_open_the_gate() -> None:
    gate = Gate()
    async with gate.passage(Priority.MENU, patience_s=1):
        await limited(gate, 0.01)
    road = Road(gate)
    tasks = await road.send(("one", Priority.ORDERS), ("two", Priority.ORDERS))
    await arrived(road, 1)
    await settle()
    assert road.came == ["one"]
    road.open.set()
    await asyncio.gather(*tasks)


async def test_who_cannot_wait_that_long_is_told_at_once() -> None:
    gate = Gate()
    await limited(gate, 300)
    with pytest.raises(GateClosed) as closed:
        async with gate.passage(Priority.ORDERS, patience_s=120):
            pass
    assert 290 < closed.value.retry_after_s <= 300


async def test_patience_ends_and_the_place_goes_to_the_next() -> None:
    road = Road(Gate(places=1, for_orders=0))
    first = await road.send(("first", Priority.MENU))
    with pytest.raises(GateClosed):
        await road.drive("hasty", Priority.ORDERS, patience_s=0.01)
    after = await road.send(("patient", Priority.POLL))
    road.open.set()
    await asyncio.gather(*first, *after)
    assert road.came == ["first", "patient"]


async def test_a_cancelled_call_gives_its_place_back() -> None:
    road = Road(Gate(places=1, for_orders=0))
    inside = await road.send(("inside", Priority.MENU))
    waiting = await road.send(("waiting", Priority.ORDERS))
    last = await road.send(("last", Priority.POLL))
    waiting[0].cancel()
    inside[0].cancel()
    await asyncio.gather(*inside, *waiting, return_exceptions=True)
    road.open.set()
    await asyncio.gather(*last)
    assert road.came == ["inside", "last"]
