"""Spawn to the first durable 200, memory and idle processor time of the real program.

Its modules are compiled beforehand, as the libraries' are by pip, and its own by a package.
"""

import asyncio
import compileall
import contextlib
import hmac
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tillbridge
from bench.measure import Bench, Measured, Options, Result, Skipped
from tillbridge.core.clock import Clock
from tillbridge.ledger.ledger import Ledger

_SECRET = "whsec_bench"
_SETTLED_AFTER_S = 5.0
_MIB = 1024 * 1024
HAS_PROC = Path("/proc/self/task").exists()


def run(options: Options) -> Iterator[Result]:
    """Start the program several times beside processes that only import; then let it idle.

    One imports the same modules, the bridge's own among them: what is above it is what starting
    does. Another one imports the libraries alone, which nobody can be faster than.
    """
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as name:
        services = Harness(Path(name))
        compileall.compile_dir(Path(tillbridge.__file__).parent, quiet=1)
        modules = services.imported()
        libraries = [name for name in modules if not name.startswith("tillbridge")]
        starts, same, others = [], [], []
        for _ in range(options.rounds):
            same.append(_import(modules)[:2])
            others.append(_import(libraries)[:2])
            starts.append(services.time_to_first_200())
        for place, what in enumerate(("", ", processor time")):
            # The least of each: whatever else runs on the machine only adds to it.
            spent, alone, of_others = (
                min(e[place] for e in each) for each in (starts, same, others)
            )
            aim = 1.1 if place else None
            yield Measured(f"spawn to the first durable 200{what}", spent, "s")
            for count, took, bound in (
                (len(modules), alone, aim),
                (len(libraries), of_others, None),
            ):
                whose = "the same" if took is alone else "the libraries'"
                yield Measured(
                    f"first 200 beside importing {whose} {count} modules{what}",
                    spent / took,
                    bound="at most",
                    aim=bound,
                    note=f"({took:.2f} s)",
                )
        if not HAS_PROC:
            yield Skipped("memory and idle processor time", "read from /proc, which is Linux")
            return
        yield from services.idle(60 if options.long else 15, beside=_import(modules)[2])


