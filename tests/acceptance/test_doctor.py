"""`tillbridge doctor` against a real bridge: all well, and each link broken in turn."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import free_port, until
from tests.support.mail_harness import mail_server, web_hook
from tests.support.world import World

Report = dict[str, Any]


async def examined(world: World) -> tuple[int, Report]:
    began = time.monotonic()
    code, out, err = await world.bridge.run("doctor", "--json")
    assert out, err
    assert time.monotonic() - began < 40  # 20 s, and what starting costs on a busy machine
    report: Report = json.loads(out)
    assert report["done"]
    return code, report


def result(report: Report, name: str) -> Report:
    return next(each for each in report["results"] if each["name"] == name)


async def breaks(world: World, name: str, text: str, fix: str) -> Report:
    """The doctor names this link, in these words, and says this is to be done."""
    code, report = await examined(world)
    found = result(report, name)
    assert (found["level"], code) == ("failed", 1), report
    assert text in found["text"], found
    assert fix in found["fix"], found
    return report


def reconfigure(world: World, old: str, new: str) -> None:
    text = world.config.read_text("utf-8")
    assert old in text
    world.config.write_text(text.replace(old, new), "utf-8")


async def test_all_links_of_a_shop_that_is_open_are_well(shop: World) -> None:
    before = await shop.state()
    calls = len(await shop.calls())
    code, report = await examined(shop)
    broken = [each for each in report["results"] if each["level"] in {"failed", "warning"}]
    # Whether this machine sets its clock is not the shop's affair.
    assert not [each for each in broken if each["name"] != "time_sync"], broken
    assert (code, report["ok"]) == (0, True)
    names = {each["name"] for each in report["results"]}
    assert names >= {
        "bridge", "dns.service", "tls.service", "service", "clock", "dns.public", "tls.public",
        "public", "consent", "integration", "till", "ledger", "disk", "ports", "versions",
    }  # fmt: skip
    assert result(report, "public")["details"]["cause"] == "reached"

    # Nobody is told of problems here, which is no fault.
    assert result(report, "alerts")["level"] == "skipped"

    # Nothing was changed: the service was only asked.
    methods = {call["method"] for call in (await shop.calls())[calls:]}
    assert methods <= {"GET"}
    assert (await shop.state())["stores"] == before["stores"]

    # For people, too.
    code, out, _err = await shop.bridge.run("doctor")
    assert code == 0
    assert "Everything works" in out


async def test_a_bridge_that_is_down_is_named_and_the_rest_is_still_checked(shop: World) -> None:
    await shop.bridge.kill()
    report = await breaks(shop, "bridge", "not running", "tillbridge run")
    for name in ("service", "consent", "integration", "till", "ledger"):
        assert result(report, name)["level"] == "ok", result(report, name)
    assert result(report, "public")["level"] == "skipped", "it follows from that"


async def test_a_service_that_is_away_is_named(world: World) -> None:
    reconfigure(world, world.url, f"http://127.0.0.1:{free_port()}")
    await breaks(world, "service", "cannot be reached", "internet connection")


async def test_a_service_with_an_unknown_name_is_named(world: World) -> None:
    reconfigure(world, f"{world.url}/v2", "https://ordering.invalid/v2")
    report = await breaks(world, "dns.service", "ordering.invalid", "base_url")
    assert [each["name"] for each in report["results"] if each["level"] == "failed"] == [
        "bridge",
        "dns.service",
    ], "one cause is one error"


async def test_a_public_address_that_leads_elsewhere_is_named(shop: World) -> None:
    """It leads to the service's own sandbox, which is no bridge."""
    await shop.bridge.kill()
    reconfigure(
        shop,
        f'public_url = "http://127.0.0.1:{shop.receiver_port}"',
        f'public_url = "{shop.url}"',
    )
    await shop.bridge.start()
    report = await breaks(shop, "public", "Another program answers", "/webhooks/")
    assert result(report, "public")["details"]["cause"] == "wrong_target"


async def test_a_public_address_with_nobody_there_is_named(shop: World) -> None:
    await shop.bridge.kill()
    reconfigure(
        shop,
        f'public_url = "http://127.0.0.1:{shop.receiver_port}"',
        f'public_url = "http://127.0.0.1:{free_port()}"',
    )
    await shop.bridge.start()
    await breaks(shop, "public", "refuses connections", "tunnel or proxy")


async def test_a_missing_consent_is_named(world: World) -> None:
    await world.bridge.start()
    await breaks(world, "consent", "not connected", "tillbridge connect main")


async def test_a_revoked_consent_is_named(shop: World) -> None:
    await shop.control("tokens/revoke", {})
    await breaks(shop, "consent", "may no longer act", "tillbridge connect main")


