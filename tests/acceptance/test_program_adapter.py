"""The kitchen's till is behind a program of its own: it works, dies, and never writes twice."""

import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path

from tests.support.bridge_process import until
from tests.support.tills import CornerShop
from tests.support.world import World


def program(world: World) -> CornerShop:
    """Let orders go to a corner shop's till, behind the sample program."""
    shop = CornerShop(world.folder)
    shop.sell(world.till.rows.values())
    world.write_config(orders=f'{shop.settings}accept = "when_confirmed"')
    return shop


def tickets(shop: CornerShop) -> list[str]:
    return sorted(path.stem for path in shop.folder.glob("tickets/*.json"))


def pid(world: World) -> int:
    return int(world.bridge.events("adapter.ready")[-1]["pid"])


def written(world: World) -> list[str]:
    return sorted(event["order"] for event in world.bridge.events("order.written"))


def started_again(world: World, killed: int) -> bool:
    return pid(world) != killed


async def test_orders_reach_a_till_behind_a_program_that_is_killed_all_the_time(
    world: World,
) -> None:
    shop = program(world)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()

    first = await world.order("p1")
    await until("the ticket is there", lambda: tickets(shop) == [first])
    (shop.folder / "news" / "1.json").write_text(json.dumps({"order_id": first, "status": "ready"}))
    await world.reaches(first, "ready")
    await until("the news is done with", (shop.folder / "news" / "1.done").exists)

    placed = [first]
    for _ in range(4):
        killed = pid(world)
        placed.append(await world.order("p2", wait=False))
        os.kill(killed, signal.SIGKILL)
        await until("it is started again", partial(started_again, world, killed))
    await until("each has its ticket", lambda: tickets(shop) == sorted(placed))
    await until("each is known to have one", lambda: set(written(world)) >= set(placed))
    assert written(world) == sorted(placed)

    shop.program.write_text("raise SystemExit(7)\n")
    os.kill(pid(world), signal.SIGKILL)
    await world.problem("adapter.keeps_dying")
    await world.problem("pos.offline")
    shutil.copy(shop.made, shop.program)
    await world.problem("adapter.keeps_dying", open_=False)
    await world.problem("pos.offline", open_=False)

    last = pid(world)
    assert await world.bridge.stop() == 0
    assert not Path(f"/proc/{last}").exists()
