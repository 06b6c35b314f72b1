"""What goes wrong around the bridge is found by itself, in time, and said the same everywhere."""

import asyncio
import errno
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_stores_standing import Bench, standing
from tests.support.page_harness import page_harness
from tests.support.problem_reports import report_open
from tests.support.surfaces import disagreements, surfaces
from tillbridge.core.errors import ConsentLost, LedgerError, ServiceDown, Unreachable
from tillbridge.core.network import holder_of, port_taken
from tillbridge.daemon.checks import AddressProbe, ServiceProbe, look_at_disk
from tillbridge.diagnostics.checks.public import Judgement
from tillbridge.diagnostics.checks.service import Asked, ask
from tillbridge.ledger.database import LedgerLock
from tillbridge.ledger.day import Day
from tillbridge.ledger.facts import get_fact, note_addresses
from tillbridge.ledger.snapshot import (
    FailedStart,
    StoreSnapshot,
    failed_start,
    forget_failed_start,
    note_failed_start,
)
from tillbridge.service.caller import Contact
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.overview import Overview, overview
from tillbridge.status.stopped import status_from_ledger
from tillbridge.stores.link import ServiceReach

LONGEST_S = 60.0
GIVES_UP_S = 8.0  # what asks the network waits for so long


class Service:
    """What asking it comes to; each answer costs as long as it takes to give up."""

    def __init__(self, bench: Bench, every_s: float = 20) -> None:
        self.asked = Asked(answers=True, skew_s=0.0)
        self.reach = ServiceReach(bench.tracker, clock=bench.service.clock)
        self.probe = ServiceProbe(
            self._ask, self.reach, bench.tracker, every_s=every_s, jitter=lambda: 1.0
        )

    async def _ask(self) -> Asked:
        return self.asked


async def agree(bench: Bench, *codes: str) -> None:
    problems = bench.tracker.current()
    assert [each.code for each in problems] == list(codes)
    async with page_harness() as harness:
        assert disagreements(await surfaces(harness, problems), problems) == []


# -- the service


