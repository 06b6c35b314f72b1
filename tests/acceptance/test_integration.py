"""A store's integration through the real daemon: changed, renewed, removed, disabled."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import free_port, until
from tests.support.world import World, make_world

QUICK = """
reintegrate_quiet_s = 0.3
reintegrate_settle_s = 0
integration_check_s = 0.5
"""


async def shop_of(world: World) -> World:
    """Open the shop: connected, the bridge running, the menu on sale."""
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    return world


@pytest.fixture
async def quick(world: World) -> World:
    """A shop whose storefront is closed for a moment only, where its integration is renewed."""
    world.write_config(top=QUICK)
    return await shop_of(world)


@pytest.fixture
async def rotating(tmp_path: Path) -> AsyncIterator[World]:
    """The same, at a service whose update call rotates, and shows the secret."""
    async with make_world(tmp_path / "shop", rotation_returns_secret=True) as made:
        made.write_config()
        text = made.config.read_text("utf-8")
        made.config.write_text(
            text + '\n[assumptions]\nrotate_secret_field = "rotate_webhook_secret"\n', "utf-8"
        )
        yield await shop_of(made)


async def link(world: World) -> dict[str, Any]:
    (found,) = (await world.state())["stores"]["st_main"]["integrations"]
    integration: dict[str, Any] = found
    return integration


async def asked(world: World, *arguments: str, code: int = 0) -> dict[str, Any]:
    found, out, err = await world.bridge.run("integration", *arguments, "--json")
    assert found == code, out + err
    told: dict[str, Any] = json.loads(out)
    return told


def rewrite(world: World, before: str, after: str) -> None:
    text = world.config.read_text("utf-8")
    assert before in text
    world.config.write_text(text.replace(before, after), "utf-8")


async def works(world: World) -> None:
    order = await world.order("p1")
    await world.reaches(order, "accepted")


async def refused(world: World) -> list[object]:
    deliveries = (await world.control("deliveries", method="GET"))["deliveries"]
    return [
        (each["event_type"], attempt["status"], attempt["error"])
        for each in deliveries
        for attempt in each["attempts"]
        if attempt["status"] != 200
    ]


async def test_a_start_reads_the_stores_once_and_sees_what_others_closed_meanwhile(
    world: World,
) -> None:
    await shop_of(world)
    await world.bridge.stop()
    await world.control("requests", method="DELETE")
    await world.control("stores/st_main/status", {"status": "inactive"})
    await world.bridge.start()
    await world.problem("store.paused_elsewhere")
    await asyncio.sleep(1)
    reads = [call["path"] for call in await world.calls("/pos/stores") if call["status"] == 200]
    # A push that the stop met on its way is looked up, and sent again where nobody knows it.
    assert [each for each in reads if "/menus" not in each] == ["/pos/stores"]


async def test_a_changed_public_url_is_applied_at_the_next_start(quick: World) -> None:
    await quick.bridge.stop()
    old, new = quick.receiver_port, free_port()
    rewrite(quick, f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    await quick.bridge.start()

    async def moved() -> bool:
        return bool((await link(quick))["webhook_url"] == f"http://127.0.0.1:{new}/webhooks/main")

    await until("the service has the new address", moved)
    await works(quick)
    puts = [call for call in await quick.calls("/pos/integrations") if call["method"] == "PUT"]
    assert [list(call["body"]) for call in puts] == [["webhook_url"]]
    service = (await quick.status())["stores"]["main"]["service"]
    assert service["webhook_url"].startswith(f"http://127.0.0.1:{new}/")


async def test_a_changed_location_is_applied_and_orders_go_on(quick: World) -> None:
    before = await link(quick)
    order = await quick.order("p1")
    await quick.reaches(order, "accepted")
    await quick.bridge.stop()
    rewrite(quick, 'location_id = "loc-1"', 'location_id = "loc-2"')
    await quick.bridge.start()

    async def moved() -> bool:
        return (await link(quick)).get("external_store_id") == "loc-2"

    await until("the service has the new location", moved)
    await quick.bridge.logged("integration.applied")
    await works(quick)
    quick.till.tell(order, "ready")
    await quick.reaches(order, "ready")
    assert (await link(quick))["webhook_secret"] != before["webhook_secret"]
    assert (await quick.state())["stores"]["st_main"]["status"] == "active"


async def test_what_could_not_be_delivered_arrives_before_the_location_changes(
    world: World,
) -> None:
    world.write_config(top=QUICK.replace("settle_s = 0", "settle_s = 3"))
    await shop_of(world)
    await world.bridge.stop()
    rewrite(world, 'location_id = "loc-1"', 'location_id = "loc-2"')
    order = await world.order("p2")  # nobody is there to take it
    await world.bridge.start()
    await world.control("clock", {"speed": 30})  # it is repeated after a minute: two seconds
    await world.bridge.logged("integration.waits_for_deliveries")
    assert (await link(world))["external_store_id"] == "loc-1"
    await world.reaches(order, "accepted")
    await world.control("clock", {"speed": 1})

    async def moved() -> bool:
        return (await link(world)).get("external_store_id") == "loc-2"

    await until("the service has the new location", moved)
    assert world.till.tickets() == [order]
    await until("the new secret is in use", lambda: world.bridge.events("integration.applied"))
    await works(world)


async def test_no_order_is_lost_or_refused_while_it_is_integrated_anew(quick: World) -> None:
    await rotate_while_orders_pour_in(quick)
    deletes = [call for call in await quick.calls("/integrations/") if call["method"] == "DELETE"]
    assert len(deletes) == 1


async def test_no_order_is_lost_or_refused_while_the_update_call_rotates(rotating: World) -> None:
    await rotate_while_orders_pour_in(rotating)
    calls = {call["method"] for call in await rotating.calls("/integrations/")}
    assert calls == {"GET", "PUT"}


async def rotate_while_orders_pour_in(world: World) -> None:
    before = (await link(world))["webhook_secret"]
    placed: list[str] = []
    rotated = asyncio.Event()

    async def pour() -> None:
        while not rotated.is_set():
            await asyncio.sleep(0.01)
            if len(placed) > len(world.till.tickets()) + 20:
                continue  # as many as the disk keeps up with
            items = [{"external_id": "p1", "quantity": 1}]
            body = {"store_id": "st_main", "items": items}
            async with world.http.post(f"{world.url}/_control/orders", json=body) as answer:
                if answer.status in {200, 201}:  # else the storefront is closed for a moment
                    placed.append((await answer.json())["order_id"])

    pouring = asyncio.create_task(pour())
    await until("orders pour in", lambda: len(placed) > 5)
    assert (await asked(world, "rotate-secret", "main", "--yes"))["ok"]
    count = len(placed)
    await until("more orders", lambda: len(placed) > count + 5)
    rotated.set()
    await pouring
    assert (await link(world))["webhook_secret"] != before
    await until("all tickets", lambda: set(placed) == set(world.till.tickets()))
    assert await refused(world) == []
    told = await asked(world, "show", "main")
    assert told["secret"] == "known"
    assert told["old_secret_until"]
    assert "whsec" not in json.dumps(told)
    secrets = [before, (await link(world))["webhook_secret"]]
    log = world.bridge.log_path.read_text("utf-8")
    assert not any(secret in log for secret in secrets)


async def test_a_rotation_cut_off_by_a_power_cut_is_finished_at_the_next_start(
    world: World,
) -> None:
    world.write_config(top=QUICK.replace("quiet_s = 0.3", "quiet_s = 30"))
    await shop_of(world)
    before = (await link(world))["webhook_secret"]
    process = await asyncio.create_subprocess_exec(
        *world.bridge.command("integration", "rotate-secret", "main", "--yes"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=world.bridge.env,
    )
    await world.bridge.logged("integration.store_closed")
    assert (await world.state())["stores"]["st_main"]["status"] == "inactive"
    process.kill()  # else it would do the work by itself
    await process.wait()
    await world.bridge.kill()
    await world.bridge.start()
    await world.bridge.logged("integration.store_opened")
    assert (await link(world))["webhook_secret"] != before
    await works(world)


async def test_the_old_secret_ends_without_a_restart(world: World) -> None:
    world.write_config(top="reintegrate_quiet_s = 0")
    rewrite(world, "public_url =", "old_secret_s = 6\npublic_url =")
    await shop_of(world)
    old = (await link(world))["webhook_secret"]
    assert (await asked(world, "rotate-secret", "main", "--yes"))["ok"]
    event = {
        "store_id": "st_main",
        "event_type": "store.status_changed",
        "secret": old,
        "retry": False,
        "wait": True,
    }
    told = await world.control("webhooks/send", event)
    assert [each["status"] for each in told["attempts"]] == [200]

    async def over() -> bool:
        told = await world.control("webhooks/send", event)
        return bool(told["attempts"][0]["status"] == 401)

    await until("the old secret is refused", over)
    await works(world)


async def test_a_removed_store_is_left_alone_until_it_is_connected(quick: World) -> None:
    code, out, err = await quick.bridge.run("integration", "remove", "main")
    assert code == 2
    assert "No more orders arrive" in err
    assert "--yes" in err
    assert (await link(quick))["integration_status"] == "integrated"

    assert (await asked(quick, "remove", "main", "--yes"))["ok"]
    assert (await link(quick))["integration_status"] == "not_integrated"
    await quick.problem("integration.removed")
    calls = len(await quick.calls("/pos/"))
    quick.till.change("p1", price="2.75")
    await asyncio.sleep(1)  # time in which a push would come
    assert len(await quick.calls("/pos/")) == calls
    codes = {each["code"] for each in (await quick.status())["problems"]}
    assert codes == {"integration.removed"}
    service = (await quick.status())["stores"]["main"]["service"]
    assert (service["integrated"], service["integration_status"]) == (False, "removed")
    await quick.bridge.stop()
    await quick.bridge.start()
    await quick.problem("integration.removed")

    code, out, err = await quick.connect()
    assert code == 0, out + err
    await quick.problem("integration.removed", open_=False)
    await quick.menu_is_on_sale()
    await works(quick)


async def test_a_disabled_integration_is_told_and_noticed_when_it_is_back(quick: World) -> None:
    await quick.control("integrations/st_main/disable")
    await quick.problem("integration.disabled")
    assert (await quick.status())["verdict"]["level"] == "down"
    quick.till.change("p1", price="3.25")
    await quick.control("integrations/st_main/enable")
    await quick.problem("integration.disabled", open_=False)
    await quick.menu_is_on_sale()
    await works(quick)


async def test_an_integration_that_vanished_is_made_again_without_a_merchant(quick: World) -> None:
    token = await quick.control("tokens/mint", {})
    async with quick.http.delete(
        f"{quick.url}/v2/pos/integrations/st_main",
        headers={"Authorization": f"Bearer {token['access_token']}"},
    ) as answer:
        assert answer.status == 200
    await quick.problem("integration.missing")
    assert (await asked(quick, "reintegrate", "main", "--yes"))["created"]
    await quick.problem("integration.missing", open_=False)
    await works(quick)


async def test_what_somebody_else_changed_is_told_and_changed_back_once(quick: World) -> None:
    ours = (await link(quick))["webhook_url"]
    token = await quick.control("tokens/mint", {})

    async def meddle() -> None:
        async with quick.http.put(
            f"{quick.url}/v2/pos/integrations/st_main",
            headers={"Authorization": f"Bearer {token['access_token']}"},
            json={"webhook_url": "http://127.0.0.1:9/elsewhere"},
        ) as answer:
            assert answer.status == 200

    async def is_ours() -> bool:
        return bool((await link(quick))["webhook_url"] == ours)

    await meddle()
    await quick.problem("integration.changed_elsewhere")
    await until("it is changed back", is_ours)
    await meddle()

    async def told() -> bool:
        service = (await quick.status())["stores"]["main"]["service"]
        return bool(service["webhook_url"] == "http://127.0.0.1:9/elsewhere")

    await until("the status says what the service has", told)
    assert (await quick.status())["stores"]["main"]["service"]["pending_changes"]
    assert not await is_ours()
    assert (await asked(quick, "apply", "main"))["changed"] == ["webhook_url"]
    assert await is_ours()


async def test_an_existing_integration_is_taken_over_and_its_secret_rotated(world: World) -> None:
    world.write_config(top="reintegrate_quiet_s = 0.1")
    token = await world.control("tokens/mint", {})
    async with world.http.post(
        f"{world.url}/v2/pos/integrate-store/st_main",
        headers={"Authorization": f"Bearer {token['access_token']}"},
        json={"webhook_url": "http://127.0.0.1:9/before", "external_store_id": "loc-1"},
    ) as answer:
        assert answer.status == 200
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    assert "tillbridge integration rotate-secret main" in out
    await world.problem("integration.secret_missing")
    assert await refused(world) == []
    assert (await asked(world, "rotate-secret", "main", "--yes"))["ok"]
    await world.problem("integration.secret_missing", open_=False)
    await world.menu_is_on_sale()
    await works(world)
