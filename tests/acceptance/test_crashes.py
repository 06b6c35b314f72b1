"""The plug is pulled at any moment: each order is in the till once, and none is lost."""

import asyncio
import random

import pytest

from tests.support.bridge_process import until
from tests.support.world import World

ROUNDS = 6
ORDERS_A_ROUND = 8


@pytest.mark.timeout(240)
async def test_killed_again_and_again_with_orders_pouring_in(shop: World) -> None:
    chance = random.Random(17)
    placed: list[str] = []

    async def customers() -> None:
        for _ in range(ORDERS_A_ROUND):
            placed.append(await shop.order(f"p{chance.randint(1, 12)}", wait=False))
            await asyncio.sleep(chance.uniform(0, 0.03))

    await shop.control("clock", {"speed": 200})  # so that refused deliveries come again soon
    for turn in range(ROUNDS):
        pouring = asyncio.create_task(customers())
        shop.till.change(f"p{turn + 1}", price=f"{turn + 1}.80")
        await asyncio.sleep(chance.uniform(0.0, 0.4))
        await shop.bridge.kill()
        await pouring
        await shop.bridge.start()
    await until(
        "every order has its ticket",
        lambda: shop.till.tickets() == sorted(placed),
        within_s=90,
    )
    await shop.menu_is_on_sale()
    for order in placed:
        await shop.reaches(order, "accepted")
    written = [event["order"] for event in shop.bridge.events("order.written")]
    assert len(written) == len(set(written))


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
async def test_killed_between_the_write_and_its_mark(world: World, moment: str) -> None:
    """The adapter pulls the plug itself, on the one side of the write and on the other."""
    world.write_config(
        orders='adapter = "tests.support.deadly_adapter:ADAPTER"\norders_dir = "orders"\n'
        f'moment = "{moment}"\ntripwire = "tripwire"'
    )
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    (world.folder / "tripwire").write_text("armed", encoding="utf-8")
    order = await world.order("p1", wait=False)
    assert world.bridge.process is not None
    await asyncio.wait_for(world.bridge.process.wait(), 20)
    assert world.bridge.process.returncode == -9
    await world.bridge.start()
    await world.reaches(order, "accepted")
    assert world.till.tickets() == [order]
    writes = (world.folder / "orders" / "writes.log").read_text(encoding="utf-8").split()
    assert writes == [order], "the till was given the order once"


async def test_a_ticket_that_was_eaten_by_the_till_is_not_written_again(shop: World) -> None:
    order = await shop.order("p1")
    await until("the ticket is there", shop.till.tickets)
    await shop.reaches(order, "accepted")
    (shop.till.orders / f"{order}.json").unlink()  # the till has read it
    await shop.bridge.kill()
    await shop.bridge.start()
    await shop.control("webhooks/redeliver", {"order_id": order, "mode": "same", "wait": True})
    second = await shop.order("p2")
    await until("the next ticket is there", lambda: shop.till.tickets() == [second])


@pytest.mark.own_interpreter
async def test_an_order_that_was_acknowledged_is_written_after_a_kill(shop: World) -> None:
    (shop.till.orders).rename(shop.till.folder / "unplugged")  # the share is gone
    order = await shop.order("p1")
    await shop.problem("pos.offline")
    await shop.bridge.kill()
    (shop.till.folder / "unplugged").rename(shop.till.orders)
    await shop.bridge.start()
    await until("the ticket is there", lambda: shop.till.tickets() == [order])
    await shop.reaches(order, "accepted")
