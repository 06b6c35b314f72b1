"""The program as a service: started, stopped, started twice, asked while it is down."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing

import pytest

from tests.support.bridge_process import BridgeProcess, until
from tests.support.world import SECRET, World


@pytest.mark.own_interpreter
async def test_sigterm_drains_and_exits_0(shop: World) -> None:
    orders = [await shop.order("p1", wait=True) for _ in range(5)]
    started = time.monotonic()
    assert await shop.bridge.stop() == 0
    assert time.monotonic() - started < 10
    await shop.bridge.start()
    await until("all tickets", lambda: shop.till.tickets() == sorted(orders))
    for order in orders:
        await shop.reaches(order, "accepted")


async def test_a_second_daemon_refuses_to_start(shop: World) -> None:
    second = BridgeProcess(shop.config, env=shop.bridge.env)
    code, out, err = await second.run("run", within_s=20)
    assert code == 1, (code, out, err)
    assert shop.bridge.process is not None
    assert str(shop.bridge.process.pid) in err
    assert (await shop.status())["verdict"]["level"] == "ok"


async def test_connecting_twice_changes_nothing(shop: World) -> None:
    (before,) = (await shop.state())["stores"]["st_main"]["integrations"]
    code, out, err = await shop.connect()
    assert code == 0, out + err
    (after,) = (await shop.state())["stores"]["st_main"]["integrations"]
    assert after["webhook_secret"] == before["webhook_secret"]
    order = await shop.order("p1")
    await shop.reaches(order, "accepted")


async def test_connecting_without_a_daemon(world: World) -> None:
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.bridge.start()
    await world.menu_is_on_sale()
    order = await world.order("p1")
    await world.reaches(order, "accepted")


async def test_status_answers_with_and_without_the_daemon(shop: World) -> None:
    code, out, err = await shop.bridge.run("status", "--json")
    assert code == 0, out + err
    assert json.loads(out)["stores"]["main"]["menu"]["acknowledged_items"] == 12
    assert await shop.bridge.stop() == 0
    code, out, err = await shop.bridge.run("status", "--json")
    assert code == 2, out + err
    document = json.loads(out)
    assert document["verdict"]["level"] == "down"
    assert document["problems"][0]["code"] == "bridge.stopped"
    assert document["stores"]["main"]["menu"]["acknowledged_items"] == 12


async def test_no_secret_is_in_the_log_or_in_the_ledger(shop: World) -> None:
    order = await shop.order("p1", special_instructions="ring twice at Mrs Miller's")
    await shop.reaches(order, "accepted")
    (link,) = (await shop.state())["stores"]["st_main"]["integrations"]
    await shop.bridge.stop()
    planted = [SECRET.encode(), link["webhook_secret"].encode(), b"eyJ"]
    for path in shop.folder.glob("data/**/*"):
        if path.is_file():
            for secret in planted:
                assert secret not in path.read_bytes(), path
    log = shop.bridge.log_path.read_bytes()
    for secret in (*planted, b"Mrs Miller"):
        assert secret not in log


@pytest.mark.parametrize("jump_s", [-7200, 86_400])
async def test_a_wall_clock_that_jumps(world: World, faults: str, jump_s: int) -> None:
    """Neither direction loses an order, cancels one, or stops the retries."""
    clock = world.folder / "clock"
    world.bridge.env |= {"LD_PRELOAD": faults, "FAULT_CLOCK": str(clock)}
    world.write_config(orders='price_differs = "cancel"')
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale()
    world.till.orders.rename(world.folder / "unplugged")
    order = await world.order("p1")
    await world.problem("pos.offline")
    clock.write_text(str(jump_s), encoding="utf-8")
    await asyncio.sleep(1)  # time passes; nothing is to be seen meanwhile
    (world.folder / "unplugged").rename(world.till.orders)
    await until("the ticket is there", lambda: world.till.tickets() == [order])
    await world.reaches(order, "accepted")
    world.till.change("p1", price="1.95")
    await world.menu_is_on_sale()
    await world.reaches(await world.order("p1"), "accepted")  # at the price that the guest saw


async def test_a_dead_address_is_forgotten_once_nobody_outside_is_to_reach_it(shop: World) -> None:
    """The public address was mended in the configuration; what is there now is not probed."""
    assert await shop.bridge.stop() == 0
    with closing(sqlite3.connect(shop.folder / "data/ledger.db")) as ledger, ledger:
        ledger.execute(
            "INSERT INTO problems (code, store, subject, since, detail)"
            " VALUES ('public_address.unreachable', '', '', 0, '{}')"
        )
    _code, out, _err = await shop.bridge.run("status", "--json")
    assert "public_address.unreachable" in out
    await shop.bridge.start()

    async def forgotten() -> bool:
        return not (await shop.status())["problems"]

    await until("the problem is closed", forgotten)
