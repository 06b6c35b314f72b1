import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.sandbox_driver import STORE, Driver, Json, driven, item
from tillbridge.sandbox import SandboxSettings

ORDER_FIELDS = {
    "id",
    "order_number",
    "order_type",
    "status",
    "payment_status",
    "customer_id",
    "currency",
    "subtotal",
    "tax",
    "delivery_fee",
    "discount",
    "tip",
    "total_amount",
    "prices_include_tax",
    "tax_breakdown",
    "special_instructions",
    "created_at",
    "items",
}
LINE_FIELDS = {
    "product_id",
    "product_variant_id",
    "product_name",
    "quantity",
    "unit_price",
    "subtotal",
    "tax_amount",
    "external_id",
    "variant_external_id",
    "options",
}


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        await driver.push(
            item("burger", 1000, addon_groups=["extras"]),
            item(
                "pizza",
                900,
                variants=[
                    {"external_id": "p-s", "variant_name": "Small", "price": 900},
                    {"external_id": "p-l", "variant_name": "Large", "price": 1400},
                ],
            ),
            add_ons=[{"external_id": "cheese", "name": "Cheese", "price": 150}],
            addon_groups=[
                {
                    "external_id": "extras",
                    "name": "Extras",
                    "min_select": 0,
                    "max_select": 2,
                    "add_ons": ["cheese"],
                }
            ],
        )
        yield driver


async def step(bridge: Driver, order: dict[str, Any], call: str, body: Json = None) -> Json:
    return await bridge.call("POST", f"/pos/orders/{order['order_id']}/{call}", body)


async def test_an_order_is_delivered_signed_and_with_exactly_the_specified_fields(
    bridge: Driver,
) -> None:
    wanted = {
        "external_id": "burger",
        "quantity": 2,
        "options": [{"external_id": "cheese"}],
    }
    order = await bridge.place(wanted, {"external_id": "pizza", "variant_external_id": "p-l"})
    (received,) = bridge.receiver.received
    expected = hmac.new(bridge.secret.encode(), received.raw, hashlib.sha256).hexdigest()
    assert received.headers["x-service-signature"] == expected
    assert received.headers["x-service-event"] == "order.created"
    assert received.headers["x-service-location-id"] == "loc-1"
    assert received.headers["x-service-delivery-id"] == order["delivery"]["delivery_id"]
    assert received.headers["content-type"] == "application/json"
    event = received.json
    assert event.keys() == {
        "event_type",
        "event_id",
        "store_id",
        "location_id",
        "timestamp",
        "data",
    }
    assert (event["store_id"], event["location_id"]) == ("st_main", "loc-1")
    data = event["data"]
    assert data.keys() == ORDER_FIELDS
    assert data["id"] == order["order_id"]
    assert (data["status"], data["payment_status"]) == ("pending", "paid")
    burger, pizza = data["items"]
    assert burger.keys() == LINE_FIELDS
    assert burger["options"][0].keys() == {
        "product_id",
        "product_name",
        "quantity",
        "unit_price",
        "external_id",
    }
    assert (burger["unit_price"], burger["subtotal"]) == (1000, 2300)
    assert (pizza["variant_external_id"], pizza["subtotal"]) == ("p-l", 1400)


async def test_the_sums_of_an_order_agree(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "burger", "quantity": 3}, tip=100, discount=50)
    data = order["data"]
    assert data["subtotal"] == sum(line["subtotal"] for line in data["items"]) == 3000
    assert data["tax"] == sum(line["tax_amount"] for line in data["items"]) == 188 + 60
    assert data["tax"] == sum(part["amount"] for part in data["tax_breakdown"])
    assert data["tax_breakdown"][0] == {"name": "State", "rate": 6.25, "amount": 188}
    assert data["total_amount"] == 3000 + 248 + 100 - 50


async def test_an_order_walks_its_life_and_is_delivered(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "burger"})
    for call, body, state in (
        ("accept", None, "accepted"),
        ("status", {"status": "preparing"}, "preparing"),
        ("ready", {}, "ready"),
    ):
        answer = await step(bridge, order, call, body)
        assert answer.status == 200
        assert answer.body == {
            "status": "success",
            "order_id": order["order_id"],
            "order_status": state,
        }
    done = await bridge.control("POST", f"/orders/{order['order_id']}/deliver")
    assert [entry["state"] for entry in done.body["history"]] == [
        "created",
        "accepted",
        "preparing",
        "ready",
        "completed",
    ]
    deliveries = (await bridge.control("GET", "/deliveries")).body["deliveries"]
    assert [entry["event_type"] for entry in deliveries] == ["order.created", "order.delivered"]


