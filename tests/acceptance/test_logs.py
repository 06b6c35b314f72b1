"""`tillbridge logs` beside a real bridge: while it runs, after it died, and following it."""

import asyncio
import json
from typing import Any

from tests.support.world import World


async def told(world: World, *options: str) -> list[dict[str, Any]]:
    code, out, err = await world.bridge.run("logs", "--json", *options)
    assert code == 0, err
    lines: list[dict[str, Any]] = json.loads(out)["lines"]
    return lines


async def test_the_log_tells_of_a_bridge_that_runs_and_of_one_that_died(shop: World) -> None:
    events = [each["event"] for each in await told(shop)]
    assert events[0] == "bridge.starting"
    assert "bridge.ready" in events
    # The same lines as on stderr, which is the service manager's.
    on_stderr = [each["event"] for each in shop.bridge.events()]
    assert events == on_stderr[: len(events)]

    # An order is found by the number that guests and the kitchen use, or by its id.
    order = await shop.order("p1")
    await shop.reaches(order, "accepted")
    code, out, _err = await shop.bridge.run("orders", "show", order, "--json")
    assert code == 0
    of_order = await told(shop, "--order", json.loads(out)["order_number"])
    assert of_order
    assert {each["order"] for each in of_order} == {order}
    assert of_order[0] == (await told(shop, "--order", order))[0]

    await shop.bridge.kill()
    assert [each["event"] for each in await told(shop, "--event", "bridge.")][:2] == [
        "bridge.starting",
        "bridge.ready",
    ]
    assert await told(shop, "--level", "error", "--event", "bridge.") == []
    assert await told(shop, "--since", "2099-01-01") == []

    code, out, _err = await shop.bridge.run("logs", "--event", "bridge.ready")
    assert code == 0
    assert "info    bridge.ready  stores=" in out
    assert "\x1b" not in out


async def test_following_tells_new_lines_while_they_are_written(shop: World) -> None:
    follower = await asyncio.create_subprocess_exec(
        *shop.bridge.command("logs", "--follow", "--json", "--limit", "1"),
        stdout=asyncio.subprocess.PIPE,
        env=shop.bridge.env,
    )
    assert follower.stdout is not None
    try:
        async with asyncio.timeout(30):
            await follower.stdout.readline()
            await shop.bridge.stop()
            heard = ""
            while "bridge.stopped" not in heard:
                heard = json.loads(await follower.stdout.readline())["event"]
    finally:
        follower.kill()
        await follower.wait()


async def test_a_bad_time_says_what_to_type(shop: World) -> None:
    code, _out, err = await shop.bridge.run("logs", "--since", "lately")
    assert code == 2
    assert "--since 2h" in err
