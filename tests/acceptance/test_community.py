"""A food hall through the real daemon: catalogue, an 86, an order over two stores, webhook."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.sandbox_driver import item
from tests.support.world import World, make_world
from tillbridge.sandbox import CommunitySeed, MerchantSeed, StoreSeed

HALL = "communities/com_food_hall"
COMMUNITY = """
[communities.hall]
community_id = "com_food_hall"
sync_s = 0.3
check_s = 0.5
"""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(
        tmp_path,
        merchants=(MerchantSeed(stores=(StoreSeed(), StoreSeed("st_tea", "Tea Room"))),),
        communities=(CommunitySeed(store_ids=("st_main", "st_tea")),),
    ) as made:
        made.write_config(store='store_id = "st_main"\nhours_file = "hours.toml"')
        write_hours(made, "11:00-15:00")
        made.config.write_text(made.config.read_text("utf-8") + COMMUNITY, "utf-8")
        await connect_tea_room(made)
        await made.bridge.start()
        code, out, err = await made.connect()
        assert code == 0, out + err
        await made.menu_is_on_sale()
        await until("there is a subscription", lambda: subscriptions(made))
        yield made


def write_hours(world: World, monday: str, *more: str) -> None:
    days = ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    lines = ['timezone = "Europe/Prague"', "[weekly]", f'monday = ["{monday}"]']
    lines += [f'{day} = ["00:00-24:00"]' for day in days]
    fresh = world.folder / "hours.toml.new"
    fresh.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    fresh.replace(world.folder / "hours.toml")


async def connect_tea_room(world: World) -> None:
    """Another bridge's store, with a till of its own."""
    token = (await world.control("tokens/mint", {}))["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    body = {"webhook_url": "http://127.0.0.1:1/x", "menu_sync_direction": "pos_to_quiqqy"}
    for path, sent in (
        ("pos/integrate-store/st_tea", body),
        ("pos/stores/st_tea/menus", {"menu_name": "Tea", "items": [item("tea", 300)]}),
    ):
        async with world.http.post(f"{world.url}/v2/{path}", json=sent, headers=headers) as answer:
            assert answer.status == 200, await answer.text()


async def hall(world: World) -> dict[str, Any]:
    """What the service knows of the community."""
    found: dict[str, Any] = (await world.state())["communities"]["com_food_hall"]
    return found


async def subscriptions(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await hall(world))["webhooks"]
    return found


async def asked(world: World, *arguments: str) -> Any:  # noqa: ANN401 -- any JSON value
    code, out, err = await world.bridge.run("community", *arguments, "--json")
    assert code == 0, out + err
    return json.loads(out)


async def mirrored(world: World, external_id: str) -> bool:
    found = (await asked(world, "items", "hall"))["items"]
    return any(each["external_id"] == external_id for each in found)


async def order(world: World, *lines: tuple[str, str]) -> dict[str, Any]:
    items = [{"store_id": store, "external_id": each} for store, each in lines]
    placed: dict[str, Any] = await world.control(f"{HALL}/orders", {"items": items})
    return placed


async def known(world: World, order_id: str) -> dict[str, Any] | None:
    found = (await asked(world, "orders", "hall"))["orders"]
    return next((each for each in found if each["order_id"] == order_id), None)


async def reaches(world: World, order_id: str, status: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await known(world, order_id)
        return found if found is not None and found["status"] == status else None

    found = await until(f"{order_id} is {status}", look)
    assert found is not None
    return found


async def test_a_community_order_is_one_ticket_tied_to_its_parent(world: World) -> None:
    placed = await order(world, ("st_main", "p1"), ("st_tea", "tea"))
    ours, theirs = (
        next(c["order_id"] for c in placed["child_orders"] if c["store_id"] == store)
        for store in ("st_main", "st_tea")
    )
    await until("the ticket is written", lambda: world.till.tickets() == [ours])
    found = await reaches(world, placed["order_id"], "pending")
    assert {each["order_id"]: each["store"] for each in found["children"]} == {
        ours: "main",
        theirs: None,
    }
    code, out, _err = await world.bridge.run("orders", "show", ours, "--json")
    assert code == 0
    assert json.loads(out)["community_order"]["order_id"] == placed["order_id"]
    assert placed["customer"]["customer_id"] not in world.bridge.log_path.read_text("utf-8")

    # The same event again, and a stale one late: what the service says counts.
    told = {"event_type": "order.created", "data": {"order": placed}, "wait": True}
    answer = await world.control(f"{HALL}/events", told)
    assert answer["deliveries"][0]["state"] == "delivered"
    stale = {"previous_status": "ready", "order": {**placed, "status": "delivered"}}
    await world.control(f"{HALL}/events", {"event_type": "order.status_changed", "data": stale})
    await world.bridge.logged("community.order", settled="read")
    assert (await reaches(world, placed["order_id"], "pending"))["status"] == "pending"
    assert world.till.tickets() == [ours]

    by_status = (await world.status())["communities"]["hall"]["orders"]["by_status"]
    assert by_status == {"pending": 1}

    # And the page shows it: the parent with both parts, ours as a link to the order.
    page = f"http://127.0.0.1:{world.page_port}"
    async with world.http.get(f"{page}/") as answer:
        assert 'href="/communities/hall"' in await answer.text()
    async with world.http.get(f"{page}/communities/hall") as answer:
        text = await answer.text()
    assert placed["order_number"] in text
    assert f'href="/orders/{ours}"' in text
    assert theirs not in text
    async with world.http.get(f"{page}/communities/nowhere") as answer:
        assert answer.status == 503
        assert "Choose from: hall." in await answer.text()


async def test_an_item_is_86ed_in_the_community_and_sold_by_its_store(world: World) -> None:
    await until("the bridge knows the item", lambda: mirrored(world, "p1"))
    told = await asked(world, "86", "hall", "p1")
    assert told["told"] is True
    assert (await hall(world))["items_off"] == ["p1"]
    assert (await world.storefront())["p1"]["available"] is True
    async with world.http.get(f"http://127.0.0.1:{world.page_port}/communities/hall") as answer:
        text = (await answer.text()).split('id="availability"')[1]
    assert "Dish 1" in text
    assert "Last sent to the community" in text
    (row,) = (await asked(world, "items", "hall", "--off"))["items"]
    assert (row["external_id"], row["own"]["available"], row["own"]["told"]) == ("p1", False, True)
    await asked(world, "restore", "hall", "p1")
    assert (await hall(world))["items_off"] == []
    assert (await asked(world, "items", "hall", "--off"))["items"] == []

    code, _out, err = await world.bridge.run("community", "86", "hall", "nothing")
    assert code == 1
    assert "community items hall" in err


async def test_a_subscription_deleted_at_the_service_is_made_again(world: World) -> None:
    (first,) = await subscriptions(world)
    token = (await asked(world, "webhook", "test", "hall"))["ok"]
    assert token is True
    app = {"client_id": "app_123", "client_secret": "sandbox-secret", "audience": "communities"}
    async with world.http.post(
        f"{world.url}/v2/oauth2/token", json={"grant_type": "client_credentials", **app}
    ) as answer:
        headers = {"Authorization": f"Bearer {(await answer.json())['access_token']}"}
    path = f"{world.url}/v2/webhooks/{first['webhook_id']}"
    async with world.http.delete(path, headers=headers) as answer:
        assert answer.status == 200

    async def another() -> bool:
        return [each["webhook_id"] for each in await subscriptions(world)] not in (
            [],
            [first["webhook_id"]],
        )

    await until("there is another subscription", another)
    assert (await asked(world, "webhook", "test", "hall"))["ok"] is True
    events = [
        each["event_type"]
        for each in (await asked(world, "webhook", "deliveries", "hall"))["deliveries"]
    ]
    assert events == ["webhook.test"]
    assert first["secret"] not in world.bridge.log_path.read_text("utf-8")


async def test_a_changed_hours_file_reaches_the_community(world: World) -> None:
    async def there() -> Any:  # noqa: ANN401 -- any JSON value
        return (await hall(world))["stores"]["st_main"]["hours"]

    async def monday() -> str:
        hours = await there()
        return hours["weekly"]["monday"][0]["close"] if hours else ""

    async def is_(close: str) -> bool:
        return await monday() == close

    await until("the hours are there", lambda: is_("15:00"))
    write_hours(world, "11:00-16:30", "[[overrides]]", "date = 2099-12-24", "closed = true")
    await until("the new hours are there", lambda: is_("16:30"))
    assert (await there())["overrides"][0]["date"] == "2099-12-24"
    (told,) = (await asked(world, "hours", "hall"))["stores"]
    assert told["hours"]["weekly"]["monday"] == [{"open": "11:00", "close": "16:30"}]
    assert told["pushed_at"]
    assert len(await world.calls("/stores/st_main/hours")) == 2


async def test_commands_work_without_the_bridge(world: World) -> None:
    await world.bridge.stop()
    assert (await asked(world, "sync", "hall", "--full"))["items"] == 13
    await asked(world, "86", "hall", "p2")
    assert (await hall(world))["items_off"] == ["p2"]
    code, out, _err = await world.bridge.run("status", "--json")
    assert code == 2
    told = json.loads(out)["communities"]["hall"]
    assert (told["community_id"], told["catalogue"]["items"]) == ("com_food_hall", 13)
    code, out, _err = await world.bridge.run("community", "webhook", "test", "hall")
    assert code == 1
    assert "not running" in out
