from collections.abc import AsyncIterator

import pytest

from tests.support.sandbox_driver import STORE, Driver, driven, item, until
from tillbridge.sandbox.webhooks import sign

MARKUP = "<script>alert(1)</script>"


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        await driver.push(
            item("tea", 300, name="Tea", categories=["drinks"]),
            item("evil", 100, name=MARKUP, description=MARKUP),
            item("syrup", 50, name="Syrup", product_type="addon"),
            item(
                "coffee",
                400,
                name="Coffee",
                categories=["drinks"],
                addon_groups=["milk"],
                variants=[
                    {"external_id": "c-s", "variant_name": "Small", "price": 400},
                    {"external_id": "c-l", "variant_name": "Large", "price": 550},
                ],
            ),
            categories=[{"external_id": "drinks", "name": "Drinks"}],
            add_ons=[
                {"external_id": "oat", "name": "Oat", "price": 60},
                {"external_id": "cow", "name": "Cow", "price": 0},
            ],
            addon_groups=[
                {
                    "external_id": "milk",
                    "name": "Milk",
                    "min_select": 1,
                    "max_select": 1,
                    "add_ons": ["oat", "cow"],
                }
            ],
        )
        yield driver


async def test_the_menu_shows_what_was_pushed_and_escapes_it(bridge: Driver) -> None:
    status, page, _ = await bridge.page("/store/st_main")
    assert status == 200
    for text in ("Main Street", "Drinks", "Tea", "$3.00", "from $4.00"):
        assert text in page
    assert MARKUP not in page
    assert "&lt;script&gt;" in page
    assert "Syrup" not in page


async def test_a_sold_out_item_says_so_and_cannot_be_added(bridge: Driver) -> None:
    _, _, _ = await bridge.page("/store/st_main")
    body = {"items": [{"external_id": "tea", "available": False}]}
    await bridge.call("POST", f"{STORE}/items/availability", body)
    _, page, _ = await bridge.page("/store/st_main")
    assert "sold out" in page
    _, page, path = await bridge.page("/store/st_main/basket", {"external_id": "tea"})
    assert path == "/store/st_main/item"
    assert "Tea is sold out." in page


async def test_a_person_orders_and_watches_the_order(bridge: Driver) -> None:
    form = {
        "external_id": "coffee",
        "variant": "c-l",
        "pick:milk": "oat",
        "quantity": "2",
    }
    status, page, path = await bridge.page("/store/st_main/basket", form)
    assert (status, path) == (200, "/store/st_main")
    assert "Coffee (Large)" in page
    assert "$12.20" in page
    form = {"special_instructions": "No <lid>"}
    _, page, path = await bridge.page("/store/st_main/orders", form)
    assert path.startswith("/orders/ord_")
    assert "No &lt;lid&gt;" in page
    order_id = path.removeprefix("/orders/")
    _, before, _ = await bridge.page(f"{path}/version")
    await bridge.call("POST", f"/pos/orders/{order_id}/accept")
    _, after, _ = await bridge.page(f"{path}/version")
    assert before != after
    await bridge.call("POST", f"/pos/orders/{order_id}/status", {"status": "preparing"})
    await bridge.call("POST", f"/pos/orders/{order_id}/ready")
    _, page, _ = await bridge.page(path)
    assert "Mark as delivered" in page
    _, page, _ = await bridge.page(f"{path}/deliver", {})
    assert "completed" in page
    (order,) = (await bridge.state())["orders"]
    assert order["state"] == "completed"
    _, page, _ = await bridge.page("/store/st_main")
    assert "Empty." in page


async def test_a_cancelled_order_tells_the_customer_why(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "tea"})
    body = {"reason": "The kettle broke", "reason_code": "OTHER", "message": "call us"}
    await bridge.call("POST", f"/pos/orders/{order['order_id']}/cancel", body)
    _, page, _ = await bridge.page(f"/orders/{order['order_id']}")
    assert "The kettle broke" in page
    status, _, _ = await bridge.page(f"/orders/{order['order_id']}/cancel", {})
    assert status == 409


async def test_a_customer_who_cancels_reads_that_the_restaurant_does_not_hear_of_it(
    bridge: Driver,
) -> None:
    order = await bridge.place({"external_id": "tea"})
    await bridge.page(f"/orders/{order['order_id']}/cancel", {})
    _, page, _ = await bridge.page(f"/orders/{order['order_id']}")
    assert "its till keeps the ticket" in page


async def test_the_basket_tells_of_items_that_sold_out_meanwhile(bridge: Driver) -> None:
    await bridge.page("/store/st_main/basket", {"external_id": "tea"})
    body = {"items": [{"external_id": "tea", "available": False}]}
    await bridge.call("POST", f"{STORE}/items/availability", body)
    _, page, _ = await bridge.page("/store/st_main")
    assert "Tea is sold out. Remove it to order the rest." in page
    status, page, _ = await bridge.page("/store/st_main/orders", {})
    assert status == 409
    assert "The order was not placed" in page
    _, page, _ = await bridge.page("/store/st_main/basket/remove", {"line": "0"})
    assert "Empty." in page