async def test_a_webhook_url_that_is_not_ours_is_named(shop: World) -> None:
    # A running bridge would put it right by itself.
    await shop.bridge.kill()
    reconfigure(
        shop,
        f'public_url = "http://127.0.0.1:{shop.receiver_port}"',
        'public_url = "http://127.0.0.1:1"',
    )
    await breaks(shop, "integration", "http://127.0.0.1:1/webhooks", "tillbridge connect main")


async def test_a_till_that_is_away_is_named(shop: World) -> None:
    shop.till.orders.rename(shop.till.orders.with_name("unplugged"))
    await breaks(shop, "till", "not there", "share is mounted")


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_a_damaged_ledger_is_named(shop: World) -> None:
    assert await shop.bridge.stop() == 0
    ledger = shop.folder / "data" / "ledger.db"
    with ledger.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    before = ledger.read_bytes()
    await breaks(shop, "ledger", "damaged", "Restart the bridge")
    assert ledger.read_bytes() == before  # looked at, not mended


async def test_a_port_that_another_program_has_is_named(world: World) -> None:
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", world.receiver_port)
    async with server:
        await breaks(world, "ports", "is already in use by", "[receiver]")


@pytest.mark.own_interpreter
async def test_a_start_whose_port_is_taken_is_told_everywhere_and_by_whom(world: World) -> None:
    """By status, doctor and the log, with the program that has it."""
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", world.receiver_port)
    async with server:
        code, _out, err = await world.bridge.run("run")
        assert code == 2
        assert "Address already in use" in err
        code, out, _err = await world.bridge.run("status")
        assert code == 2
        assert "The bridge could not start at" in out
        told = [out, err]
        _code, out, _err = await world.bridge.run("logs", "--event", "bridge.not_started")
        assert "bridge.not_started" in out
        told.append(out)
        report = await breaks(world, "bridge", "could not start at", "[receiver]")
        told.append(str(result(report, "bridge")["text"]))
        if Path("/proc/net/tcp").exists():
            assert all(f"process {os.getpid()}" in each for each in told), told
    await world.bridge.start()
    _code, status, _err = await world.bridge.run("status")
    assert "could not start" not in status


async def test_what_is_open_is_told_by_doctor_too(shop: World) -> None:
    """An export that is empty or gone; and what waits for a person."""
    (shop.till.export / "menu.csv").unlink()
    await shop.problem("export.unreadable")
    code, report = await examined(shop)
    assert (code, report["ok"]) == (1, False)
    menu = result(report, "menu")
    (problem,) = (await shop.status())["problems"]
    assert (menu["code"], menu["text"], menu["fix"]) == tuple(
        problem[each] for each in ("code", "text", "fix")
    )
    assert report["text"] != "Everything works."


async def test_a_secret_that_cannot_be_read_is_named(shop: World) -> None:
    await shop.bridge.kill()
    reconfigure(shop, '{ env = "BRIDGE_SECRET" }', '{ env = "NO_SUCH_VARIABLE" }')
    await breaks(shop, "consent", "NO_SUCH_VARIABLE", "client secret")


async def test_a_daemon_that_hangs_is_named(shop: World) -> None:
    import signal

    assert shop.bridge.process is not None
    shop.bridge.process.send_signal(signal.SIGSTOP)
    try:
        await breaks(shop, "bridge", "does not answer", "Restart the bridge")
    finally:
        shop.bridge.process.send_signal(signal.SIGCONT)
    await until("it goes on", shop.status)


async def test_ways_of_telling_people_are_tried_without_telling_anybody(world: World) -> None:
    async with mail_server() as mail, web_hook() as hook:
        text = world.config.read_text("utf-8")
        told = f"""
[alerts]
heartbeat_url = "http://127.0.0.1:{free_port()}/beat"
[alerts.email]
host = "127.0.0.1"
port = {mail.port}
tls = "none"
username = "bridge"
password = "p4ssword"
sender = "bridge@example.com"
to = ["anna@example.com"]
[alerts.webhook]
url = "{hook.url}/secret-path"
"""
        world.config.write_text(text + told, "utf-8")
        code, report = await examined(world)  # no bridge runs
        assert code == 1
        assert result(report, "alerts.email")["level"] == "ok"
        assert result(report, "alerts.webhook")["level"] == "ok"
        heartbeat = result(report, "heartbeat")
        assert heartbeat["level"] == "failed"
        assert "heartbeat_url" in heartbeat["fix"]
        assert len(mail.logins) == 1
        assert (mail.letters, hook.requests) == ([], [])

        mail.credentials = b"something else"
        _code, report = await examined(world)
        refused = result(report, "alerts.email")
        assert refused["level"] == "failed"
        assert "user name and password" in refused["text"]
        assert "p4ssword" not in json.dumps(report)
        assert "secret-path" not in json.dumps(report)