@pytest.mark.parametrize(
    ("before", "call", "body"),
    [
        ((), "status", {"status": "preparing"}),
        ((), "ready", None),
        (("accept",), "accept", None),
        (("accept",), "ready", None),
        (("accept", "status"), "status", {"status": "preparing"}),
        (("accept", "status"), "status", {"status": "ready"}),
        (("accept", "status", "ready"), "ready", None),
        (("cancel",), "accept", None),
        (("cancel",), "cancel", {"reason": "r", "reason_code": "OTHER"}),
    ],
)
async def test_a_step_out_of_turn_is_an_invalid_transition(
    bridge: Driver, before: tuple[str, ...], call: str, body: Json
) -> None:
    bodies = {
        "status": {"status": "preparing"},
        "cancel": {"reason": "r", "reason_code": "OTHER"},
    }
    order = await bridge.place({"external_id": "burger"})
    for earlier in before:
        assert (await step(bridge, order, earlier, bodies.get(earlier))).status == 200
    answer = await step(bridge, order, call, body)
    assert (answer.status, answer.code) == (409, "order.invalid_transition")


@pytest.mark.parametrize("walked", [0, 1, 2, 3])
async def test_an_order_can_be_cancelled_until_it_is_completed(bridge: Driver, walked: int) -> None:
    order = await bridge.place({"external_id": "burger"})
    for call, body in (("accept", None), ("status", {"status": "preparing"}), ("ready", None))[
        :walked
    ]:
        await step(bridge, order, call, body)
    body = {"reason": "No buns", "reason_code": "ITEM_OUT_OF_STOCK", "message": "since noon"}
    answer = await step(bridge, order, "cancel", body)
    assert answer.status == 200
    assert answer.body == {
        "status": "success",
        "order_id": order["order_id"],
        "order_status": "cancelled",
        "reason": "No buns",
        "reason_code": "ITEM_OUT_OF_STOCK",
    }
    seen = (await bridge.control("GET", f"/orders/{order['order_id']}")).body
    assert [effect["effect"] for effect in seen["effects"]] == [
        "customer_refunded",
        "availability_resync_prompted",
    ]


async def test_a_completed_order_is_not_cancelled(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "burger"})
    for call, body in (("accept", None), ("status", {"status": "preparing"}), ("ready", None)):
        await step(bridge, order, call, body)
    await bridge.control("POST", f"/orders/{order['order_id']}/deliver")
    answer = await step(bridge, order, "cancel", {"reason": "r", "reason_code": "OTHER"})
    assert answer.code == "order.invalid_transition"


@pytest.mark.parametrize(
    ("call", "body", "code", "field"),
    [
        ("cancel", {"reason": "r"}, "request.validation", "reason_code"),
        ("cancel", {"reason_code": "OTHER"}, "request.validation", "reason"),
        ("cancel", {"reason": "", "reason_code": "OTHER"}, "request.validation", "reason"),
        ("cancel", {"reason": "r", "reason_code": "BORED"}, "request.validation", "reason_code"),
        (
            "cancel",
            {"reason": "r", "reason_code": "OTHER", "app_id": "x"},
            "request.unknown_field",
            "app_id",
        ),
        ("status", {"status": "cooking"}, "request.validation", "status"),
        ("status", {"state": "preparing"}, "request.unknown_field", "state"),
        ("accept", {"minutes": 20}, "request.unknown_field", "minutes"),
        ("ready", [], "request.validation", "body"),
    ],
)
async def test_a_refused_order_call_names_the_field(
    bridge: Driver, call: str, body: Json, code: str, field: str
) -> None:
    order = await bridge.place({"external_id": "burger"})
    answer = await step(bridge, order, call, body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")


async def test_the_status_field_has_another_name_when_set_so() -> None:
    async with driven(SandboxSettings(order_status_field="order_status")) as bridge:
        await bridge.integrate()
        await bridge.push(item("a"))
        order = await bridge.place({"external_id": "a"})
        await step(bridge, order, "accept")
        assert (await step(bridge, order, "status", {"order_status": "preparing"})).status == 200


async def test_unknown_orders_are_not_found(bridge: Driver) -> None:
    answer = await bridge.call("POST", "/pos/orders/ord_none/accept")
    assert (answer.status, answer.code) == (404, "order.not_found")


async def test_a_disabled_integration_takes_no_order_calls(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "burger"})
    await bridge.control("POST", "/integrations/st_main/disable")
    answer = await step(bridge, order, "accept")
    assert (answer.status, answer.code) == (404, "store.not_integrated")
    await bridge.control("POST", "/integrations/st_main/enable")
    assert (await step(bridge, order, "accept")).status == 200