async def test_a_choice_that_does_not_fit_is_explained(bridge: Driver) -> None:
    form = {"external_id": "coffee", "variant": "c-l"}
    _, page, path = await bridge.page("/store/st_main/basket", form)
    assert path == "/store/st_main/item"
    assert "Coffee, Milk: choose 1." in page


async def test_an_order_from_a_table_says_which_one(bridge: Driver) -> None:
    tables = {"tables": [{"external_id": "t4", "name": "4"}]}
    (table,) = (await bridge.call("POST", f"{STORE}/tables", tables)).body["tables"]
    token = table["qr_token"]
    _, page, _ = await bridge.page(f"/store/st_main?table={token}")
    assert "Table 4" in page
    form = {"external_id": "tea", "table": token}
    await bridge.page("/store/st_main/basket", form)
    await bridge.page("/store/st_main/orders", {"table": token, "special_instructions": "hot"})
    (order,) = (await bridge.state())["orders"]
    assert order["data"]["order_type"] == "dine_in"
    assert order["data"]["special_instructions"] == "Table 4. hot"


async def test_the_menus_version_moves_with_availability_and_with_the_end_of_a_snooze(
    bridge: Driver,
) -> None:
    async def version() -> str:
        return (await bridge.page("/store/st_main/version"))[1]

    seen = [await version()]
    until = "2031-01-01T00:00:00Z"
    entry = {"external_id": "tea", "available": False, "snooze_until": until}
    await bridge.call("POST", f"{STORE}/items/availability", {"items": [entry]})
    seen.append(await version())
    _, page, _ = await bridge.page("/store/st_main")
    assert "until 01 Jan 00:00 UTC" in page
    await bridge.jump(20 * 365 * 24 * 3600)
    seen.append(await version())
    assert len(set(seen)) == 3


async def test_a_store_without_a_till_and_pages_that_do_not_exist(bridge: Driver) -> None:
    await bridge.call("DELETE", "/pos/integrations/st_main")
    _, page, _ = await bridge.page("/store/st_main")
    assert "No till is connected" in page
    status, _, _ = await bridge.page("/store/st_main/orders", {})
    assert status == 409
    for path in ("/store/st_none", "/orders/ord_none", "/nothing"):
        status, page, _ = await bridge.page(path)
        assert status == 404
        assert "Go back" in page


async def test_the_first_page_says_how_to_connect_and_makes_trouble(bridge: Driver) -> None:
    _, page, _ = await bridge.page("/")
    assert bridge.running.base_url in page
    assert "sandbox-secret" in page
    _, page, _ = await bridge.page("/panel", {"do": "unavailable_once"})
    assert page.count(">Done.<") == 1  # beside the button that was pressed
    _, page, _ = await bridge.page("/")
    assert ">Done.<" not in page
    assert "Switched on: error 503 (1 to go)" in page
    assert (await bridge.call("GET", "/pos/stores")).status == 503
    for button in ("pause", "resume", "jump_day", "speed_60", "speed_1", "down", "clear"):
        status, _, _ = await bridge.page("/panel", {"do": button})
        assert status == 200
    assert (await bridge.call("GET", "/pos/stores")).code == "auth.token_expired"
    status, _, _ = await bridge.page("/panel", {"do": "nothing"})
    assert status == 400


async def test_an_order_says_what_it_waits_for(bridge: Driver) -> None:
    bridge.receiver.statuses = [503, 200]
    order = await bridge.place({"external_id": "tea"})
    at = f"/orders/{order['order_id']}"
    _, page, _ = await bridge.page(at)
    assert "The service tries again in 60 s (attempt 2)" in page
    await bridge.page("/panel", {"do": "jump_minute"})

    webhooks = bridge.running.sandbox.webhooks
    await until(lambda: webhooks.deliveries[order["delivery"]["delivery_id"]].state == "delivered")
    assert "has not accepted it yet" in (await bridge.page(at))[1]
    await bridge.call("POST", f"/pos{at}/accept")
    assert 'class="waits"' not in (await bridge.page(at))[1]
    await bridge.page("/panel", {"do": "pause"})
    body = {"store_id": "st_main", "items": [{"external_id": "tea"}]}
    held = (await bridge.control("POST", "/orders", body)).body["order_id"]
    assert "Deliveries are paused" in (await bridge.page(f"/orders/{held}"))[1]


async def test_the_panel_delivers_the_last_order_again_and_forges_it(bridge: Driver) -> None:
    status, page, _ = await bridge.page("/panel", {"do": "again"})
    assert status == 409
    assert "There is no order yet" in page
    await bridge.place({"external_id": "tea"})
    await bridge.page("/panel", {"do": "again"})
    await bridge.page("/panel", {"do": "forge"})

    await until(lambda: len(bridge.receiver.received) == 5)
    first, *others = bridge.receiver.received
    signed = [sign(each.raw, bridge.secret) for each in others]
    right = [
        each.headers["x-service-signature"] == ours
        for each, ours in zip(others, signed, strict=True)
    ]
    assert sorted(right) == [False, False, False, True]
    events = {each.json["event_id"] for each in others}
    assert len(events) == 4
    assert first.json["event_id"] in events


async def test_pages_run_no_scripts_but_their_own(bridge: Driver) -> None:
    url = f"{bridge.running.url}/store/st_main"
    async with bridge.session.get(url) as response:
        policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