async def test_a_dead_service_is_told_within_a_minute_though_nothing_is_asked_of_it(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        service = Service(bench)
        wait_s = await service.probe.probe()
        service.asked = Asked(answers=False, fix="Check base_url.")
        passed = wait_s + GIVES_UP_S
        passed += await service.probe.probe() + GIVES_UP_S
        assert bench.tracker.current() == (), "once is a hiccup"
        await service.probe.probe()
        assert passed <= LONGEST_S
        await agree(bench, "service.unreachable")
        (told,) = bench.tracker.current()
        assert told.fix.startswith("Check base_url. Orders that have arrived still reach")
        service.asked = Asked(answers=True)
        await service.probe.probe()
        assert bench.tracker.current() == ()


async def test_a_service_that_answers_anything_is_there(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        service = Service(bench)
        service.reach.called(Contact("menus.push", ok=False, failure=Unreachable("no")))
        assert bench.tracker.is_open("service.unreachable")
        await service.probe.probe()  # which is answered with 401
        assert bench.tracker.current() == ()
        gone = ConsentLost("no", code="auth.invalid_grant", status=400)
        service.reach.called(Contact("stores.list", ok=False, failure=gone))
        assert bench.tracker.current() == (), (
            "of a consent that is gone the consent's problem tells"
        )


async def test_a_service_that_is_out_of_order_for_some_calls_does_not_flap(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        service = Service(bench)
        ill = ServiceDown("ill", status=503)
        for _time in range(3):
            service.reach.called(Contact("menus.push", ok=False, failure=ill))
            bench.service.clock.pass_s(20)
            await service.probe.probe()
            assert bench.tracker.is_open("service.unreachable")
        bench.service.clock.pass_s(20)
        await service.probe.probe()
        assert bench.tracker.current() == ()


async def test_three_stores_without_a_service_are_one_problem(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        report_open(bench.tracker, "service.unreachable", "main")  # as an earlier version told it
        service = Service(bench)
        assert bench.tracker.current() == ()
        for _store in range(3):
            service.reach.called(Contact("stores.list", ok=False, failure=Unreachable("no")))
        await agree(bench, "service.unreachable")


# -- the clock


@pytest.mark.parametrize(
    ("skew_s", "off", "effect"),
    [
        (-600.0, "10 minutes ahead of", "look expired"),
        (600.0, "10 minutes behind", "from the future"),
    ],
)
async def test_a_wrong_clock_is_told_on_every_surface(
    tmp_path: Path, skew_s: float, off: str, effect: str
) -> None:
    async with standing(tmp_path) as bench:
        service = Service(bench)
        service.asked = Asked(answers=True, skew_s=skew_s)
        await service.probe.probe()
        await agree(bench, "clock.wrong")
        (told,) = bench.tracker.current()
        assert f"clock is {off} the ordering service's" in told.text
        assert effect in told.fix
        service.asked = Asked(answers=True, skew_s=None)
        await service.probe.probe()
        assert bench.tracker.is_open("clock.wrong"), "who says no time says nothing of ours"
        service.asked = Asked(answers=True, skew_s=1.0)
        await service.probe.probe()
        assert bench.tracker.current() == ()


async def test_asking_a_real_service_tells_that_it_answers_and_its_time(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        asked = await ask(bench.service.link.base_url)
        assert asked == Asked(answers=True, skew_s=0.0)
    gone = await ask("http://127.0.0.1:9/v2")
    assert not gone.answers
    assert "internet connection" in gone.fix


# -- the disk and the folders


def disk(*, free: int, total: int) -> Callable[[object], Any]:
    return lambda _path: shutil._ntuple_diskusage(total, total - free, free)


async def test_a_disk_that_is_nearly_full_is_told_before_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path) as bench:
        monkeypatch.setattr(shutil, "disk_usage", disk(free=24 << 20, total=64 << 30))
        await look_at_disk(tmp_path, bench.tracker)
        await agree(bench, "disk.low")
        (told,) = bench.tracker.current()
        assert told.text == f"The disk of {tmp_path} is almost full: 24 MiB left."
        monkeypatch.setattr(shutil, "disk_usage", disk(free=2 << 30, total=64 << 30))
        await look_at_disk(tmp_path, bench.tracker)
        assert bench.tracker.current() == ()


@pytest.mark.parametrize("name", ["", "backups", "log"])
async def test_a_folder_of_the_bridge_that_root_has_taken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", disk(free=64 << 30, total=64 << 30))
    async with standing(tmp_path / "bench") as bench:
        data = tmp_path / "data"
        taken = data / name
        taken.mkdir(parents=True)
        real = os.open

        def refused(path: str | Path, flags: int, mode: int = 0o777) -> int:
            if Path(path).parent == taken:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(path, flags, mode)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refused)
            await look_at_disk(data, bench.tracker)
        await agree(bench, "disk.not_writable")
        (told,) = bench.tracker.current()
        assert f"{taken}, which belongs to" in told.text
        assert "chown" in told.fix
        await look_at_disk(data, bench.tracker)
        assert bench.tracker.current() == ()


# -- the public address


async def test_a_dead_public_address_is_told_within_a_minute(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        seen = [Judgement(True, "reached", "It leads here.", "")]

        async def look() -> Judgement:
            return seen[0]

        probe = AddressProbe(
            "https://mine",
            look,
            bench.ledger,
            bench.tracker,
            clock=bench.service.clock,
            every_s=20,
            jitter=lambda: 1.0,
        )
        passed = await probe.probe() + GIVES_UP_S
        seen[0] = Judgement(False, "name_unknown", "The name is gone.", "Renew the domain.")
        passed += await probe.probe() + GIVES_UP_S
        await probe.probe()
        assert passed <= LONGEST_S
        await agree(bench, "public_address.unreachable")


async def test_what_was_seen_of_another_address_proves_nothing_of_this_one(tmp_path: Path) -> None:
    now = 1_795_000_000_000
    old = now - 60_000

    async with standing(tmp_path) as bench:

        def told(addresses: object, seen: object = None) -> Overview:
            facts = BridgeFacts(
                version="1",
                running=True,
                adapters={"main": "folder"},
                stores={"main": StoreSnapshot(facts={"service_contact": {"ok_at": old}})},
                facts={"public_address": seen or {"ok_at": old}, "addresses": addresses},
            )
            day = Day(now - 86_400_000)
            day.last_delivery["main"] = old
            return overview(document(facts, now), facts, day, now)

        async def noted(at: int, **addresses: str) -> object:
            await bench.ledger.write(lambda db: note_addresses(db, addresses, at))
            return await bench.ledger.read(lambda db: get_fact(db, "", "addresses"))

        known = await noted(old, base_url="https://a/v2", public_url="https://mine")
        links = {each["key"]: each for each in told(known)["chain"]["main"]}
        assert links["service"]["at"] == links["address"]["at"] is not None
        known = await noted(now - 10, base_url="https://a/v2", public_url="https://other")
        links = {each["key"]: each for each in told(known)["chain"]["main"]}
        assert links["address"]["state"] == "unknown", "it is to be proved anew"
        assert links["service"]["at"] is not None, "that one is the same"
        seen = {"url": "https://other", "ok_at": old}
        links = {each["key"]: each for each in told(known, seen)["chain"]["main"]}
        assert links["address"]["at"] is not None, "the page Set-up tested it before it was saved"
        seen = {"url": "https://mine", "ok_at": now}
        links = {each["key"]: each for each in told(known, seen)["chain"]["main"]}
        assert links["address"]["state"] == "unknown"
        known = await noted(now - 5, base_url="https://b/v2", public_url="https://other")
        answer = told(known)
        assert answer["chain"]["main"][0]["state"] == "unknown"
        assert answer["stores"]["main"]["service"]["last_contact_at"] is None


# -- starts that fail


def test_a_start_that_failed_says_when_and_why(tmp_path: Path) -> None:
    at = 1_795_000_000_000
    note_failed_start(tmp_path, FailedStart(at, "The port is taken by nginx.", "Stop it."))
    file = tmp_path / "bridge.toml"
    told = status_from_ledger(file, tmp_path, {})
    (problem,) = told["problems"]
    assert problem["code"] == "bridge.not_started"
    assert "The port is taken by nginx." in problem["text"]
    assert "could not start at" in told["verdict"]["text"]
    assert problem["fix"] == "Stop it."
    forget_failed_start(tmp_path)
    assert [each["code"] for each in status_from_ledger(file, tmp_path, {})["problems"]] == [
        "bridge.stopped"
    ]


def test_a_start_that_failed_at_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "ledger.lock").mkdir()
    with pytest.raises(LedgerError) as raised:
        LedgerLock(tmp_path)
    note_failed_start(tmp_path, FailedStart(1000, raised.value.text, raised.value.fix))
    noted = failed_start(tmp_path)
    assert noted is not None
    assert str(tmp_path / "ledger.lock") in noted.text


def test_a_start_that_failed_before_the_bridge_last_ran_is_over() -> None:
    facts = BridgeFacts("1", False, {}, stopped_at=2000, failed_start=FailedStart(1000, "no"))
    assert [each["code"] for each in document(facts, 3000)["problems"]] == ["bridge.stopped"]


# -- who has a port


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells")
async def test_who_has_a_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        holder = await asyncio.to_thread(holder_of, server.getsockname()[1])
    assert holder is not None
    assert f"process {os.getpid()}" in holder[0]
    assert holder[1].endswith(f"kill {os.getpid()}")
    assert holder_of(server.getsockname()[1] if server.fileno() >= 0 else 9, tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "text", "fix"),
    [
        (
            ["/usr/bin/python3", "/home/a/.venv/bin/tillbridge", "run"],
            "the bridge of /home/a/shop/bridge.toml, process 12",
            "kill 12",
        ),
        (
            ["python", "-m", "tillbridge", "--config", "/etc/tillbridge/bridge.toml", "run"],
            "the bridge of /etc/tillbridge/bridge.toml, process 12",
            "kill 12",
        ),
        (
            ["python3", "/bin/tillbridge", "--config=/tmp/tillbridge-demo-x1/bridge.toml", "run"],
            "a running demo, process 12",
            "End the demo with Ctrl-C in its terminal, or with kill 7",
        ),
        (
            ["python3", "/bin/tillbridge", "sandbox", "--port", "9000"],
            "the practice service (tillbridge sandbox), process 12",
            "kill 12",
        ),
        (["/usr/sbin/nginx", "-g", "daemon off;"], "nginx, process 12 (nginx daemon off;)", "12"),
        (None, "a program of the user root", "Ask that user to stop it"),
    ],
)
def test_a_program_that_has_a_port_is_described(
    tmp_path: Path, arguments: list[str] | None, text: str, fix: str
) -> None:
    (tmp_path / "net").mkdir()
    row = "  0: 0100007F:1F99 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 777 1"
    (tmp_path / "net/tcp").write_text(f"head\n{row}\n", "ascii")
    if arguments is not None:
        folder = tmp_path / "12"
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to("socket:[777]")
        (folder / "cwd").symlink_to("/home/a/shop")
        (folder / "comm").write_text(f"{Path(arguments[0]).name}\n", "ascii")
        (folder / "stat").write_text("12 (python3 (x)) S 7 12 12 0", "ascii")
        (folder / "cmdline").write_text("\0".join([*arguments, ""]), "ascii")
    holder = holder_of(8089, tmp_path)
    assert holder is not None
    assert holder[0] == text
    assert holder[1].endswith(fix)
    assert holder_of(8088, tmp_path) is None


def test_a_port_that_cannot_be_had_for_another_reason_is_nobodys() -> None:
    refused = OSError(errno.EACCES, "Permission denied")
    assert port_taken(80, "change listen in [receiver]", refused) == (
        "",
        "Change listen in [receiver].",
    )
