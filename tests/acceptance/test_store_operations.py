"""The store itself through the real daemon: its files, who pauses it, its schedule, its taxes."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.world import World, make_world

WEEK = """\
timezone = "Europe/Rome"
[weekly]
monday = []
tuesday = ["12:00-14:30"]
wednesday = ["12:00-14:30"]
thursday = ["12:00-14:30"]
friday = ["12:00-14:30"]
saturday = ["18:30-24:00"]
sunday = ["12:00-15:00"]
"""
STORE = """\
name = "Trattoria"
phone = "+39 02 1234 5678"
[delivery]
minimum = 15.00
[pass_through]
acceptsScheduledOrders = true
"""
FILES = 'settings_file = "store.toml"\nhours_file = "hours.toml"'


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, settings_accept_unknown=True) as made:
        write(made, "hours.toml", WEEK)
        write(made, "store.toml", STORE)
        made.write_config(
            store=FILES,
            top="store_look_s = 0.3",
            orders="pause_after_s = 0.3\nresume_after_s = 0.1\nmax_pauses_per_hour = 50",
        )
        text = made.config.read_text("utf-8")
        heartbeat = 'health_s = 0.2\nheartbeat = "heartbeat"\nheartbeat_s = 3600'
        updates = 'updates_dir = "updates"'
        made.config.write_text(text.replace(updates, f"{updates}\n{heartbeat}"), "utf-8")
        write(made, "heartbeat", "")
        await made.bridge.start()
        code, out, err = await made.connect()
        assert code == 0, out + err
        await made.menu_is_on_sale()
        yield made


def write(world: World, name: str, text: str) -> None:
    fresh = world.folder / f"{name}.new"
    fresh.write_text(text, "utf-8")
    fresh.replace(world.folder / name)


def till_goes(world: World) -> None:
    (world.folder / "heartbeat").unlink()


async def sent(world: World) -> list[dict[str, Any]]:
    """The settings the service has received, call by call."""
    calls = await world.calls("/settings")
    return [call["body"] for call in calls if call["method"] == "PUT"]


async def asked(world: World, *arguments: str, code: int = 0) -> Any:  # noqa: ANN401 -- any JSON value
    ended, out, err = await world.bridge.run("store", *arguments, "--json")
    assert ended == code, out + err
    return json.loads(out)


async def store(world: World) -> dict[str, Any]:
    """The store's part of the status page."""
    found: dict[str, Any] = (await world.status())["stores"]["main"]["store"]
    return found


async def is_at_service(world: World, status: str) -> None:
    async def look() -> bool:
        found: str = (await world.state())["stores"]["st_main"]["status"]
        return found == status

    await until(f"the store is {status} at the service", look)


async def stands(world: World, **wanted: object) -> None:
    async def look() -> bool:
        now = await store(world)
        return all(now[key] == value for key, value in wanted.items())

    await until(f"the store stands as {wanted}", look)


async def test_an_edit_of_the_hours_sends_only_the_hours(world: World) -> None:
    await until("the settings are sent", lambda: sent(world))
    (first,) = await sent(world)
    assert first["name"] == "Trattoria"
    assert first["deliverySettings"] == {"min_order_amount": 1500}
    assert first["acceptsScheduledOrders"] is True
    assert first["availability"]["saturday"] == [{"open": "18:30", "close": "24:00"}]

    write(world, "hours.toml", WEEK.replace("monday = []", 'monday = ["12:00-14:00"]'))
    await until("the hours are sent", lambda: two(world))
    second = (await sent(world))[1]
    assert list(second) == ["availability"]
    assert second["availability"]["monday"] == [{"open": "12:00", "close": "14:00"}]

    async def told() -> bool:
        settings = (await store(world))["settings"]
        return settings["pending"] == [] and bool(settings["last_sent_at"])

    await until("nothing waits to be sent", told)
    assert len(await sent(world)) == 2


async def two(world: World) -> bool:
    return len(await sent(world)) == 2


async def test_a_bad_edit_sends_nothing_and_names_file_and_line(world: World) -> None:
    await until("the settings are sent", lambda: sent(world))
    write(world, "hours.toml", WEEK.replace('"18:30-24:00"', '"18:30-02:00"'))
    await world.problem("store.file_unreadable")
    (told,) = [
        each
        for each in (await world.status())["problems"]
        if each["code"] == "store.file_unreadable"
    ]
    assert "hours.toml, line 8: weekly.saturday[0]" in told["text"]
    assert 'sunday = ["00:00-02:00"]' in told["text"]
    code, _out, err = await world.bridge.run("config", "check")
    assert code == 2
    assert "hours.toml, line 8" in err
    code, _out, err = await world.bridge.run("store", "plan", "main")
    assert code == 2
    assert "hours.toml, line 8" in err
    assert len(await sent(world)) == 1
    write(world, "hours.toml", WEEK)
    await world.problem("store.file_unreadable", open_=False)
    assert len(await sent(world)) == 1


async def test_the_plan_is_told_in_words_and_push_sends_it_all_again(world: World) -> None:
    await until("the settings are sent", lambda: sent(world))
    assert (await asked(world, "plan", "main"))["body"] == {}
    plan = await asked(world, "plan", "main", "--full")
    assert plan["body"]["name"] == "Trattoria"
    assert (await asked(world, "push", "main", "--full"))["sent"] == sorted(plan["body"])
    assert len(await sent(world)) == 2
    write(world, "store.toml", STORE.replace("minimum = 15.00", "minimum = 12.50"))
    await until("the change is sent", lambda: three(world))
    assert (await sent(world))[2] == {"deliverySettings": {"min_order_amount": 1250}}


