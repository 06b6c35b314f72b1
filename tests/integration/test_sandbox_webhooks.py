import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.support.sandbox_driver import Driver, Json, driven, item, until
from tillbridge.sandbox import SandboxSettings


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        await driver.push(item("a"))
        yield driver


async def only_delivery(bridge: Driver) -> dict[str, Any]:
    (delivery,) = (await bridge.control("GET", "/deliveries")).body["deliveries"]
    return dict(delivery)


async def settled(bridge: Driver, attempts: int) -> dict[str, Any]:
    """The only delivery, once it has made so many attempts."""
    delivery = await only_delivery(bridge)
    deadline = time.monotonic() + 10
    while len(delivery["attempts"]) < attempts:
        assert time.monotonic() < deadline, delivery
        await asyncio.sleep(0.01)
        delivery = await only_delivery(bridge)
    return delivery


async def test_a_delivery_is_retried_after_the_specified_delays_and_then_given_up(
    bridge: Driver,
) -> None:
    bridge.receiver.statuses = [500]
    await bridge.place({"external_id": "a"})
    for made, delay in enumerate((60, 300, 1800, 7200, 21600), start=1):
        await bridge.jump(delay - 5)
        assert len((await only_delivery(bridge))["attempts"]) == made
        await bridge.jump(6)
        await settled(bridge, made + 1)
    delivery = await only_delivery(bridge)
    assert (delivery["state"], delivery["next_attempt_at"]) == ("failed", None)
    await bridge.jump(100_000)
    assert len(bridge.receiver.received) == 6
    assert len({entry.raw for entry in bridge.receiver.received}) == 1
    ids = {entry.headers["x-service-delivery-id"] for entry in bridge.receiver.received}
    assert ids == {delivery["delivery_id"]}


async def test_a_fast_clock_brings_retries_forward(bridge: Driver) -> None:
    bridge.receiver.statuses = [503, 503, 204]
    await bridge.place({"external_id": "a"})
    await bridge.control("POST", "/clock", {"speed": 10_000})
    delivery = await settled(bridge, 3)
    assert delivery["state"] == "delivered"
    assert [attempt["status"] for attempt in delivery["attempts"]] == [503, 503, 204]
    assert delivery["attempts"][0]["answer"] == "noted"


@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (202, "delivered")])
async def test_any_2xx_is_a_success(bridge: Driver, status: int, state: str) -> None:
    bridge.receiver.statuses = [status]
    order = await bridge.place({"external_id": "a"})
    assert order["delivery"]["state"] == state


@pytest.mark.parametrize("status", [302, 400, 401, 410])
async def test_anything_else_is_tried_again(bridge: Driver, status: int) -> None:
    bridge.receiver.statuses = [status]
    order = await bridge.place({"external_id": "a"})
    assert order["delivery"]["state"] == "pending"
    assert order["delivery"]["next_attempt_at"]


async def test_a_receiver_that_is_not_there_is_tried_again(bridge: Driver) -> None:
    body = {"webhook_url": "http://127.0.0.1:9/hook"}
    await bridge.call("PUT", "/pos/integrations/st_main", body)
    order = await bridge.place({"external_id": "a"})
    assert order["delivery"]["attempts"][0]["status"] is None
    assert order["delivery"]["attempts"][0]["error"]
    body = {"webhook_url": bridge.receiver.url}
    await bridge.call("PUT", "/pos/integrations/st_main", body)
    await bridge.jump(61)
    await until(lambda: len(bridge.receiver.received) == 1)


async def test_a_receiver_that_does_not_answer_in_time_is_tried_again() -> None:
    hang = asyncio.Event()

    async def silent(_request: web.Request) -> web.Response:
        await hang.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", silent)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    async with driven(SandboxSettings(webhook_timeout_s=0.1)) as bridge:
        await bridge.integrate(webhook_url=url)
        await bridge.push(item("a"))
        order = await bridge.place({"external_id": "a"})
        assert order["delivery"]["attempts"][0]["error"] == "no answer within 0.1 s"
    hang.set()
    await runner.cleanup()


