"""The installed package under a real systemd: killed, hung, stopped, rebooted, updated; no order
is lost, and none is written twice."""

import asyncio
import itertools
import re
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.bridge_process import until
from tests.support.machine import Chroot, Machine, booted, build_package, fresh_root, needs
from tests.support.world import SECRET, World, make_world
from tillbridge import ledger_schemas

pytestmark = pytest.mark.timeout(900)

CONFIG = "etc/tillbridge/bridge.toml"
DATA = "var/lib/tillbridge"
POS = "/srv/pos"


@pytest.fixture(scope="module")
def pos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tills, which the machine sees as /srv/pos."""
    folder = tmp_path_factory.mktemp("pos")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, pos: Path) -> Iterator[Machine]:
    """A Debian with the package, booted."""
    needs("systemd-nspawn", "mmdebstrap", "nsenter", "dpkg-deb")
    folder = tmp_path_factory.mktemp("machine")
    root = fresh_root(folder)
    package = build_package(folder, version="0.1.0")
    (root / "srv/pos").mkdir()
    Chroot(root).install(package)
    secret = root / "etc/tillbridge/credentials/client_secret"
    secret.write_text(SECRET + "\n", "utf-8")
    secret.chmod(0o600)
    with booted(root, folder / "console.log", (f"{pos}:{POS}",)) as running:
        yield running


numbers = itertools.count()


class Harness:
    """A shop whose bridge runs as the service of the machine."""

    def __init__(self, machine: Machine, world: World, unit: str) -> None:
        self.machine = machine
        self.world = world
        self.unit = unit

    def systemctl(self, *arguments: str, ok: bool = True) -> str:
        """Ask systemd."""
        return self.machine.run("systemctl", *arguments, ok=ok).stdout.strip()

    @property
    def pid(self) -> str:
        """The bridge's process id in the machine; "0" while it does not run."""
        return self.systemctl("show", "-p", "MainPID", "--value", self.unit)

    def is_active(self) -> bool:
        """Whether it is ready to take orders."""
        return self.systemctl("is-active", self.unit, ok=False) == "active"

    async def is_back(self, *, instead_of: str, within_s: float) -> None:
        """Wait until another process than that one serves."""
        await until(
            "the bridge is back",
            lambda: self.is_active() and self.pid not in {instead_of, "0"},
            within_s=within_s,
        )

    async def connect(self, config: str) -> None:
        """Connect the store, as the technician's command in the machine and the merchant here."""
        process = await asyncio.create_subprocess_exec(
            *self.machine.command(
                "tillbridge", "--config", config, "connect", "main", "--no-browser"
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        told = ""
        async with asyncio.timeout(60):
            while line := (await process.stdout.readline()).decode():
                told += line
                if line.startswith("Open: "):
                    async with self.world.http.get(line.removeprefix("Open: ").strip()) as page:
                        told += await page.text()
            assert await process.wait() == 0, told

    async def all_written_once(self, orders: list[str]) -> None:
        """Let the service deliver again what it could not; each order has one ticket then."""
        for order in orders:
            if order not in self.world.till.tickets():
                await self.world.control(
                    "webhooks/redeliver", {"order_id": order, "mode": "same", "wait": True}
                )
        for order in orders:
            await self.world.reaches(order, "accepted", within_s=40)
        assert self.world.till.tickets() == sorted(orders)
        sent = list((self.world.till.orders / ".tillbridge").glob("*.sent"))
        assert len(sent) == len(orders)


@asynccontextmanager
async def opened(
    machine: Machine, pos: Path, *, unit: str = "tillbridge", place: str = ""
) -> AsyncIterator[Harness]:
    """Open a shop on the machine: a till's folder, a service here, a bridge there."""
    name = f"shop{next(numbers)}"
    async with make_world(pos / name) as world:
        world.folder.chmod(0o755)
        for folder in (world.till.orders, world.till.updates):
            folder.chmod(0o777)
        text = world.config.read_text("utf-8")
        for old, new in (
            ('data_dir = "data"', f'data_dir = "/{DATA}{place}"'),
            ('{ env = "BRIDGE_SECRET" }', '{ credential = "client_secret" }'),
            ('"export/menu.csv"', f'"{POS}/{name}/export/menu.csv"'),
            ('"orders"', f'"{POS}/{name}/orders"'),
            ('"updates"', f'"{POS}/{name}/updates"'),
        ):
            assert old in text
            text = text.replace(old, new)
        harness = Harness(machine, world, unit)
        harness.systemctl("stop", unit)
        machine.run("sh", "-c", f"rm -rf /{DATA}{place}/*")
        config = machine.root / f"etc/tillbridge{place}/bridge.toml"
        config.write_text(text, "utf-8")
        # It opens the folders of this till for the service.
        machine.run(
            *("tillbridge", "--config", f"/etc/tillbridge{place}/bridge.toml"),
            *("service", "install", "--no-start", "--name", unit.partition("@")[2]),
        )
        harness.systemctl("start", unit)
        try:
            await harness.connect(f"/etc/tillbridge{place}/bridge.toml")
            await world.menu_is_on_sale()
            yield harness
        except BaseException as failure:
            told = machine.run("journalctl", "-u", unit, "-n", "60", "-o", "cat", ok=False).stdout
            failure.add_note(told)
            raise
        finally:
            harness.systemctl("stop", unit, ok=False)


@pytest.fixture
async def harness(machine: Machine, pos: Path) -> AsyncIterator[Harness]:
    async with opened(machine, pos) as made:
        yield made


async def test_it_is_active_once_it_takes_orders_and_reads_its_credentials(
    harness: Harness,
) -> None:
    world = harness.world
    harness.systemctl("restart", harness.unit)  # returns when the bridge has told that it is ready
    for port in (world.receiver_port, world.page_port):
        async with world.http.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
    assert "Serving main" in harness.systemctl("status", harness.unit)
    await harness.all_written_once([await world.order("p1")])
    data = harness.machine.root / DATA
    assert (data / "ledger.vault").exists()
    assert not (data / "ledger.key").exists(), "the key came as a credential"


async def test_the_journal_has_the_priority_of_each_line(harness: Harness) -> None:
    harness.machine.run("kill", "-STOP", harness.pid)
    harness.machine.run("kill", "-CONT", harness.pid)
    ready = harness.machine.run(
        *("journalctl", "-u", harness.unit, "-o", "json", "--output-fields=PRIORITY,MESSAGE"),
        *("--grep", "bridge.ready", "-n", "1"),
    ).stdout
    assert '"PRIORITY":"6"' in ready
    assert '"MESSAGE":"{' in ready, "the mark of the priority is not part of the message"
    worse = harness.machine.run(
        "journalctl", "-u", harness.unit, "-p", "warning", "-o", "cat"
    ).stdout
    assert "bridge.ready" not in worse


async def test_killed_in_the_middle_of_orders_it_comes_back_by_itself(harness: Harness) -> None:
    orders = [await harness.world.order("p1", wait=False) for _ in range(5)]
    before = harness.pid
    harness.machine.run("kill", "-KILL", before)
    await harness.is_back(instead_of=before, within_s=15)
    await harness.all_written_once(orders)


async def test_hung_it_is_back_within_fifteen_seconds(harness: Harness) -> None:
    first = await harness.world.order("p1")
    before, began = harness.pid, time.monotonic()
    harness.machine.run("kill", "-STOP", before)
    meanwhile = await harness.world.order("p2", wait=False)
    await harness.is_back(instead_of=before, within_s=15)
    assert time.monotonic() - began <= 15
    assert "watchdog" in harness.machine.run("journalctl", "-u", harness.unit, "-n", "200").stdout
    await harness.all_written_once([first, meanwhile])


async def test_stopped_in_the_middle_of_orders_it_ends_in_time_and_takes_them_up(
    harness: Harness,
) -> None:
    orders = [await harness.world.order("p1", wait=False) for _ in range(5)]
    began = time.monotonic()
    harness.systemctl("stop", harness.unit)
    assert time.monotonic() - began < 10
    assert harness.systemctl("show", "-p", "Result", "--value", harness.unit) == "success"
    orders.append(await harness.world.order("p2", wait=False))
    harness.systemctl("start", harness.unit)
    await harness.all_written_once(orders)


async def test_rebooted_it_starts_with_the_machine(harness: Harness) -> None:
    assert harness.systemctl("is-enabled", harness.unit) == "enabled"
    orders = [await harness.world.order("p1", wait=False) for _ in range(3)]
    before = harness.machine.first_process
    harness.systemctl("reboot", ok=False)
    await until(
        "the machine is up again",
        lambda: harness.machine.is_up() and harness.machine.first_process != before,
        within_s=90,
    )
    await until("the bridge is active", harness.is_active, within_s=30)
    await harness.all_written_once(orders)


async def test_it_may_write_its_data_and_the_tills_folders_and_nothing_else(
    harness: Harness,
) -> None:
    inside = ("nsenter", "-t", harness.pid, "-m", "--")
    shop = f"{POS}/{harness.world.folder.name}"
    for place in (f"/{DATA}", f"{shop}/orders", f"{shop}/updates", "/tmp"):
        harness.machine.run(*inside, "touch", f"{place}/may-be-written")
    for place in ("/usr", "/etc/tillbridge", "/var/lib", "/var/log", "/srv", f"{shop}/export"):
        done = harness.machine.run(*inside, "touch", f"{place}/may-not-be-written", ok=False)
        assert "Read-only file system" in done.stderr, place
    assert harness.machine.run(*inside, "ls", "-A", "/home").stdout == ""


async def test_it_reads_its_configuration_anew_when_asked(harness: Harness) -> None:
    before = harness.pid
    config = harness.machine.root / CONFIG
    text = config.read_text("utf-8")
    config.write_text(text.replace("retry_s = 0.2", "retry_s = 0.4"), "utf-8")
    harness.systemctl("reload", harness.unit)
    await harness.world.problem("config.restart_needed")
    assert harness.pid == before


async def test_the_nightly_back_up_can_be_put_back(harness: Harness) -> None:
    first = await harness.world.order("p1")
    await harness.world.reaches(first, "accepted")
    harness.systemctl("start", "tillbridge-backup.service")
    second = await harness.world.order("p2")
    await harness.world.reaches(second, "accepted")
    harness.systemctl("stop", harness.unit)
    (saved,) = (harness.machine.root / DATA / "backups").glob("*.db")
    assert saved.stat().st_uid == (harness.machine.root / DATA).stat().st_uid
    harness.machine.run("tillbridge", "restore", "--yes")
    harness.systemctl("start", harness.unit)
    for order in (first, second):
        await harness.world.control(
            "webhooks/redeliver", {"order_id": order, "mode": "new_event_id", "wait": True}
        )
    await harness.all_written_once([first, second])


async def test_updated_while_it_serves_it_goes_on_in_the_new_version(
    harness: Harness, tmp_path: Path
) -> None:
    orders = [await harness.world.order("p1", wait=False) for _ in range(3)]
    newer = build_package(tmp_path, version="0.1.1")
    Path(harness.machine.root / "newer.deb").write_bytes(newer.read_bytes())
    before = harness.pid
    harness.machine.run("dpkg", "--install", "/newer.deb")
    await harness.is_back(instead_of=before, within_s=30)
    orders.append(await harness.world.order("p2"))
    await harness.all_written_once(orders)


MIGRATION = """
revision = "9999"
down_revision = "{last}"


def upgrade() -> None:
    raise RuntimeError("this version cannot take any ledger over")
"""


def with_a_migration_that_fails(package: Path) -> None:
    """Make it a package whose program cannot bring any ledger to its version."""
    root = package.parent / "unpacked"
    subprocess.run(["dpkg-deb", "-R", str(package), str(root)], check=True)
    versions = root / "usr/lib/tillbridge/site/tillbridge/ledger/migrations/versions"
    text = MIGRATION.format(last=ledger_schemas()[-1])
    (versions / "9999_in_the_way.py").write_text(text, "utf-8")
    subprocess.run(["dpkg-deb", "-b", "-Zgzip", "-z1", str(root), str(package)], check=True)


async def test_after_an_update_that_fails_the_version_before_serves(
    harness: Harness, tmp_path: Path
) -> None:
    newer = build_package(tmp_path, version="0.1.2")
    with_a_migration_that_fails(newer)
    Path(harness.machine.root / "newer.deb").write_bytes(newer.read_bytes())
    orders = [await harness.world.order("p1", wait=False) for _ in range(3)]
    before = harness.pid
    done = harness.machine.run("dpkg", "--install", "/newer.deb", ok=False)
    assert done.returncode != 0
    assert "goes on with it" in done.stderr
    await harness.is_back(instead_of=before, within_s=30)
    libraries = harness.machine.run(
        "grep", "-o", "/usr/lib/tillbridge/[a-z]*/", f"/proc/{harness.pid}/maps"
    )
    assert {*libraries.stdout.split()} == {"/usr/lib/tillbridge/previous/"}
    orders.append(await harness.world.order("p2"))
    await harness.all_written_once(orders)
    mended = build_package(tmp_path, version="0.1.3")
    Path(harness.machine.root / "newer.deb").write_bytes(mended.read_bytes())
    harness.machine.run("dpkg", "--install", "/newer.deb")
    assert not (harness.machine.root / "usr/lib/tillbridge/rolled-back").exists()
    orders.append(await harness.world.order("p2"))
    await harness.all_written_once(orders)


async def test_a_folder_of_the_till_that_the_service_may_not_write_is_told_with_what_to_do(
    harness: Harness,
) -> None:
    drop_in = harness.machine.root / "etc/systemd/system/tillbridge.service.d"
    shutil.rmtree(drop_in)
    harness.systemctl("daemon-reload")
    harness.systemctl("restart", harness.unit)
    await harness.world.problem("pos.offline")
    assert "service install" in str((await harness.world.status())["problems"])
    harness.machine.run("tillbridge", "service", "install")  # while it runs
    await harness.all_written_once([await harness.world.order("p1")])


async def test_prometheus_hears_of_the_process_from_within_its_walls(harness: Harness) -> None:
    page = f"http://127.0.0.1:{harness.world.page_port}"
    async with harness.world.http.get(f"{page}/metrics") as answer:
        told = await answer.text()
    (began,) = re.findall(r"^process_start_time_seconds (\S+)$", told, re.MULTILINE)
    assert 0 < time.time() - float(began) < 600


async def test_the_service_is_shown_and_taken_off(harness: Harness) -> None:
    shown = harness.machine.run("tillbridge", "service", "status").stdout
    assert "tillbridge.service: active (running), enabled at start" in shown
    harness.machine.run("tillbridge", "service", "uninstall")
    assert harness.machine.run("tillbridge", "service", "status", ok=False).returncode == 1
    drop_in = harness.machine.root / "etc/systemd/system/tillbridge.service.d"
    assert not drop_in.exists()
    assert (harness.machine.root / DATA / "ledger.db").exists()


async def test_a_second_bridge_runs_beside_the_first(
    harness: Harness, machine: Machine, pos: Path
) -> None:
    folder = machine.root / "etc/tillbridge/bridges/second"
    (folder / "credentials").mkdir(parents=True)
    (folder / "credentials/client_secret").write_text(SECRET + "\n", "utf-8")
    async with opened(machine, pos, unit="tillbridge@second", place="/bridges/second") as another:
        await another.all_written_once([await another.world.order("p1")])
        await harness.all_written_once([await harness.world.order("p2")])
        assert (machine.root / DATA / "bridges/second/ledger.db").exists()
