"""Orders of a community in the sandbox, and what its subscriptions hear of them."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.sandbox_driver import STORE, Json, Received, item, until
from tests.support.sandbox_hall import HALL, SEEDS, Hall, at, hall_of

STATUSES = ("pending", "confirmed", "preparing", "ready", "out_for_delivery", "delivered")


@pytest.fixture
async def hall() -> AsyncIterator[Hall]:
    async with hall_of() as opened:
        yield opened


def heard(hall: Hall) -> list[Received]:
    """The community's events, in the order in which they arrived."""
    return [one for one in hall.bridge.receiver.received if "community_id" in one.json]


async def hears(hall: Hall, count: int) -> list[Received]:
    await until(lambda: len(heard(hall)) >= count)
    return heard(hall)


def by_store(order: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {child["store_id"]: child for child in order["child_orders"]}


# Splitting


async def test_an_order_is_split_into_an_order_for_each_store(hall: Hall) -> None:
    await hall.subscribe()
    order = await hall.order(
        at("st_main", "toast", quantity=2, options=[{"external_id": "egg"}]),
        at("st_tea", "tea"),
        at("st_main", "soup"),
        tip=100,
        customer={"name": "Ada", "phone": "+15550001"},
        special_instructions="Ring twice",
    )
    assert order["status"] == "pending"
    assert order["payment_status"] == "completed"
    assert order["customer"]["name"] == "Ada"
    children = by_store(order)
    assert children.keys() == {"st_main", "st_tea"}
    assert (children["st_main"]["subtotal"], children["st_tea"]["subtotal"]) == (2200, 300)
    assert order["subtotal"] == 2500
    lines = {line["line_id"]: line for line in order["items"]}
    assert [lines[key]["name"] for key in children["st_main"]["line_ids"]] == [
        "Item toast",
        "Item soup",
    ]
    toast = lines[children["st_main"]["line_ids"][0]]
    assert (toast["quantity"], toast["unit_price"], toast["subtotal"]) == (2, 700, 1700)
    assert toast["item_id"] == (await hall.item("toast"))["item_id"]
    assert toast["modifiers"][0] == {
        "modifier_id": toast["modifiers"][0]["modifier_id"],
        "name": "Egg",
        "price": 150,
        "quantity": 1,
    }
    sent = {
        one.json["store_id"]: one.json["data"]
        for one in hall.bridge.receiver.received
        if "store_id" in one.json
    }
    assert {data["id"] for data in sent.values()} == {
        child["order_id"] for child in children.values()
    }
    assert sent["st_tea"]["items"][0]["external_id"] == "tea"
    assert sum(data["tip"] for data in sent.values()) == order["tip"] == 100
    assert sum(data["total_amount"] for data in sent.values()) == order["total_amount"]
    assert sent["st_main"]["customer_id"] == order["customer"]["customer_id"]
    assert sent["st_main"]["special_instructions"] == "Ring twice"


async def test_the_parent_order_is_read_in_full(hall: Hall) -> None:
    order = await hall.order(at("st_main", "soup"), at("st_tea", "soup"))
    answer = await hall.call("GET", f"{HALL}/orders/{order['order_id']}")
    assert answer.status == 200
    assert answer.body.keys() == {
        "order_id",
        "order_number",
        "community_id",
        "status",
        "fulfillment_type",
        "payment_status",
        "currency",
        "subtotal",
        "tax",
        "delivery_fee",
        "discount",
        "tip",
        "total_amount",
        "customer",
        "items",
        "child_orders",
        "created_at",
        "updated_at",
    }
    child = answer.body["child_orders"][0]
    assert child.keys() == {"order_id", "store_id", "store_name", "status", "subtotal", "line_ids"}
    for order_id in (child["order_id"], "ord_none"):
        missing = await hall.call("GET", f"{HALL}/orders/{order_id}")
        assert (missing.status, missing.code) == (404, "order.not_found")


async def test_an_item_can_be_named_by_its_id_in_the_community(hall: Hall) -> None:
    tea = await hall.item("tea")
    order = await hall.order({"item_id": tea["item_id"], "quantity": 3})
    assert order["subtotal"] == 900


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "The basket is empty"),
        ([at("st_main", "tea")], "tea is not on the menu of this community"),
        ([at("st_none", "tea")], "No store st_none in community com_food_hall"),
        (
            [at("st_main", "toast", options=[{"external_id": "jam"}])],
            "jam does not go with Item toast",
        ),
    ],
)
async def test_what_cannot_be_ordered_is_refused(hall: Hall, lines: list[Json], why: str) -> None:
    answer = await hall.try_order(*lines)
    assert (answer.status, answer.code, answer.message) == (409, "control.refused", why)


