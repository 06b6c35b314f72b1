"""Several bridges on one PostgreSQL: exactly one of them serves a store, whatever happens."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.postgresql import on_postgresql, server
from tests.support.several_bridges import OneBridge, SeveralBridges, several_bridges
from tillbridge.sandbox import CommunitySeed

pytestmark = on_postgresql()

TAKEN_OVER_S = 15
HALL = """
[communities.hall]
community_id = "com_food_hall"
sync_s = 0.3
check_s = 0.5
"""


@pytest.fixture
async def together(tmp_path: Path) -> AsyncIterator[SeveralBridges]:
    async with several_bridges(tmp_path) as together:
        yield together


async def connect(together: SeveralBridges, at: OneBridge | None = None) -> None:
    """Connect the store main, by a command at a bridge; by default at the one that serves it."""
    together.world.bridge = (at or await together.owner("main")).process
    code, out, err = await together.world.connect()
    assert code == 0, out + err
    await together.world.menu_is_on_sale()


async def test_stores_are_spread_and_handed_over(together: SeveralBridges) -> None:
    await together.start("a")
    await together.spread(lambda seen: seen["a"] == set(together.stores))
    await together.start("b")
    await together.spread(lambda seen: [len(each) for each in seen.values()] == [2, 2])
    assert await together.bridges["a"].process.stop() == 0
    await together.spread(lambda seen: seen["b"] == set(together.stores))
    # It was given the stores, and did not wait until they were anybody's.
    assert not together.bridges["b"].process.events("leases.died")


async def test_a_killed_bridge_s_orders_are_taken_over_and_written_once(
    together: SeveralBridges,
) -> None:
    await together.start("a", "b", "c")
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [1, 1, 2])
    await connect(together)
    owner = await together.owner("main")
    orders = [await together.world.order("p1", wait=False) for _ in range(6)]
    await owner.process.kill()
    del together.bridges[owner.name]
    orders += [await together.world.order("p2", wait=False) for _ in range(3)]

    async def is_taken_over() -> bool:
        return await together.server_of("main") in together.bridges

    await until("another bridge has taken the store over", is_taken_over)
    assert await together.taken_over_after_s("main", owner.name) <= TAKEN_OVER_S
    for order in orders:
        await together.world.reaches(order, "accepted")
        assert await together.tickets(order) == 1
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])


async def test_a_bridge_that_was_frozen_writes_nothing_when_it_goes_on(
    together: SeveralBridges,
) -> None:
    await together.start("a", "b")
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    await connect(together)
    frozen = await together.owner("main")
    (other,) = together.others(frozen)
    before = [await together.world.order("p1", wait=False) for _ in range(4)]
    frozen.send(signal.SIGSTOP)
    together.bridges = {other.name: other, frozen.name: frozen}  # so a load balancer would
    during = [await together.world.order("p2", wait=False) for _ in range(4)]
    await together.spread(lambda seen: seen[other.name] == set(together.stores))
    assert await together.taken_over_after_s("main", frozen.name) <= TAKEN_OVER_S
    for order in before + during:
        await together.world.reaches(order, "accepted")
    written = len(frozen.process.events("order.written"))
    calls = len(await together.world.calls("/accept"))
    frozen.send(signal.SIGCONT)
    await frozen.process.logged("leases.declared_dead")
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    assert len(frozen.process.events("order.written")) == written
    assert len(await together.world.calls("/accept")) == calls
    for order in before + during:
        assert await together.tickets(order) == 1
    assert not frozen.process.events("task.died")
    late = await together.world.order("p1")
    await together.world.reaches(late, "accepted")


async def test_what_arrives_at_one_bridge_is_done_by_another(together: SeveralBridges) -> None:
    await together.start("a", "b")
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    owner = await together.owner("main")
    (other,) = together.others(owner)
    await connect(together, at=other)
    together.bridges = {other.name: other, owner.name: owner}  # deliveries come to the other one
    order = await together.world.order("p1")
    await together.world.reaches(order, "accepted")
    assert not other.process.events("order.written")
    assert owner.process.events("order.written")

    # A click on the page, or a command, of the bridge that does not serve the store.
    answer = await other.command("item", "86", "main", "p1")
    assert answer["ok"]

    async def is_off_sale() -> bool:
        return not (await together.world.storefront())["p1"]["available"]

    await until("guests no longer see it on sale", is_off_sale)
    who = await together.rows("SELECT who, store, target FROM audit WHERE action = 'item.86'")
    assert [each[1:] for each in who] == [("main", "p1")]
    code, out, err = await other.process.run("item", "86", "nowhere", "p1")
    assert code == 2, out + err

    # Words are lost: what was missed is found by looking.
    losing = asyncio.create_task(together.lose_words())
    await asyncio.sleep(0.5)
    order = await together.world.order("p2")
    await together.world.reaches(order, "accepted")
    losing.cancel()


async def test_a_pinned_store_is_served_by_its_bridge_alone(together: SeveralBridges) -> None:
    await together.start("a")
    await together.start("b", bridge='serve = ["bar"]')
    await together.spread(lambda seen: seen == {"a": {"main", "kiosk", "grill"}, "b": {"bar"}})
    b = together.bridges.pop("b")
    await b.process.kill()
    await together.bridges["a"].process.logged("leases.died")
    await together.spread(lambda seen: seen == {"a": {"main", "kiosk", "grill"}})
    assert await together.server_of("bar") == ""


async def test_every_bridge_shows_all_of_them_and_who_serves_what(
    together: SeveralBridges,
) -> None:
    for name in ("a", "b"):
        reports = f'[fleet]\nname = "{name}"\nfolder = "reports"\nevery_s = 0.5'
        await together.start(name, more=reports)
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    a, b = together.bridges.values()

    async def reports_its_own(bridge: OneBridge) -> bool:
        try:
            text = (bridge.folder / "reports" / f"{bridge.name}.json").read_text("utf-8")
        except FileNotFoundError:
            return False
        return set(json.loads(text)["status"]["stores"]) == await bridge.serves()

    for bridge in (a, b):
        await until("its report is of its own stores", partial(reports_its_own, bridge))

    async def shows(bridge: OneBridge) -> bool:
        _code, out, _err = await bridge.process.run("status", "--json")
        shown = {name: set(each["serves"]) for name, each in json.loads(out)["bridges"].items()}
        return shown == {"a": await a.serves(), "b": await b.serves()}

    for bridge in (a, b):
        await until("status shows both", partial(shows, bridge))
    url = f"http://127.0.0.1:{a.page_port}/stores"
    async with together.world.http.get(url) as page:
        text = await page.text()
    assert "Bridges on this database" in text
    assert all(store in text for store in together.stores)
    # A bridge with a name that is taken is refused, and says what to do.
    same = OneBridge(together, "b2")
    same.name = "b"
    same.write_config(stores=together.stores)
    code, out, err = await same.process.run("run")
    assert code == 2, out + err
    assert "Another bridge called b" in err
    # A command on a machine without a bridge of its own asks the bridge that serves the store.
    await b.process.kill()
    del together.bridges["b"]
    await together.spread(lambda seen: seen["a"] == set(together.stores))
    same.write_config(stores=together.stores)
    code, out, err = await same.process.run("item", "86", "bar", "p1")
    assert (code, "The menu has no item p1." in err) == (1, True), "as that bridge says"
    (entry,) = await together.rows("SELECT who, store FROM audit WHERE action = 'item.86'")
    assert entry[1] == "bar"
    await a.process.kill()
    del together.bridges["a"]


async def test_a_community_is_one_bridge_s_and_taken_over(tmp_path: Path) -> None:
    communities = (CommunitySeed(store_ids=("st_main",)),)
    async with several_bridges(tmp_path, communities=communities) as together:
        await together.start("a", "b", more=HALL)
        await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 3])
        await connect(together)
        owner = await together.owner("communities/hall")
        (other,) = together.others(owner)

        async def hall() -> dict[str, Any]:
            state = await together.world.state()
            found: dict[str, Any] = state["communities"]["com_food_hall"]
            return found

        async def is_subscribed() -> bool:
            return bool((await hall())["webhooks"])

        async def knows(what: str, name: str, value: object) -> bool:
            # Right after it is taken, it may be about to start: then the command says so.
            code, out, _err = await other.process.run("community", what, "hall", "--json")
            return code == 0 and value in [each[name] for each in json.loads(out)[what]]

        await until("there is a subscription", is_subscribed)
        subscriptions = (await hall())["webhooks"]
        # A command at the bridge that does not serve it.
        await until("the item is there", partial(knows, "items", "external_id", "p1"))
        assert (await other.command("community", "86", "hall", "p1"))["told"]
        assert (await hall())["items_off"] == ["p1"]

        await owner.process.kill()
        del together.bridges[owner.name]
        lines = [{"store_id": "st_main", "external_id": "p2"}]
        placed = await together.world.control("communities/com_food_hall/orders", {"items": lines})
        await together.spread(lambda seen: len(seen[other.name]) == 5)
        assert await together.taken_over_after_s("communities/hall", owner.name) <= TAKEN_OVER_S
        order = partial(knows, "orders", "order_id", placed["order_id"])
        await until("the order is known", order)
        await other.command("community", "restore", "hall", "p1")
        assert (await hall())["items_off"] == []
        assert (await hall())["webhooks"] == subscriptions, "it made no other one"


async def test_a_database_that_is_away_ends_no_bridge(together: SeveralBridges) -> None:
    await together.start("a", "b")
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    await connect(together)
    server().kill()
    bridges = together.bridges.values()
    for bridge in bridges:
        await bridge.process.logged("leases.lapsed")
    async with together.world.http.get(
        f"http://127.0.0.1:{together.bridges['a'].receiver_port}/healthz"
    ) as answer:
        assert answer.status == 503
    server().start()
    await together.spread(lambda seen: sorted(map(len, seen.values())) == [2, 2])
    order = await together.world.order("p1")
    await together.world.reaches(order, "accepted")
    assert await together.tickets(order) == 1
    assert not [each for bridge in bridges for each in bridge.process.events("task.died")]