async def three(world: World) -> bool:
    return len(await sent(world)) == 3


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_a_persons_pause_survives_a_restart_and_a_till_that_comes_back(world: World) -> None:
    told = await asked(
        world, "pause", "main", "--reason", "too busy", "--by", "anna", "--until", "2h"
    )
    assert told["paused_by"] == "person"
    await is_at_service(world, "inactive")
    await stands(world, status="inactive", paused_by="person", by="anna", reason="too busy")
    await world.problem("store.paused_by_staff")

    till_goes(world)
    await world.problem("pos.offline")
    await world.problem("store.paused")
    # Opened while the till is away: said so, and not lost.
    told = await asked(world, "resume", "main", code=1)
    assert "The till is offline" in told["text"]
    await is_at_service(world, "inactive")
    await asked(world, "pause", "main", "--by", "anna")

    assert await world.bridge.stop() == 0
    write(world, "heartbeat", "")
    await world.bridge.start()
    await world.problem("pos.offline", open_=False)
    await world.problem("store.paused", open_=False)
    await stands(world, status="inactive", paused_by="person", by="anna")
    await is_at_service(world, "inactive")

    assert (await asked(world, "resume", "main"))["status"] == "active"
    await is_at_service(world, "active")
    await world.problem("store.paused_by_staff", open_=False)


async def test_what_somebody_else_did_is_noticed_and_left_alone(world: World) -> None:
    await world.control("stores/st_main/status", {"status": "inactive"})
    await stands(world, paused_by="somebody else")
    await world.problem("store.paused_elsewhere")
    till_goes(world)
    await world.problem("store.paused")
    write(world, "heartbeat", "")
    await world.problem("store.paused", open_=False)
    await is_at_service(world, "inactive")
    await world.control("stores/st_main/status", {"status": "active"})
    await world.problem("store.paused_elsewhere", open_=False)
    await stands(world, status="active", paused_by=None)


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_an_event_tells_at_once_what_somebody_else_did(world: World) -> None:
    assert await world.bridge.stop() == 0
    text = world.config.read_text("utf-8")
    world.config.write_text(text.replace("store_look_s = 0.3", "store_look_s = 9999"), "utf-8")
    await world.bridge.start()
    await stands(world, told="active")
    event = {"store_id": "st_main", "event_type": "store.status_changed", "wait": True}
    await world.control("stores/st_main/status", {"status": "inactive"})
    await world.control("webhooks/send", event)
    await stands(world, status="inactive", paused_by="somebody else")
    _code, out, _err = await world.bridge.run("status")
    assert "someone closed it at the ordering service" in out


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_pausing_works_while_no_bridge_runs(world: World) -> None:
    assert await world.bridge.stop() == 0
    assert (await asked(world, "pause", "main"))["status"] == "inactive"
    await is_at_service(world, "inactive")
    assert (await asked(world, "show", "main"))["paused_by"] == "person"
    assert (await asked(world, "resume", "main"))["status"] == "active"
    await is_at_service(world, "active")


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_outside_its_hours_the_store_takes_no_orders(world: World) -> None:
    assert await world.bridge.stop() == 0
    text = world.config.read_text("utf-8")
    world.config.write_text(text + "\n[stores.main.schedule]\nfollow_hours = true\n")
    never = "\n".join(
        line.split("=")[0] + "= []" if "-" in line else line for line in WEEK.splitlines()
    )
    write(world, "hours.toml", never)
    await world.bridge.start()
    await stands(world, paused_by="schedule", reason="outside opening hours", hours_today=[])
    await is_at_service(world, "inactive")
    assert (await world.status())["verdict"]["text"].startswith("Closed by the schedule")
    always = "\n".join(
        line.split("=")[0] + '= ["00:00-24:00"]' if "[]" in line else line
        for line in never.splitlines()
    )
    write(world, "hours.toml", always)
    await is_at_service(world, "active")
    await stands(world, status="active", hours_today=["00:00-24:00"])


async def test_taxes_that_differ_are_told_in_words_until_they_agree(world: World) -> None:
    config = await asked(world, "tax", "main")
    assert config["differences"] == []
    await world.order("p11", "p12")
    await world.control(
        "stores/st_main/tax-config",
        {
            "enabled": True,
            "tax_level": "store",
            "pricing_mode": "exclusive",
            "default_tax_id": "tax_9",
            "taxes": [
                {
                    "tax_id": "tax_9",
                    "name": "VAT",
                    "components": [{"agency": "City", "rate": 7.5, "compound": False}],
                }
            ],
        },
        method="PUT",
    )
    # Ordered by other taxes than the ones that were read.
    await world.order("p11", "p12")
    await world.problem("tax.differs")
    assert "was taxed at 7.5 %" in (await store(world))["tax"]["differences"][0]
    code, out, _err = await world.bridge.run("store", "show", "main")
    assert code == 0
    assert "The store takes orders." in out
    assert "was taxed at 7.5 %" in out
    code, out, _err = await world.bridge.run("store", "tax", "main")
    assert code == 0
    assert "VAT: City 7.5 %" in out
    assert "The taxes of the till, the ordering service and the orders match." in out
    await world.problem("tax.differs", open_=False)


async def test_a_time_that_a_change_of_clocks_skips_is_noted_with_its_date(world: World) -> None:
    write(world, "hours.toml", WEEK.replace('sunday = ["12:00', 'sunday = ["02:30'))
    code, out, err = await world.bridge.run("config", "check")
    assert code == 0, out + err
    assert "hours.toml, line 9: weekly.sunday[0] 02:30 does not exist on" in out
    assert "go forward to 03:00" in out