class Harness:
    """A configuration in a folder, for tills that are off and a service that is not there.

    The stores are `main`, and as many more as `stores` says.
    """

    def __init__(self, folder: Path, stores: int = 1) -> None:
        self._folder = folder
        self._port = _free_port()
        self.stores = ["main", *(f"store{number}" for number in range(2, stores + 1))]
        for store in self.stores:
            for each in ("export", "orders", "updates"):
                (folder / store / each).mkdir(parents=True)
            menu = folder / store / "export" / "menu.csv"
            menu.write_text("external_id,name,price\nb,Burger,9.50\n")
        self._config = folder / "bridge.toml"
        self._config.write_text(
            f"""
            [bridge]
            data_dir = "{(folder / "data").as_posix()}"
            log_format = "json"
            [service]
            base_url = "http://127.0.0.1:{_free_port()}/v2"
            client_id = "app_bench"
            client_secret = "bench"
            redirect_uri = "http://127.0.0.1:{_free_port()}/oauth/callback"
            [receiver]
            listen = "127.0.0.1:{self._port}"
            public_url = "https://store.example"
            [status_page]
            listen = "127.0.0.1:0"
            """
            + "".join(map(_store, self.stores))
        )
        asyncio.run(self._put_secret())

    def imported(self) -> list[str]:
        """Return the modules that the daemon imports, in order."""
        with self._running("-X", "importtime") as process:
            self._first_200(process)
            process.terminate()
            process.wait(20)
        found = re.findall(r"^import time:.*\| +(\S+)$", self._log.read_text("utf-8"), re.MULTILINE)
        return [name for name in found if not name.startswith(("_frozen", "__"))]

    def time_to_first_200(self) -> tuple[float, float]:
        """Return the seconds from the spawn to the first delivery that is acknowledged.

        Beside them the processor time, which a machine that others use too changes less.
        """
        started = time.perf_counter()
        with self._running() as process:
            self._first_200(process)
            return time.perf_counter() - started, processor_s(process.pid)

    def idle(self, seconds: float, *, beside: float) -> Iterator[Measured]:
        """Measure memory and processor time while nothing happens.

        `beside`: the memory (MiB) of a process that only imports the same modules.
        """
        seen = self.at_rest(seconds)
        yield Measured("resident memory", seen.resident, "MiB", "at most", 120)
        yield Measured(
            "resident memory, beside the imports alone",
            seen.resident / beside,
            bound="at most",
            aim=1.15,
        )
        what = f"processor time, {seconds:g} s of idling"
        yield Measured(what, seen.processor, "%", "at most", 0.2)

    def at_rest(self, seconds: float, settled_after_s: float = _SETTLED_AFTER_S) -> "AtRest":
        """Start it, let it settle, and watch it for so many seconds."""
        began = time.perf_counter()
        with self._running() as process:
            self._first_200(process)
            while b'"bridge.ready"' not in self._log.read_bytes():
                time.sleep(0.01)
            ready_s, ready_processor_s = time.perf_counter() - began, processor_s(process.pid)
            time.sleep(settled_after_s)
            if process.poll() is not None:
                raise RuntimeError(self._log.read_text("utf-8", "replace")[-3000:])
            before = processor_s(process.pid)
            time.sleep(seconds)
            return AtRest(
                ready_s,
                ready_processor_s,
                100 * (processor_s(process.pid) - before) / seconds,
                _resident(process.pid),
                len(list(Path(f"/proc/{process.pid}/task").iterdir())),
            )

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    @contextlib.contextmanager
    def _running(self, *python: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [
            sys.executable,
            *python,
            "-m",
            "tillbridge",
            "--config",
            str(self._config),
            "run",
        ]
        with self._log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _first_200(self, process: subprocess.Popen[bytes]) -> None:
        number = time.monotonic_ns()
        body = json.dumps({"event_type": "bench", "event_id": f"evt_{number}", "data": {}}).encode()
        headers = {
            "Content-Type": "application/json",
            "X-Service-Signature": hmac.digest(_SECRET.encode(), body, "sha256").hex(),
        }
        deadline = time.monotonic() + 60
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            with contextlib.closing(connection), contextlib.suppress(ConnectionError):
                connection.request("POST", "/webhooks/main", body, headers)
                if connection.getresponse().status == 200:
                    return
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self._log.read_text("utf-8", "replace")[-3000:])
            time.sleep(0.002)

    async def _put_secret(self) -> None:
        ledger = await Ledger.open(self._folder / "data", clock=Clock())
        secrets = [{"secret": _SECRET, "since_ms": 0}]
        ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        await ledger.close()


@dataclass(frozen=True, slots=True)
class AtRest:
    """What the daemon takes of a machine, and how it started.

    `processor` is in percent of a core, `resident` in MiB; `ready_processor_s` is the processor
    time until it was ready, which a machine that others use too does not change.
    """

    ready_s: float
    ready_processor_s: float
    processor: float
    resident: float
    threads: int


def _store(name: str) -> str:
    return f"""
            [stores.{name}]
            location_id = "loc-{name}"
            currency = "USD"
            [stores.{name}.pos]
            adapter = "folder"
            menu = "{name}/export/menu.csv"
            orders_dir = "{name}/orders"
            updates_dir = "{name}/updates"
            """


_IMPORT_ALL = """
import gc, sys
gc.disable()  # as the bridge does while it starts
from importlib import import_module
for name in sys.stdin.readline().split():
    try:
        import_module(name)
    except ImportError:
        pass
print("done", flush=True)
sys.stdin.readline()
"""


def _import(libraries: list[str]) -> tuple[float, float, float]:
    """Return what importing takes: time and processor time (s), and memory (MiB, Linux)."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", _IMPORT_ALL], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(" ".join(libraries).encode() + b"\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != b"done":
            raise RuntimeError("the process that only imports has failed")
        seconds = time.perf_counter() - started
        return seconds, processor_s(process.pid), _resident(process.pid) if HAS_PROC else 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processor_s(pid: int) -> float:
    """Return the processor time of all its threads, in seconds; to the nanosecond (0: no Linux)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


BENCH = Bench("footprint", "start, memory and idle processor time of the daemon", run)
