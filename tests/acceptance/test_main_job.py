"""The main job, end to end: the till's export reaches the storefront, orders become tickets."""

import json

from tests.support.bridge_process import until
from tests.support.world import World


async def menu_calls(world: World) -> list[tuple[str, str]]:
    return [
        (call["method"], call["path"].rsplit("/st_main/", 1)[-1])
        for call in await world.calls("/pos/stores/st_main/")
        if call["method"] != "GET"
    ]


async def test_the_first_push_is_whole(shop: World) -> None:
    assert await menu_calls(shop) == [("POST", "menus")]

    async def acknowledged() -> bool:
        menu = (await shop.status())["stores"]["main"]["menu"]
        return bool(menu["acknowledged_items"] == 12)

    # The storefront has the menu a moment before the bridge has read the service's answer.
    await until("the push is acknowledged", acknowledged)
    status = await shop.status()
    assert status["verdict"]["level"] == "ok", status


async def test_each_change_takes_the_cheapest_right_call(shop: World) -> None:
    await shop.control("requests", method="DELETE")
    shop.till.write_menu()  # unchanged
    shop.till.change("p1", price="2.75")
    await shop.menu_is_on_sale()
    shop.till.change("p2", available="false")
    await shop.menu_is_on_sale()
    shop.till.rows["p3"]["name"] = "Dish three"
    shop.till.rows["p4"]["price"] = "4.75"
    shop.till.rows["p13"] = {**shop.till.rows["p12"], "external_id": "p13", "name": "Dish 13"}
    del shop.till.rows["p12"]
    shop.till.write_menu()
    await shop.menu_is_on_sale()
    assert await menu_calls(shop) == [
        ("PATCH", "items/p1"),
        ("POST", "items/availability"),
        ("POST", "menus/batch"),
    ]


async def test_an_item_sold_out_is_off_sale_at_once(shop: World) -> None:
    shop.till.change("p5", available="false")

    async def off_sale() -> bool:
        return not (await shop.storefront())["p5"]["available"]

    await until("p5 is off sale", off_sale, within_s=5)
    shop.till.change("p5", available="true")
    await shop.menu_is_on_sale()


async def test_staff_take_an_item_off_whatever_the_till_says(shop: World) -> None:
    code, out, err = await shop.bridge.run("item", "86", "main", "p6")
    assert code == 0, out + err

    async def off_sale() -> bool:
        return not (await shop.storefront())["p6"]["available"]

    await until("p6 is off sale", off_sale)
    shop.till.change("p6", price="6.60")  # the till still says that it is available
    await until("p6 has its new price", lambda: _price(shop, "p6", 660))
    assert await off_sale()
    code, out, err = await shop.bridge.run("item", "restore", "main", "p6")
    assert code == 0, out + err
    await shop.menu_is_on_sale()


async def _price(world: World, external_id: str, price: int) -> bool:
    found: bool = (await world.storefront())[external_id]["price"] == price
    return found


async def test_an_order_becomes_a_ticket_and_its_life_is_told(shop: World) -> None:
    order = await shop.order("p1", "p2")
    await until("the ticket is there", lambda: shop.till.tickets() == [order])
    ticket = json.loads((shop.till.orders / f"{order}.json").read_text(encoding="utf-8"))
    assert [line["external_id"] for line in ticket["items"]] == ["p1", "p2"]
    await shop.reaches(order, "accepted")
    shop.till.tell(order, "ready")  # a till that jumps
    await shop.reaches(order, "ready")
    await shop.control(f"orders/{order}/deliver", {})

    async def completed() -> bool:
        by_state = (await shop.status())["stores"]["main"]["orders"]["by_state"]
        return bool(by_state == {"completed": 1})

    await until("the bridge knows that it is completed", completed)
    assert [path.name for path in (shop.till.updates / "done").glob("*.json")]


async def test_a_refusal_of_the_kitchen_reaches_the_customer_and_takes_the_item_off(
    shop: World,
) -> None:
    order = await shop.order("p3")
    await until("the ticket is there", shop.till.tickets)
    shop.till.tell(
        order, "rejected", reason="item_unavailable", external_ids=["p3"], message="no more fish"
    )
    await shop.reaches(order, "cancelled")
    cancelled = await shop.control(f"orders/{order}", method="GET")
    assert cancelled["cancellation"]["reason_code"] == "ITEM_OUT_OF_STOCK"

    async def off_sale() -> bool:
        return not (await shop.storefront())["p3"]["available"]

    await until("p3 is off sale", off_sale)


async def test_a_menu_that_loses_most_of_its_items_waits_for_a_person(shop: World) -> None:
    before = await shop.storefront()
    kept = dict(list(shop.till.rows.items())[:4])
    shop.till.rows = kept
    shop.till.write_menu()
    await shop.problem("menu.held")
    assert set(await shop.storefront()) == set(before)
    code, out, err = await shop.bridge.run("menu", "plan", "main")
    assert code == 0, out + err
    assert "8 of 12" in out
    code, out, err = await shop.bridge.run("menu", "approve", "main")
    assert code == 0, out + err
    await shop.menu_is_on_sale()
    await shop.problem("menu.held", open_=False)


async def test_a_push_by_hand_says_what_came_of_it(shop: World) -> None:
    code, out, err = await shop.bridge.run("menu", "push", "main")
    assert code == 0, out + err
    assert "already matches the till" in out
    await shop.control("requests", method="DELETE")
    code, out, err = await shop.bridge.run("menu", "push", "main", "--full")
    assert code == 0, out + err
    assert await menu_calls(shop) == [("POST", "menus")]


async def test_a_menu_of_20_000_items(world: World) -> None:
    for number in range(13, 20_001):
        world.till.rows[f"p{number}"] = {
            "external_id": f"p{number}",
            "name": f"Dish {number}",
            "price": "9.50",
            "category": f"Category {number % 40}",
            "available": "true",
        }
    world.till.write_menu()
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale(within_s=60)
    await world.control("requests", method="DELETE")
    world.till.change("p19999", price="9.75")
    await until("p19999 has its new price", lambda: _price(world, "p19999", 975))
    assert await menu_calls(world) == [("PATCH", "items/p19999")]