async def test_orders_are_accepted_at_once_where_the_integration_says_so(bridge: Driver) -> None:
    await bridge.call("PUT", "/pos/integrations/st_main", {"auto_accept_orders": True})
    order = await bridge.place({"external_id": "burger"})
    assert order["state"] == "accepted"
    assert bridge.receiver.received[0].json["data"]["status"] == "pending"
    assert (await step(bridge, order, "accept")).code == "order.invalid_transition"
    assert (await step(bridge, order, "status", {"status": "preparing"})).status == 200


@pytest.mark.parametrize("pauses", [False, True])
async def test_pos_offline_pauses_the_store_when_set_so(pauses: bool) -> None:
    async with driven(SandboxSettings(pos_offline_pauses_store=pauses)) as bridge:
        await bridge.integrate()
        await bridge.push(item("a"))
        order = await bridge.place({"external_id": "a"})
        await step(bridge, order, "cancel", {"reason": "r", "reason_code": "POS_OFFLINE"})
        store = (await bridge.state())["stores"]["st_main"]
        assert store["status"] == ("inactive" if pauses else "active")
        assert store["flags"][0]["effect"] == "store_may_be_paused"


async def refused(bridge: Driver, *items: dict[str, Any]) -> str:
    answer = await bridge.try_control(
        "POST", "/orders", {"store_id": "st_main", "items": list(items)}
    )
    assert (answer.status, answer.code) == (409, "control.refused")
    return answer.message


async def test_what_cannot_be_had_cannot_be_ordered(bridge: Driver) -> None:
    assert "not on the menu" in await refused(bridge, {"external_id": "never"})
    assert "empty" in await refused(bridge)
    assert "Choose one" in await refused(bridge, {"external_id": "pizza"})
    three = [{"external_id": "cheese", "quantity": 3}]
    assert "choose up to 2" in await refused(bridge, {"external_id": "burger", "options": three})
    wrong = [{"external_id": "burger"}]
    assert "does not go" in await refused(bridge, {"external_id": "burger", "options": wrong})
    body = {"items": [{"external_id": "burger", "available": False}]}
    await bridge.call("POST", f"{STORE}/items/availability", body)
    assert "sold out" in await refused(bridge, {"external_id": "burger"})
    await bridge.call("PUT", f"{STORE}/status", {"status": "inactive"})
    assert "closed" in await refused(bridge, {"external_id": "burger"})


async def test_an_odd_order_can_be_made_on_purpose(bridge: Driver) -> None:
    await bridge.place(
        {"external_id": "never", "overrides": {"unit_price": 123}},
        {"external_id": None, "overrides": {"product_name": "Mystery"}},
        overrides={"order_number": "odd-1", "currency": "XXX"},
        unchecked=True,
    )
    data = bridge.receiver.received[0].json["data"]
    assert data["items"][0]["unit_price"] == 123
    assert data["items"][1]["external_id"] is None
    assert (data["order_number"], data["currency"]) == ("odd-1", "XXX")


async def test_a_customer_can_cancel_and_an_event_may_tell(bridge: Driver) -> None:
    order = await bridge.place({"external_id": "burger"})
    body = {"event_type": "order.cancelled"}
    await bridge.control("POST", f"/orders/{order['order_id']}/customer-cancel", body)
    assert (await step(bridge, order, "accept")).code == "order.invalid_transition"
    deliveries = (await bridge.control("GET", "/deliveries")).body["deliveries"]
    assert [entry["event_type"] for entry in deliveries] == ["order.created", "order.cancelled"]


async def test_a_delivery_fee_comes_from_the_settings(bridge: Driver) -> None:
    body = {"deliverySettings": {"delivery_fee": 299, "min_order_amount": 1500}}
    await bridge.call("PUT", f"{STORE}/settings", body)
    assert "smallest order" in await refused(bridge, {"external_id": "burger"})
    order = await bridge.place({"external_id": "burger", "quantity": 2})
    assert order["data"]["delivery_fee"] == 299