@pytest.mark.parametrize("way", ["remove", "disable", "again"])
async def test_deliveries_stop_with_the_integration(bridge: Driver, way: str) -> None:
    bridge.receiver.statuses = [500]
    await bridge.place({"external_id": "a"})
    if way == "disable":
        await bridge.control("POST", "/integrations/st_main/disable")
    else:
        await bridge.call("DELETE", "/pos/integrations/st_main")
    if way == "again":
        await bridge.integrate()
    await bridge.jump(120)
    assert (await only_delivery(bridge))["state"] == "stopped"
    assert len(bridge.receiver.received) == 1


async def test_a_retry_is_signed_with_the_secret_of_the_day(bridge: Driver) -> None:
    bridge.receiver.statuses = [500, 200]
    await bridge.place({"external_id": "a"})
    await bridge.call("PUT", "/pos/integrations/st_main", {"rotate_webhook_secret": True})
    await bridge.jump(61)
    await settled(bridge, 2)
    first, second = bridge.receiver.received
    assert first.raw == second.raw
    assert first.headers["x-service-signature"] != second.headers["x-service-signature"]


@pytest.mark.parametrize(
    ("mode", "same_delivery", "same_event"),
    [
        ("same", True, True),
        ("new_delivery_id", False, True),
        ("new_event_id", False, False),
    ],
)
async def test_a_redelivery_repeats_what_it_is_told_to(
    bridge: Driver, mode: str, same_delivery: bool, same_event: bool
) -> None:
    order = await bridge.place({"external_id": "a"})
    body = {"order_id": order["order_id"], "mode": mode, "wait": True}
    await bridge.control("POST", "/webhooks/redeliver", body)
    first, second = bridge.receiver.received
    ids = [entry.headers["x-service-delivery-id"] for entry in (first, second)]
    assert (ids[0] == ids[1]) is same_delivery
    assert (first.json["event_id"] == second.json["event_id"]) is same_event
    assert first.json["data"] == second.json["data"]


async def test_paused_deliveries_go_out_on_resume(bridge: Driver) -> None:
    await bridge.control("POST", "/webhooks/pause")
    await bridge.place({"external_id": "a"}, wait=False)
    await bridge.place({"external_id": "a"}, wait=False)
    assert bridge.receiver.received == []
    await bridge.control("POST", "/webhooks/resume")
    await until(lambda: len(bridge.receiver.received) == 2)


async def test_any_event_can_be_sent_honest_or_not(bridge: Driver) -> None:
    async def send(**more: Json) -> Json:
        body = {"store_id": "st_main", "event_type": "menu.viewed", "wait": True, **more}
        await bridge.control("POST", "/webhooks/send", body)
        return bridge.receiver.received[-1]

    honest = await send(data={"x": 1})
    assert honest.json["event_type"] == "menu.viewed"
    assert honest.json["data"] == {"x": 1}
    wrong = await send(signature="wrong")
    assert len(wrong.headers["x-service-signature"]) == 64
    none = await send(signature="none")
    assert "x-service-signature" not in none.headers
    other = await send(body_store_id="st_other", body_location_id="loc-9")
    assert (other.json["store_id"], other.json["location_id"]) == ("st_other", "loc-9")
    odd = await send(raw_body='{"a": 1}', headers={"X-Service-Location-Id": "loc-8"})
    assert odd.raw == b'{"a": 1}'
    assert odd.headers["x-service-location-id"] == "loc-8"


async def test_a_burst_is_delivered_whole(bridge: Driver) -> None:
    await asyncio.gather(*(bridge.place({"external_id": "a"}, wait=False) for _ in range(100)))
    await until(lambda: len(bridge.receiver.received) == 100)
    numbers = {entry.json["data"]["order_number"] for entry in bridge.receiver.received}
    assert len(numbers) == 100