@pytest.mark.parametrize("side", ["merchant", "community"])
async def test_a_basket_with_an_unavailable_item_fails_as_a_whole(hall: Hall, side: str) -> None:
    if side == "merchant":
        body = {"items": [{"external_id": "soup", "available": False}]}
        await hall.bridge.call("POST", f"{STORE}/items/availability", body)
    else:
        await hall.patch("soup", {"available": False})
    await hall.subscribe()
    answer = await hall.try_order(at("st_tea", "tea"), at("st_main", "soup"))
    assert (answer.status, answer.message) == (409, "Item soup is sold out")
    assert hall.bridge.receiver.received == []
    assert (await hall.bridge.state())["orders"] == []


# Rolling up


async def test_the_parent_is_where_its_slowest_child_is(hall: Hall) -> None:
    order = await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    children = by_store(order)
    first, second = children["st_main"]["order_id"], children["st_tea"]["order_id"]

    async def status() -> str:
        answer = await hall.call("GET", f"{HALL}/orders/{order['order_id']}")
        return str(answer.body["status"])

    for step, reached in (
        ("accept", "confirmed"),
        ("status", "preparing"),
        ("ready", "ready"),
    ):
        before = await status()
        await hall.pos(first, step)
        assert await status() == before
        await hall.pos(second, step)
        assert await status() == reached
    path = f"{HALL}/orders/{order['order_id']}"
    await hall.bridge.control("POST", f"{path}/out-for-delivery")
    assert await status() == "out_for_delivery"
    delivered = await hall.bridge.control("POST", f"{path}/deliver")
    assert delivered.body["status"] == "delivered"
    assert [entry["status"] for entry in delivered.body["history"]] == list(STATUSES)
    await until(
        lambda: (
            [one.json["event_type"] for one in hall.bridge.receiver.received].count(
                "order.delivered"
            )
            == 2
        )
    )


async def test_a_cancelled_child_no_longer_holds_the_parent_back(hall: Hall) -> None:
    order = await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    children = by_store(order)
    await hall.pos(children["st_main"]["order_id"], "accept")
    body = {"reason": "Out of tea", "reason_code": "ITEM_OUT_OF_STOCK"}
    path = f"/pos/orders/{children['st_tea']['order_id']}/cancel"
    assert (await hall.bridge.call("POST", path, body)).status == 200
    read = (await hall.call("GET", f"{HALL}/orders/{order['order_id']}")).body
    assert (read["status"], by_store(read)["st_tea"]["status"]) == ("confirmed", "cancelled")
    path = f"/pos/orders/{children['st_main']['order_id']}/cancel"
    await hall.bridge.call("POST", path, body)
    read = (await hall.call("GET", f"{HALL}/orders/{order['order_id']}")).body
    assert read["status"] == "cancelled"


async def test_a_customer_cancels_the_whole_of_it_once(hall: Hall) -> None:
    order = await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    path = f"{HALL}/orders/{order['order_id']}/cancel"
    answer = await hall.bridge.control("POST", path)
    assert {child["status"] for child in answer.body["child_orders"]} == {"cancelled"}
    again = await hall.bridge.try_control("POST", path)
    assert (again.status, again.code) == (409, "order.invalid_transition")


@pytest.mark.parametrize("step", ["out-for-delivery", "deliver"])
async def test_a_courier_waits_until_it_is_ready(hall: Hall, step: str) -> None:
    order = await hall.order(at("st_main", "soup"))
    answer = await hall.bridge.try_control("POST", f"{HALL}/orders/{order['order_id']}/{step}")
    assert (answer.status, answer.code) == (409, "order.invalid_transition")


async def test_auto_accepting_stores_confirm_after_the_order_was_told(hall: Hall) -> None:
    for store_id in ("st_main", "st_tea"):
        body = {"auto_accept_orders": True}
        await hall.bridge.call("PUT", f"/pos/integrations/{store_id}", body)
    await hall.subscribe()
    await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    events = {one.json["event_type"]: one.json["data"] for one in await hears(hall, 2)}
    assert events["order.created"]["order"]["status"] == "pending"
    assert events["order.status_changed"]["previous_status"] == "pending"
    assert events["order.status_changed"]["order"]["status"] == "confirmed"


# Events and subscriptions


