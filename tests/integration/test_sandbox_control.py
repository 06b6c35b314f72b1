import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.support.sandbox_driver import STORE, Driver, Json, driven, item
from tillbridge.sandbox import SandboxSettings, create_app, serve
from tillbridge.sandbox.validation import SPECIFIED


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        await driver.push(item("a"))
        yield driver


async def fault(bridge: Driver, **rule: Json) -> dict[str, Any]:
    added: dict[str, Any] = (await bridge.control("POST", "/faults", rule)).body
    return added


async def price(bridge: Driver) -> int:
    return int((await bridge.catalogue())["items"]["a"]["price"])


async def patch(bridge: Driver, amount: int) -> Json:
    return await bridge.call("PATCH", f"{STORE}/items/a", {"price": amount})


# Faults


async def test_an_error_fault_answers_in_the_envelope_as_often_as_told(bridge: Driver) -> None:
    await fault(bridge, action="error", status=503, count=2)
    for _ in range(2):
        answer = await bridge.call("GET", "/pos/stores")
        assert (answer.status, answer.code) == (503, "service.unavailable")
    assert (await bridge.call("GET", "/pos/stores")).status == 200


async def test_a_fault_picks_by_method_path_and_number(bridge: Driver) -> None:
    await fault(bridge, action="error", status=502, method="PATCH", path="/items/", after=1)
    assert (await bridge.call("GET", "/pos/stores")).status == 200
    assert (await patch(bridge, 1)).status == 200
    answer = await patch(bridge, 2)
    assert (answer.status, answer.code) == (502, "menu.forward_failed")


async def test_a_fault_can_pick_every_write(bridge: Driver) -> None:
    await fault(bridge, action="error", method="WRITE")
    assert (await bridge.call("GET", "/pos/stores")).status == 200
    assert (await patch(bridge, 1)).status == 503


async def test_a_limited_answer_carries_retry_after(bridge: Driver) -> None:
    await fault(bridge, action="error", status=429, retry_after_s=7)
    answer = await bridge.call("GET", "/pos/stores")
    assert (answer.code, answer.headers["Retry-After"]) == ("rate.limited", "7")


@pytest.mark.parametrize(("when", "amount"), [("before", 450), ("after", 999)])
async def test_a_504_may_have_been_applied(bridge: Driver, when: str, amount: int) -> None:
    await fault(bridge, action="error", status=504, when=when, method="PATCH")
    assert (await patch(bridge, 999)).status == 504
    assert await price(bridge) == amount


@pytest.mark.parametrize(("when", "amount"), [("before", 450), ("after", 999)])
async def test_a_dropped_connection_may_have_been_applied(
    bridge: Driver, when: str, amount: int
) -> None:
    await fault(bridge, action="drop", when=when, method="PATCH")
    with pytest.raises(aiohttp.ClientError):
        await patch(bridge, 999)
    assert await price(bridge) == amount
    log = (await bridge.control("GET", "/requests")).body["requests"]
    assert log[-1]["status"] is None
    assert log[-1]["applied"] is (when == "after")
    assert log[-1]["fault"]


async def test_garbage_redirects_and_delays(bridge: Driver) -> None:
    await fault(bridge, action="redirect", count=1)
    answer = await bridge.call("GET", "/pos/stores")
    assert answer.status == 307
    assert answer.headers["Location"].startswith("https://elsewhere.example/")
    await fault(bridge, action="delay", delay_s=0.1, count=1)
    began = time.monotonic()
    assert (await bridge.call("GET", "/pos/stores")).status == 200
    assert time.monotonic() - began >= 0.09
    await fault(bridge, action="garbage", count=1)
    with pytest.raises(ValueError, match="Expecting value"):
        await bridge.call("GET", "/pos/stores")


async def test_a_dripping_answer_arrives_whole_in_the_end(bridge: Driver) -> None:
    await fault(bridge, action="drip", delay_s=0.0001, count=1)
    answer = await bridge.call("GET", f"{STORE}/menus/status")
    assert answer.body["store_id"] == "st_main"


async def test_a_share_of_calls_fails_and_always_the_same_ones(bridge: Driver) -> None:
    async def pattern() -> list[int]:
        await bridge.control("DELETE", "/faults")
        await fault(bridge, action="error", status=500, percent=50)
        return [(await bridge.call("GET", "/pos/stores")).status for _ in range(40)]

    first = await pattern()
    assert 5 < first.count(500) < 35
    assert await pattern() == first


async def test_faults_are_listed_and_taken_away(bridge: Driver) -> None:
    rule = await fault(bridge, action="error")
    await bridge.call("GET", "/pos/stores")
    (listed,) = (await bridge.control("GET", "/faults")).body["faults"]
    assert (listed["rule_id"], listed["hits"]) == (rule["rule_id"], 1)
    gone = await bridge.control("DELETE", f"/faults/{rule['rule_id']}")
    assert gone.body == {"removed": True}
    assert (await bridge.call("GET", "/pos/stores")).status == 200


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"action": "explode"}, "action"),
        ({"action": "error", "path": "("}, "path"),
        ({"action": "error", "colour": 1}, "colour"),
        ({}, "action"),
    ],
)
async def test_a_refused_fault_names_the_field(
    bridge: Driver, rule: dict[str, Any], field: str
) -> None:
    answer = await bridge.try_control("POST", "/faults", rule)
    assert answer.status == 400
    assert answer.message.startswith(f"{field}:")


