"""One store gets what no ledger can hold: the bridge lives, and the other store goes on selling."""

import json
import os
import sqlite3

from tests.support.bridge_process import until
from tests.support.world import World

# The tills of both write what cannot be.
_MORE_STORES = """
[stores.bar]
location_id = "loc-2"
currency = "USD"
notification_email = "owner@example.net"
[stores.bar.pos]
adapter = "folder"
menu = "bar/menu.csv"
availability = "bar/availability.csv"
orders_dir = "bar/orders"
updates_dir = "bar/updates"
poll_s = 0.5

[stores.kiosk]
location_id = "loc-3"
currency = "USD"
notification_email = "owner@example.net"
[stores.kiosk.pos]
adapter = "tests.support.poison_adapter:ADAPTER"
poll_s = 0.5

[stores.stuck]
location_id = "loc-4"
currency = "USD"
notification_email = "owner@example.net"
[stores.stuck.pos]
adapter = "tests.support.poison_adapter:ADAPTER"
poll_s = 0.5
hangs_after_s = 2
hangs = true
"""


def poison_the_bar(world: World) -> None:
    """Write what a till may write: each of these ended the bridge, and again at each start."""
    bar = world.folder / "bar"
    for folder in ("orders", "updates"):
        (bar / folder).mkdir(parents=True, exist_ok=True)
    price = "123456789012345678901234567890"
    rows = f"good,Bread,2.50\ndear,Gold,{price}\nbomb,Bomb,1e999999999\n"
    (bar / "menu.csv").write_text(f"external_id,name,price\n{rows}", "utf-8")
    forever = "good,false,9999-12-31T23:59:59-05:00\n"
    (bar / "availability.csv").write_text(f"external_id,available,snooze_until\n{forever}", "utf-8")
    updates = bar / "updates"
    half = '{"order_id": "\\ud800x", "status": "preparing"}'
    (updates / "half.json").write_text(half, "utf-8")
    many = {
        "order_id": "ord_1",
        "status": "rejected",
        "external_ids": [str(n) for n in range(50_000)],
    }
    (updates / "many.json").write_text(json.dumps(many), "utf-8")
    long = {"order_id": "x" * 900_000, "status": "ready"}
    (updates / "long.json").write_text(json.dumps(long), "utf-8")
    odd_name = os.fsencode(updates) + b"/bad\xff\xfename.json"
    with open(odd_name, "wb") as file:  # noqa: PTH123 -- a name that is no text
        file.write(b"{")


async def problems(world: World, store: str) -> set[str]:
    return {each["code"] for each in (await world.status())["problems"] if each["store"] == store}


async def sells(world: World, price: str) -> None:
    """The main store goes on: an order is accepted, and a new price reaches the storefront."""
    order = await world.order("p1")
    await world.reaches(order, "accepted")
    world.till.change("p4", price=price)
    await world.menu_is_on_sale()


async def test_a_poisoned_store_ends_nothing_and_delays_no_other(world: World) -> None:
    world.config.write_text(world.config.read_text("utf-8") + _MORE_STORES, "utf-8")
    poison_the_bar(world)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    await sells(world, "4.60")

    async def told() -> bool:
        wanted = {"pos.update_unreadable", "export.bad_rows"}
        kiosk = wanted | {"adapter.failed"}
        return wanted <= await problems(world, "bar") and kiosk <= await problems(world, "kiosk")

    await until("both stores tell what is wrong", told)

    async def is_stuck() -> bool:
        return await problems(world, "stuck") >= {"adapter.hangs"}

    await until("the store whose reading hangs says so", is_stuck)
    assert "adapter.hangs" not in await problems(world, "main")
    assert len(list((world.folder / "bar/updates/bad").glob("*.error"))) == 4
    assert world.bridge.events("task.died") == []

    # Rows that only a defect can have written: a step of that store fails, again and again.
    await world.bridge.stop()
    with sqlite3.connect(world.folder / "data" / "ledger.db") as ledger:
        ledger.execute(
            "INSERT INTO menu_items"
            " (store, external_id, body, fingerprint, pos_available, overlaid)"
            " VALUES ('bar', 'broken', '{', 7, 1, 1)"
        )
        ledger.execute(
            "INSERT OR REPLACE INTO facts (store, name, value, at)"
            """ VALUES ('bar', 'standing', '{"person": {"no": "such pause"}}', 1)"""
        )
        ledger.execute(
            'INSERT INTO overrides (store, external_id, until, "by", at) VALUES (?, ?, ?, ?, ?)',
            ("main", "p12", 99_999_999_999_999_999, "staff", 1),
        )
    await world.bridge.start()
    await world.problem("store.step_failed")
    assert "store.step_failed" in await problems(world, "bar")
    world.till.rows["p12"]["available"] = "false"  # as the override has it, which never ends
    await sells(world, "4.70")
    assert world.bridge.process is not None
    assert world.bridge.process.returncode is None
    assert world.bridge.events("task.died") == []
    assert "store.step_failed" not in await problems(world, "main")


_STORES_THAT_DO_NOT_OPEN = """
[stores.late]
location_id = "loc-2"
currency = "USD"
notification_email = "owner@example.net"
[stores.late.pos]
adapter = "tests.support.poison_adapter:ADAPTER"
opens_with = "opened"

[stores.broken]
location_id = "loc-3"
currency = "USD"
notification_email = "owner@example.net"
[stores.broken.pos]
adapter = "tests.support.poison_adapter:ADAPTER"
breaks = true

[stores.gone]
location_id = "loc-4"
currency = "USD"
notification_email = "owner@example.net"
[stores.gone.pos]
adapter = "tests.support.no_such_adapter:ADAPTER"
"""


async def test_an_adapter_that_hangs_or_breaks_while_it_is_opened_stays_alone(
    world: World,
) -> None:
    opened = world.folder / "opened"
    stores = _STORES_THAT_DO_NOT_OPEN.replace('"opened"', json.dumps(str(opened)))
    world.config.write_text(world.config.read_text("utf-8") + stores, "utf-8")
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    await sells(world, "4.60")

    async def all_are_offline() -> bool:
        return all(
            ["pos.offline" in await problems(world, each) for each in ("late", "broken", "gone")]
        )

    await until("each store that is not open says so", all_are_offline)
    texts = [each["text"] for each in (await world.status())["problems"]]
    assert any("opening it hangs" in each for each in texts), texts
    assert any("older than its till" in each for each in texts), texts
    assert any("no_such_adapter" in each for each in texts), texts

    opened.touch()

    async def late_is_open() -> bool:
        return "pos.offline" not in await problems(world, "late")

    await until("the store goes on once its adapter opens", late_is_open, within_s=60)
    assert "pos.offline" in await problems(world, "broken")
    await sells(world, "4.70")
    assert world.bridge.events("task.died") == []