async def test_the_secret_of_a_subscription_is_shown_once(hall: Hall) -> None:
    made = await hall.subscribe()
    assert made["secret"]
    shown = await hall.call("GET", f"/webhooks/{made['webhook_id']}")
    assert shown.body == {name: value for name, value in made.items() if name != "secret"}
    assert (shown.body["events"], shown.body["is_active"]) == (["*"], True)
    changed = await hall.call("PUT", f"/webhooks/{made['webhook_id']}", {"name": "Other"})
    assert changed.body.items() >= {"name": "Other", "url": made["url"]}.items()
    assert "secret" not in changed.body


async def test_the_field_of_the_secret_is_a_setting() -> None:
    async with hall_of(replace(SEEDS, subscription_secret_field="signing_secret")) as hall:
        made = await hall.subscribe()
        assert made["signing_secret"]
        assert "secret" not in made


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"url": "https://a.example/"}, "request.validation", "name"),
        ({"name": "x"}, "request.validation", "url"),
        ({"name": "x", "url": "a.example"}, "request.validation", "url"),
        (
            {"name": "x", "url": "https://a.example/", "events": []},
            "request.validation",
            "events",
        ),
        (
            {"name": "x", "url": "https://a.example/", "events": ["order.eaten"]},
            "request.validation",
            "events[0]",
        ),
        (
            {"name": "x", "url": "https://a.example/", "is_active": "yes"},
            "request.validation",
            "is_active",
        ),
        (
            {"name": "x", "url": "https://a.example/", "secret": "mine"},
            "request.unknown_field",
            "secret",
        ),
    ],
)
async def test_a_refused_subscription_names_the_field(
    hall: Hall, body: Json, code: str, field: str
) -> None:
    answer = await hall.call("POST", f"{HALL}/webhooks", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")


async def test_events_carry_the_community_envelope_and_its_signature(hall: Hall) -> None:
    made = await hall.subscribe()
    order = await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    (created,) = await hears(hall, 1)
    assert created.json.keys() == {
        "event_type",
        "event_id",
        "community_id",
        "timestamp",
        "data",
    }
    assert created.json["event_type"] == created.headers["x-service-event"] == "order.created"
    assert created.json["data"]["order"]["order_id"] == order["order_id"]
    assert len(created.json["data"]["order"]["child_orders"]) == 2
    assert "x-service-location-id" not in created.headers
    expected = hmac.new(made["secret"].encode(), created.raw, hashlib.sha256).hexdigest()
    assert created.headers["x-service-signature"] == expected


async def test_a_status_change_tells_the_previous_status_and_the_full_order(hall: Hall) -> None:
    await hall.subscribe()
    order = await hall.order(at("st_main", "soup"))
    await hall.pos(order["child_orders"][0]["order_id"], "accept")
    changed = (await hears(hall, 2))[1].json
    assert changed["event_type"] == "order.status_changed"
    assert changed["data"].keys() == {"previous_status", "order"}
    assert changed["data"]["previous_status"] == "pending"
    read = (await hall.call("GET", f"{HALL}/orders/{order['order_id']}")).body
    assert changed["data"]["order"] == read


@pytest.mark.parametrize(
    ("events", "types"),
    [
        (None, ["order.created", "order.status_changed"]),
        (["*"], ["order.created", "order.status_changed"]),
        (["order.created", "*"], ["order.created", "order.status_changed"]),
        (["order.created"], ["order.created"]),
        (["order.status_changed"], ["order.status_changed"]),
    ],
)
async def test_a_subscription_hears_what_it_asked_for(
    hall: Hall, events: list[str] | None, types: list[str]
) -> None:
    made = await hall.subscribe(**({} if events is None else {"events": events}))
    order = await hall.order(at("st_main", "soup"))
    await hall.pos(order["child_orders"][0]["order_id"], "accept")
    assert await told(hall, made["webhook_id"], len(types)) == types


async def told(hall: Hall, webhook_id: str, count: int) -> list[str]:
    """Event types that were delivered to a subscription, oldest first."""
    rows = await attempts(hall, webhook_id, lambda found: len(found) >= count)
    return [row["event_type"] for row in reversed(rows)]


async def attempts(
    hall: Hall, webhook_id: str, enough: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 10
    while True:
        answer = await hall.call("GET", f"/webhooks/{webhook_id}/deliveries")
        rows: list[dict[str, Any]] = answer.body["deliveries"]
        if enough(rows):
            return rows
        assert time.monotonic() < deadline, rows
        await asyncio.sleep(0.01)


async def test_several_subscriptions_hear_one_event_under_their_own_delivery_ids(
    hall: Hall,
) -> None:
    await hall.subscribe()
    await hall.subscribe(name="Second")
    await hall.order(at("st_main", "soup"))
    first, second = await hears(hall, 2)
    assert first.json["event_id"] == second.json["event_id"]
    assert first.headers["x-service-delivery-id"] != second.headers["x-service-delivery-id"]
    assert first.headers["x-service-signature"] != second.headers["x-service-signature"]


async def test_a_failed_delivery_is_tried_six_times_in_all(hall: Hall) -> None:
    made = await hall.subscribe(events=["order.created"])
    await hall.order(at("st_main", "soup"))
    await hears(hall, 1)
    hall.bridge.receiver.statuses = [500]
    hall.bridge.receiver.received.clear()
    await hall.order(at("st_main", "soup"))
    await hears(hall, 1)
    await hall.bridge.control("POST", "/clock", {"speed": 1_000_000})
    await until(lambda: len(heard(hall)) == 6)
    await hall.bridge.control("POST", "/clock", {"speed": 1})
    hall.token = (await hall.mint(audience="communities")).body["access_token"]
    rows = await attempts(hall, made["webhook_id"], lambda found: len(found) == 7)
    assert [row["response_status"] for row in rows] == [500] * 6 + [200]
    assert rows[0].keys() >= {"event_type", "response_status", "response_body"}
    assert rows[0]["response_body"] == "noted"
    assert len({row["delivery_id"] for row in rows}) == 2


@pytest.mark.parametrize("way", ["off", "deleted"])
async def test_a_subscription_that_ends_hears_no_more(hall: Hall, way: str) -> None:
    hall.bridge.receiver.statuses = [500]
    made = await hall.subscribe()
    path = f"/webhooks/{made['webhook_id']}"
    await hall.order(at("st_main", "soup"))
    await hears(hall, 1)
    if way == "off":
        assert (await hall.call("PUT", path, {"is_active": False})).body["is_active"] is False
    else:
        assert (await hall.call("DELETE", path)).status == 200
        gone = await hall.call("GET", path)
        assert (gone.status, gone.code) == (404, "webhook.not_found")
    await hall.order(at("st_main", "soup"))
    await hall.bridge.jump(61)
    deliveries = (await hall.bridge.state())["deliveries"]
    mine = [row["state"] for row in deliveries if row.get("webhook_id") == made["webhook_id"]]
    assert mine == ["stopped"]
    assert len(heard(hall)) == 1


async def test_a_test_delivery_is_one_signed_attempt_even_when_switched_off(hall: Hall) -> None:
    made = await hall.subscribe(is_active=False)
    answer = await hall.call("POST", f"/webhooks/{made['webhook_id']}/test")
    assert (answer.status, answer.body["event_type"]) == (200, "webhook.test")
    (test,) = await hears(hall, 1)
    assert test.headers["x-service-delivery-id"] == answer.body["delivery_id"]
    expected = hmac.new(made["secret"].encode(), test.raw, hashlib.sha256).hexdigest()
    assert test.headers["x-service-signature"] == expected
    rows = await attempts(hall, made["webhook_id"], lambda found: len(found) == 1)
    assert rows[0]["response_status"] == 200


async def test_any_community_event_can_be_made_up(hall: Hall) -> None:
    made = await hall.subscribe()
    body = {
        "event_type": "order.created",
        "webhook_id": made["webhook_id"],
        "body_community_id": "com_x",
        "data": {"order": {}},
        "signature": "wrong",
        "wait": True,
    }
    answer = await hall.bridge.control("POST", f"{HALL}/events", body)
    assert answer.body["deliveries"][0]["webhook_id"] == made["webhook_id"]
    (odd,) = heard(hall)
    assert odd.json["community_id"] == "com_x"
    honest = hmac.new(made["secret"].encode(), odd.raw, hashlib.sha256).hexdigest()
    assert odd.headers["x-service-signature"] != honest


async def test_a_community_delivery_can_be_repeated(hall: Hall) -> None:
    await hall.subscribe()
    order = await hall.order(at("st_main", "soup"))
    await hears(hall, 1)
    body = {"order_id": order["order_id"], "mode": "new_delivery_id", "wait": True}
    await hall.bridge.control("POST", "/webhooks/redeliver", body)
    first, second = heard(hall)
    assert first.json == second.json
    assert first.headers["x-service-delivery-id"] != second.headers["x-service-delivery-id"]


# What happens to stores elsewhere


async def test_rotated_tables_have_new_tokens_at_the_next_push(hall: Hall) -> None:
    tables = {"tables": [{"external_id": name, "name": name} for name in ("t1", "t2")]}

    async def pushed() -> dict[str, str]:
        answer = await hall.bridge.call("POST", f"{STORE}/tables", tables)
        return {table["external_id"]: table["qr_token"] for table in answer.body["tables"]}

    first = await pushed()
    assert await pushed() == first
    answer = await hall.bridge.control("POST", "/tables/st_main/rotate", {"external_ids": ["t1"]})
    second = await pushed()
    assert answer.body["rotated"] == {"t1": second["t1"]}
    assert (second["t1"] != first["t1"], second["t2"]) == (True, first["t2"])
    status, _, _ = await hall.bridge.page(f"/store/st_main?table={first['t1']}")
    assert status == 404
    await hall.bridge.control("POST", "/tables/st_main/rotate")
    assert set((await pushed()).values()).isdisjoint(second.values())
    refused = await hall.bridge.try_control(
        "POST", "/tables/st_main/rotate", {"external_ids": ["t9"]}
    )
    assert (refused.status, refused.code) == (409, "control.refused")


async def test_taxes_and_status_change_elsewhere(hall: Hall) -> None:
    taxes = (await hall.bridge.call("GET", f"{STORE}/tax-config")).body
    changed = {**taxes, "pricing_mode": "inclusive"}
    await hall.bridge.control("PUT", "/stores/st_main/tax-config", changed)
    assert (await hall.bridge.call("GET", f"{STORE}/tax-config")).body == changed
    refused = await hall.bridge.try_control("PUT", "/stores/st_main/tax-config", {"enabled": True})
    assert refused.code == "request.validation"
    await hall.bridge.control("POST", "/stores/st_main/status", {"status": "inactive"})
    stores = (await hall.bridge.call("GET", "/pos/stores")).body
    assert stores[0]["status"] == "inactive"
    assert hall.bridge.receiver.received == []


async def test_a_reset_forgets_subscriptions_and_orders(hall: Hall) -> None:
    made = await hall.subscribe()
    await hall.order(at("st_main", "soup"))
    await hall.bridge.control("POST", "/reset")
    state = (await hall.bridge.state())["communities"]["com_food_hall"]
    assert (state["webhooks"], state["orders"]) == ([], [])
    hall.token = (await hall.mint(audience="communities")).body["access_token"]
    assert (await hall.call("GET", f"/webhooks/{made['webhook_id']}")).status == 404


# The storefront


async def test_a_person_orders_from_two_stores_at_once(hall: Hall) -> None:
    front = "/community/com_food_hall"
    _, page, path = await hall.bridge.page(
        f"{front}/st_main/basket", {"external_id": "toast", "option:egg": "1"}
    )
    assert (path, "Item toast" in page) == (front, True)
    _, page, _ = await hall.bridge.page(f"{front}/st_tea/basket", {"external_id": "tea"})
    assert "$11.50" in page
    _, page, path = await hall.bridge.page(f"{front}/orders", {"name": "Ada"})
    assert path.startswith("/community-orders/ord_")
    for text in ("Main Street", "Tea Room", "Egg", "Sent to the stores"):
        assert text in page
    (order,) = (await hall.bridge.state())["communities"]["com_food_hall"]["orders"]
    assert len(order["child_orders"]) == 2
    _, page, _ = await hall.bridge.page(front)
    assert "Empty." in page


async def test_a_basket_with_what_became_unavailable_is_refused(hall: Hall) -> None:
    front = "/community/com_food_hall"
    await hall.bridge.page(f"{front}/st_main/basket", {"external_id": "soup"})
    await hall.patch("soup", {"available": False})
    _, page, _ = await hall.bridge.page(front)
    assert "Item soup is sold out. Remove it to order the rest." in page
    status, page, _ = await hall.bridge.page(f"{front}/orders", {})
    assert (status, "The order was not placed" in page) == (409, True)
    _, page, path = await hall.bridge.page(f"{front}/st_main/basket", {"external_id": "soup"})
    assert (path, "Item soup is sold out." in page) == (f"{front}/st_main/item", True)
    _, page, _ = await hall.bridge.page(f"{front}/st_main/basket/remove", {"line": "0"})
    assert "Empty." in page


async def test_a_variant_is_ordered_under_its_own_name_and_price(hall: Hall) -> None:
    kinds = [{"external_id": "big", "variant_name": "Big", "price": 900}]
    await hall.bridge.push(item("bowl", 500, variants=kinds))
    assert (await hall.item("bowl"))["variants"][0]["price"] == 900
    order = await hall.order(at("st_main", "bowl", variant_external_id="big"))
    assert (order["items"][0]["name"], order["subtotal"]) == ("Item bowl (Big)", 900)
