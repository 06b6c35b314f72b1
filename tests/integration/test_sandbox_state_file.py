"""A sandbox that goes on after a restart with what its file holds."""

import json
from pathlib import Path

import orjson
import pytest

from tests.support.sandbox_driver import Driver, driven, item, until
from tests.support.sandbox_hall import at, hall_of
from tillbridge.sandbox import SandboxSettings, UnusableStateError, start
from tillbridge.sandbox.server import Sandbox
from tillbridge.sandbox.state_file import dump, restore


async def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "sandbox.json"
    async with driven() as driver:
        await driver.running.stop()
        driver.running = await start(state=path)
        assert path.stat().st_mode & 0o077 == 0
        await driver.integrate()
        await driver.push(item("tea"), item("soup", variants=[_small()]))
        first = await driver.place({"external_id": "tea", "quantity": 1})
        await driver.jump(3000)
        driver.receiver.statuses = [503]
        waiting = await driver.place({"external_id": "tea", "quantity": 2})
        driver.receiver.statuses = [200]
        told = len(driver.receiver.received)
        before = await driver.state()
        # It is written soon after the change, without waiting for the end.
        await until(lambda: waiting["order_id"].encode() in path.read_bytes())

        await driver.running.stop()
        driver.running = await start(state=path)
        # What was under way goes on, and nothing that was delivered comes again.
        await until(lambda: len(driver.receiver.received) > told)
        assert waiting["order_id"].encode() in driver.receiver.received[-1].raw
        after = await driver.state()
        for state in (before, after):
            del state["clock"], state["deliveries"]
            for token in state["tokens"]:
                assert token.pop("expires_in_s") > 0  # time goes on
        assert after == before
        assert driver.running.sandbox.clock.ahead_s >= 2999
        assert (await driver.call("GET", "/pos/stores")).status == 200  # with the token of before
        numbers = [int(each["order_number"]) for each in (first, waiting)]
        third = await driver.place({"external_id": "tea", "quantity": 1})
        assert int(third["order_number"]) == max(numbers) + 1


async def test_orders_of_a_community_and_their_parts_are_one_again() -> None:
    async with hall_of() as hall:
        await hall.subscribe()
        order = await hall.order(at("st_main", "soup"), at("st_tea", "tea"))
        old = hall.bridge.running.sandbox
        data = dump(old)
        new = Sandbox(old.settings)
        restore(new, data)
        parent = new.world.parent_orders[order["order_id"]]
        for child in parent.children:
            assert new.world.orders[child.order_id] is child
            assert new.world.parent_of(child) is parent
            assert child.link is new.world.links[child.link.app_id, child.link.store.store_id]
        written = orjson.loads(data)
        assert written["parent_orders"]
        assert {**orjson.loads(dump(new)), "deliveries": []} == {**written, "deliveries": []}


async def test_a_push_that_was_under_way_has_failed(tmp_path: Path) -> None:
    path = tmp_path / "sandbox.json"
    async with driven(SandboxSettings(sync_item_limit=1, job_duration_s=600)) as driver:
        await driver.integrate()
        job = await _push_in_background(driver)
        path.write_bytes(dump(driver.running.sandbox))
        await driver.running.stop()
        driver.running = await start(driver.running.sandbox.settings, state=path)
        state = await driver.state()
        assert "restarted" in json.dumps(state["jobs"]), state["jobs"]
        assert job in json.dumps(state["jobs"])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 99}', b'{"version": 1}'])
async def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sandbox.json"
    path.write_bytes(content)
    with pytest.raises(UnusableStateError, match="is damaged"):
        await start(state=path)
    assert path.read_bytes() == content
    with pytest.raises(UnusableStateError, match="No such file or directory"):
        await start(state=tmp_path / "nowhere" / "sandbox.json")


def _small() -> dict[str, object]:
    return {"external_id": "soup-s", "variant_name": "Small", "price": 300}


async def _push_in_background(driver: Driver) -> str:
    answer = await driver.push(item("tea"), item("soup"))
    assert answer.status == 202, answer.body
    return str(answer.body["job_id"])
