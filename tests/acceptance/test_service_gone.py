"""The service, or the consent, is gone: orders still reach the till, and the rest is told later."""

import asyncio
from pathlib import Path

import pytest

from tests.support.bridge_process import until
from tests.support.world import World, make_world
from tillbridge.config.bridge import ServiceSettings

EIGHT_DAYS_S = 8 * 24 * 3600


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "error", "status": 503},
        {"action": "drop"},
        {"action": "error", "status": 504, "when": "after"},
        {"action": "garbage"},
    ],
    ids=["503", "dropped", "504 though applied", "garbage"],
)
async def test_a_service_that_is_down_for_an_hour(shop: World, fault: dict[str, object]) -> None:
    await shop.control("faults", {"path": "^/(pos|oauth2)/", **fault})
    order = await shop.order("p1")
    await until("the ticket is there", lambda: shop.till.tickets() == [order])
    shop.till.change("p2", price="2.95")
    shop.till.tell(order, "ready")
    await shop.control("clock", {"jump_s": 3700})  # the access token dies meanwhile
    await shop.problem("service.unreachable")
    await shop.control("faults", method="DELETE")
    await shop.reaches(order, "ready", within_s=60)
    await shop.menu_is_on_sale(within_s=60)
    await shop.problem("service.unreachable", open_=False)


async def test_an_expired_consent_stops_no_order_and_ends_with_a_new_one(shop: World) -> None:
    await shop.control("clock", {"jump_s": EIGHT_DAYS_S})
    shop.till.change("p1", price="1.95")  # a call that finds out
    await shop.problem("consent.expired")
    status = await shop.status()
    (problem,) = [each for each in status["problems"] if each["code"] == "consent.expired"]
    assert "tillbridge connect main" in problem["fix"]
    order = await shop.order("p2")
    await until("the ticket is there", lambda: shop.till.tickets() == [order])
    assert await shop.order_state(order) == "created"
    await shop.control("requests", method="DELETE")
    code, out, err = await shop.connect()  # while the daemon runs: it takes the callback
    assert code == 0, out + err
    await shop.reaches(order, "accepted")
    await shop.menu_is_on_sale()
    await shop.problem("consent.expired", open_=False)


async def test_a_revoked_consent_is_a_problem_and_not_a_loop(shop: World) -> None:
    await shop.control("tokens/revoke", {})
    await shop.control("requests", method="DELETE")
    shop.till.change("p1", price="1.95")
    await shop.problem("consent.revoked")
    order = await shop.order("p2")
    await until("the ticket is there", lambda: shop.till.tickets() == [order])
    shop.till.change("p3", price="3.95")
    await until("the export was read", lambda: shop.bridge.events("export.read"))
    assert len(await shop.calls()) < 10, "it does not hammer"


async def test_a_consent_that_is_withdrawn_while_nothing_is_called_is_a_problem_everywhere(
    tmp_path: Path,
) -> None:
    async with make_world(tmp_path) as world:
        world.write_config(top="idle_read_s = 1")
        await world.bridge.start()
        code, out, err = await world.connect()
        assert code == 0, out + err
        await world.menu_is_on_sale()
        await world.problem("consent.revoked", open_=False)
        await world.control("tokens/revoke", {})
        await world.control("requests", method="DELETE")
        await world.problem("consent.revoked")
        code, out, err = await world.bridge.run("doctor", "--json")
        assert code == 1, out + err
        assert "consent" in out
        await asyncio.sleep(2.5)
        calls = [call for call in await world.calls() if call["status"] != 401]  # no probes
        assert len(calls) == 1, "a lost consent costs one call"


def test_a_store_at_rest_makes_no_more_than_one_small_call_a_minute() -> None:
    every_s = ServiceSettings.model_fields["idle_read_s"].default
    assert 50 <= every_s <= 58, "noticed within 60 seconds, the answer's time included"


async def test_a_rate_limit_lets_orders_go_first(shop: World) -> None:
    await shop.control(
        "faults",
        {"path": "^/pos/", "action": "error", "status": 429, "retry_after_s": 2, "count": 1},
    )
    shop.till.change("p1", price="1.95")
    await until("the service said 429", lambda: _limited(shop))
    order = await shop.order("p2")
    shop.till.change("p3", available="false")
    await shop.reaches(order, "accepted")
    await shop.menu_is_on_sale()
    fine = [call["path"] for call in await shop.calls("/pos/") if call["method"] != "GET"]
    after = fine[fine.index(next(path for path in fine if path.endswith("/accept"))) :]
    assert after[0].endswith("/accept")
    assert any("/items/" in path for path in after[1:])


async def _limited(world: World) -> bool:
    return any(call["status"] == 429 for call in await world.calls("/pos/"))