# Rate, log, clock, reset


async def test_beyond_the_rate_calls_wait_as_told(bridge: Driver) -> None:
    await bridge.control("POST", "/rate", {"limit": 2, "window_s": 10})
    for _ in range(2):
        assert (await bridge.call("GET", "/pos/stores")).status == 200
    answer = await bridge.call("GET", "/pos/stores")
    assert (answer.status, answer.code) == (429, "rate.limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 10
    await bridge.jump(10)
    assert (await bridge.call("GET", "/pos/stores")).status == 200
    await bridge.control("POST", "/rate", {"limit": None})
    for _ in range(5):
        assert (await bridge.call("GET", "/pos/stores")).status == 200


async def test_the_log_tells_what_was_asked_and_hides_secrets(bridge: Driver) -> None:
    body = {
        "grant_type": "client_credentials",
        "client_id": "app_123",
        "client_secret": "sandbox-secret",
        "audience": "communities",
    }
    cursor = (await bridge.control("GET", "/requests")).body["next"]
    await bridge.call("POST", "/oauth2/token", body, token="")
    await bridge.call("GET", "/pos/nothing?x=1")
    answer = (await bridge.control("GET", f"/requests?since={cursor}")).body
    token, missing = answer["requests"]
    assert token["body"]["client_secret"] == "(hidden)"
    assert (token["method"], token["path"], token["status"]) == ("POST", "/oauth2/token", 200)
    assert (missing["query"], missing["code"]) == ("x=1", "request.not_found")
    assert answer["next"] == missing["seq"]
    assert "sandbox-secret" not in str(answer)
    await bridge.control("DELETE", "/requests")
    assert (await bridge.control("GET", "/requests")).body["requests"] == []


async def test_a_long_body_is_logged_by_its_size() -> None:
    async with driven(SandboxSettings(request_log_body_bytes=100)) as bridge:
        await bridge.integrate()
        await bridge.push(item("a", description="x" * 200))
        log = (await bridge.control("GET", "/requests")).body["requests"]
        assert log[-1]["body"]["bytes"] > 200


async def test_the_clock_stands_still_jumps_and_never_runs_back(bridge: Driver) -> None:
    first = (await bridge.control("POST", "/clock", {"speed": 0})).body["now"]
    assert (await bridge.control("GET", "/clock")).body["now"] == first
    later = (await bridge.control("POST", "/clock", {"jump_s": 3600})).body
    assert later["now"] > first
    assert later["speed"] == 0
    answer = await bridge.try_control("POST", "/clock", {"jump_s": -1})
    assert (answer.status, answer.code) == (400, "request.validation")


async def test_a_reset_goes_back_to_the_seeds(bridge: Driver) -> None:
    await bridge.place({"external_id": "a"})
    await bridge.control("POST", "/rate", {"limit": 1})
    await fault(bridge, action="error")
    await bridge.control("POST", "/reset")
    state = await bridge.state()
    assert (state["orders"], state["deliveries"], state["tokens"]) == ([], [], [])
    assert (await bridge.call("GET", "/pos/stores")).code == "auth.invalid_token"
    await bridge.integrate()
    assert (await bridge.push(item("a"))).status == 200


async def test_other_sites_may_not_push_the_buttons(bridge: Driver) -> None:
    headers = {"Origin": "https://evil.example"}
    for path in ("/_control/reset", "/panel"):
        url = bridge.running.url + path
        async with bridge.session.post(url, headers=headers, data={"do": "down"}) as response:
            assert response.status == 403


async def test_unknown_control_calls_say_so(bridge: Driver) -> None:
    answer = await bridge.try_control("POST", "/nothing", {})
    assert (answer.status, answer.code) == (404, "request.not_found")
    answer = await bridge.try_control("POST", "/orders/ord_none/deliver")
    assert (answer.status, answer.code) == (404, "order.not_found")
    body = {"store_id": "st_none", "items": []}
    answer = await bridge.try_control("POST", "/orders", body)
    assert (answer.status, answer.code) == (404, "store.not_found")


async def test_minted_tokens_need_a_known_app(bridge: Driver) -> None:
    answer = await bridge.try_control("POST", "/tokens/mint", {"client_id": "nobody"})
    assert (answer.status, answer.code) == (409, "control.refused")


async def test_every_specified_code_has_a_specified_status() -> None:
    assert set(SPECIFIED.values()) <= {400, 401, 403, 404, 409, 429, 500, 502}


async def test_a_defect_answers_in_the_envelope(
    bridge: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge.running.sandbox.world, "stores_of", None)
    answer = await bridge.call("GET", "/pos/stores")
    assert (answer.status, answer.code) == (500, "internal.error")


# Running


async def test_serve_tells_when_it_listens_and_stops_when_cancelled() -> None:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(port=0, ready=lambda running: ready.set_result(running.url)))
    url = await asyncio.wait_for(ready, 10)
    async with aiohttp.ClientSession(trust_env=False) as session:
        async with session.get(f"{url}/v2/pos/stores") as response:
            assert response.status == 401
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


async def test_a_taken_port_is_told() -> None:
    async with driven() as bridge:
        port = int(bridge.running.url.rsplit(":", 1)[1])
        with pytest.raises(OSError, match="in use"):
            await serve(port=port)


async def test_the_app_can_be_had_without_a_server() -> None:
    assert create_app().router.routes()
