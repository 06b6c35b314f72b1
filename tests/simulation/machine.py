"""The machine that the bridge runs on: its clock, disk, threads and network, all simulated.

What the program takes from the system is exchanged at the system's edge (`installed`), so that the
bridge itself is composed and run as always.
"""

import asyncio
import contextlib
import datetime as dt
import json
import logging
import os
import random
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

import aiohttp
import structlog
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey
from apscheduler.executors import base as executors
from apscheduler.schedulers import base as schedulers
from apscheduler.triggers import cron, interval
from multidict import CIMultiDict
from yarl import URL

from tests.simulation import invariants
from tests.simulation import loop as virtual
from tests.simulation.loop import Process, SimQueue, SimThread, VirtualLoop
from tillbridge.config.loading import LoadedSettings, load
from tillbridge.core import scheduler
from tillbridge.daemon.compose import dispatcher_of
from tillbridge.daemon.reload import RestartController
from tillbridge.daemon.watchdog import ServiceManager
from tillbridge.ledger import ledger, sqlite
from tillbridge.ledger.database import LedgerLock
from tillbridge.operations.bridge import Bridge
from tillbridge.pos import call_lane, runner
from tillbridge.pos.watch import FolderEvents
from tillbridge.receiver import Receiver
from tillbridge.service.transport import Transport
from tillbridge.web.listener import HeldAddress

daemon: Any = import_module("tillbridge.daemon.run")  # the package names its function so, too

START_MS = 1_750_000_000_000  # a day in June 2025
LEDGER = ("ledger.db", "ledger.db-wal")
_connect = sqlite3.connect
_LEDGERS = sorted((Path(__file__).parents[1] / "data/ledgers").glob("*.sql"))
_KEEP = ("ledger.db", "ledger.db-wal", "ledger.vault", "ledger.key")


class Clock:
    """Monotonic time is the loop's; the wall clock may jump."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.jumped_s = 0.0

    def wall(self) -> float:
        return START_MS / 1000 + self.loop.now + self.jumped_s

    def iso(self) -> str:
        # The service's clock does not jump.
        at = dt.datetime.fromtimestamp(START_MS / 1000 + self.loop.now, dt.UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


class SimDatetime(dt.datetime):
    """`datetime` whose `now` is the simulated wall clock's."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(time.time(), tz)


# -- the disk


class Disk:
    """What the ledger's writes meet. A commit that has returned is on disk if it was synced."""

    def __init__(self, folder: Path, loop: VirtualLoop) -> None:
        self.folder, self._loop = folder, loop
        self.connections: list[SimConnection] = []
        self.full = False
        self.fails = 0  # so many writes fail with an input/output error
        self.slow_s = 0.0
        self.commits = 0
        self.crash_at: tuple[int, str] | None = None  # number of a commit; "before" or "after"
        self.process: Process | None = None
        self.synced = True  # as the writer's pragmas have it
        self.images: list[dict[str, bytes]] = []
        self.on_fault: Callable[[str], None] = lambda _what: None

    def before_write(self, sql: str, *, commits: bool) -> None:
        if self.full or self.fails:
            self.fails -= 1 if self.fails else 0
            failure = sqlite3.OperationalError(
                "database or disk is full" if self.full else "disk I/O error"
            )
            failure.sqlite_errorcode = sqlite3.SQLITE_FULL if self.full else sqlite3.SQLITE_IOERR
            self.on_fault(f"{failure} at {sql[:30]}")
            raise failure
        if not commits:
            return
        if self.slow_s and virtual._running:
            virtual.sleep(self.slow_s)
        if not self.synced:
            self.images = [*self.images[-3:], self.image()]
        self.commits += 1
        self._crash("before")

    def after_commit(self) -> None:
        self._crash("after")

    def _crash(self, place: str) -> None:
        process = self.process
        if self.crash_at is None or process is None or not process.alive:
            return
        if self.crash_at[1] == place and self.commits >= self.crash_at[0]:
            self.crash_at = None
            self.on_fault(f"the process ends {place} a commit")
            self._loop.crash(process)

    def engines(self) -> list[Any]:
        ledger = self.folder / "ledger.db"
        return [sqlite.writer_engine(ledger), sqlite.reader_engine(ledger)]

    def image(self) -> dict[str, bytes]:
        return {name: path.read_bytes() for name in LEDGER if (path := self.folder / name).exists()}

    def restore(self, image: dict[str, bytes]) -> None:
        for name in (*LEDGER, "ledger.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        for name, content in image.items():
            (self.folder / name).write_bytes(content)


_disk: list[Disk] = []


class SimConnection(sqlite3.Connection):
    """A connection whose writes meet the simulated disk."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.reads_only = False
        self.disk = _disk[-1] if _disk else None
        if self.disk is not None:
            self.disk.connections.append(self)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql.startswith("PRAGMA"):
            if sql == "PRAGMA query_only = ON":
                self.reads_only = True
            elif sql.startswith("PRAGMA journal_mode") and self.disk is not None:
                self.disk.synced = False
            elif sql == "PRAGMA synchronous = FULL" and self.disk is not None:
                self.disk.synced = True
        commits = self._before(sql)
        done = super().execute(sql, *args)
        if commits and self.disk is not None:
            self.disk.after_commit()
        return done

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(SimCursor)

    def _before(self, sql: str) -> bool:
        if self.reads_only or self.disk is None:
            return False
        head = sql[:6].upper()
        commits = head == "COMMIT" or (head == "INSERT" and not self.in_transaction)
        if commits or head in {"INSERT", "UPDATE", "DELETE"}:
            machine = _machines[-1]
            if machine.is_ready and self.disk.process is virtual.OWNER.get():
                thread = virtual._running[-1].name if virtual._running else ""
                invariants.only_the_writer_writes(machine.sim, thread, sql)
            self.disk.before_write(sql, commits=commits)
        return commits


class SimCursor(sqlite3.Cursor):
    def execute(self, sql: str, *args: Any) -> Self:
        connection: Any = self.connection
        commits = connection._before(sql)
        done = super().execute(sql, *args)
        if commits:
            connection.disk.after_commit()
        return done


# -- the network


class Weather:
    """How the network and the service are now; healed, everything gets through."""

    def __init__(self) -> None:
        self.heal()

    def heal(self) -> None:
        self.refused = 0.0  # no connection
        self.lost_request = 0.0  # sent, and never arrived
        self.lost_answer = 0.0  # applied, and never answered
        self.errors = 0.0  # 500, 502 or 503, not applied
        self.gateway = 0.0  # 504, applied or not
        self.garbage = 0.0  # something else answers
        self.slow = 0.0  # takes up to half a minute
        self.webhook_lost = 0.0
        self.webhook_answer_lost = 0.0
        self.webhook_twice = 0.0
        self.webhook_slow = 0.0
        self.down = False
        self.repeated = 0.0  # arrives twice


class Network:
    """Carries requests to the service, and events to the bridge."""

    def __init__(self, sim: Any) -> None:
        self.sim = sim
        self.weather = Weather()
        self.closed_until: dict[Any, float] = {}  # by process: as a 429 had it

    def send(  # noqa: C901 -- one case for each way in which a request is lost
        self, method: str, url: URL, headers: dict[str, str], body: bytes | None
    ) -> asyncio.Future[Any]:
        """Return what will come of a request; what arrives is applied, whoever waits for it."""
        sim, weather = self.sim, self.weather
        rng, loop = sim.noise, sim.loop
        process = virtual.OWNER.get()
        invariants.does_not_hammer(sim, f"{method} {url.path}")
        invariants.waits_as_told(sim, f"{method} {url.path}", self.closed_until.get(process, 0.0))
        outcome = loop.create_future()
        later = rng.uniform(0.003, 0.08)
        if rng.random() < weather.slow:
            later += rng.uniform(1.0, 30.0)

        def end(value: Any) -> None:
            if not outcome.done():  # it does not hear an answer that it no longer waits for
                if isinstance(value, tuple) and value[0] == 429:
                    self.closed_until[process] = loop.now + float(value[1]["Retry-After"])
                if isinstance(value, BaseException):
                    outcome.set_exception(value)
                else:
                    outcome.set_result(value)

        def arrive() -> None:
            if weather.down or rng.random() < weather.refused:
                end(_not_connected())
                return
            if rng.random() < weather.lost_request:
                sim.note("network", what="request lost", call=f"{method} {url.path}")
                reply(aiohttp.ServerDisconnectedError())
                return
            if rng.random() < weather.errors:
                status = rng.choice((500, 502, 503))
                reply((status, {}, {"error": {"code": "internal.error", "message": "."}}))
                return
            if rng.random() < weather.garbage:
                reply((200, {}, "<html>sign in to the network</html>"))
                return
            gateway = rng.random() < weather.gateway
            if not gateway or rng.random() < 0.5:
                answers = [
                    sim.service.answer(
                        method,
                        url.path.removeprefix("/v2/"),
                        headers.get("Authorization", ""),
                        json.loads(body) if body else None,
                    )
                    for _time in range(2 if rng.random() < weather.repeated else 1)
                ]
                answer = rng.choice(answers)
                path = url.path.removeprefix("/v2/pos/")
                sim.called(method, path, answer[0], answer[2])
                if rng.random() < weather.lost_answer:
                    sim.note("network", what="answer lost", call=f"{method} {url.path}")
                    reply(aiohttp.ServerDisconnectedError())
                    return
                if not gateway:
                    reply(answer)
                    return
            reply((504, {}, {"error": {"code": "internal.error", "message": "."}}))

        def reply(value: Any) -> None:
            loop.call_later(rng.uniform(0.003, 0.05), end, value, context=sim.world.context)

        loop.call_later(later, arrive, context=sim.world.context)
        return outcome


@cache
def _key() -> ConnectionKey:
    return ConnectionKey("127.0.0.1", 9000, False, True, None, None, None)


def _not_connected() -> Exception:
    return aiohttp.ClientConnectorError(_key(), OSError(111, "refused"))


class SimSession:
    """An `aiohttp.ClientSession` of the simulated machine."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def request(
        self,
        method: str,
        url: URL,
        *,
        data: Any = None,
        headers: Any = None,
        allow_redirects: bool = True,
        timeout: aiohttp.ClientTimeout,
    ) -> "_Exchange":
        return _Exchange(self._network, method, url, dict(headers or {}), data, timeout)

    async def close(self) -> None:
        pass


class _Exchange:
    def __init__(
        self,
        network: Network,
        method: str,
        url: URL,
        headers: dict[str, str],
        data: Any,
        timeout: aiohttp.ClientTimeout,
    ) -> None:
        self._network, self._method, self._url = network, method, url
        self._headers, self._data, self._timeout = headers, data, timeout

    async def __aenter__(self) -> Any:
        body = None if self._data is None else self._data.read()
        async with asyncio.timeout(self._timeout.total):
            status, headers, answer = await self._network.send(
                self._method, self._url, self._headers, body
            )
        raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()

        async def pieces() -> Any:
            yield raw

        return SimpleNamespace(
            status=status,
            headers=CIMultiDict(headers),
            content=SimpleNamespace(iter_any=pieces),
            close=lambda: None,
        )

    async def __aexit__(self, *_how: object) -> None:
        pass


class SimRequest:
    """A request as the receiver's handler gets it."""

    method = "POST"
    query: dict[str, str] = {}  # noqa: RUF012 -- never written
    content_type = "application/json"

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = CIMultiDict({"Content-Type": "application/json", **headers})
        self.content_length = len(body)
        self.protocol = SimpleNamespace(trusted=False)
        self.content = SimpleNamespace(is_eof=lambda: True, read_nowait=lambda: body)


# -- the bridge as a process


class SimDaemon(daemon._Daemon):  # type: ignore[misc]  # Any, as its module
    """The daemon without sockets."""

    async def _open_page(self, opened: Any, address: HeldAddress) -> str:
        return "http://127.0.0.1:8089"

    @contextlib.asynccontextmanager
    async def serving(self, address: HeldAddress) -> Any:
        async with super().serving(address):
            machine = _machines[-1]
            machine.bridge, machine.receiver = self._bridge, self._receiver
            machine.connections = self._connections
            machine.reload = self._reloading.wake
            machine.is_ready, machine.ready_at = True, machine.loop.now
            try:
                yield
            finally:
                machine.is_ready = False


class _Ended(BaseException):
    """The process that the task belongs to has crashed."""


_machines: list["Machine"] = []
_loaded: dict[str, LoadedSettings] = {}


class Machine:
    """One bridge on one machine: started, crashed, restarted."""

    def __init__(self, loop: VirtualLoop, folder: Path, config: str, sim: Any) -> None:
        self.loop, self.folder, self.config, self.sim = loop, folder, config, sim
        self.disk = Disk(folder / "data", loop)
        self.process: Process | None = None
        self.task: asyncio.Task[Any] | None = None
        self.bridge: Bridge | None = None
        self.receiver: Receiver | None = None
        self.connections: Any = None
        self.reload: Callable[[], None] = lambda: None
        self.is_ready = False
        self.ready_at = 0.0
        self.locks: list[LedgerLock] = []
        self.starts = 0
        self.restarts: RestartController | None = None
        self._reader: sqlite3.Connection | None = None

    def start(self) -> None:
        """Begin the program."""
        self.starts += 1
        self.process = self.disk.process = Process(f"bridge-{self.starts}")
        self.task = self.loop.create_task(self._live(), context=self.process.context.copy())

    async def _live(self) -> None:
        self.restarts = RestartController()
        self.restarts.begin()
        try:
            self.write_settings(self.config)
            await self._run(self.restarts)
        except Exception as failure:  # noqa: BLE001 -- the program ends with it
            self.sim.ended(self, failure)
        else:
            self.sim.ended(self, None)

    def write_settings(self, text: str) -> None:
        """Let somebody write the file, and tell the bridge."""
        (self.folder / "bridge.toml").write_text(text)
        if self.running:
            self.reload()

    async def _run(self, restarts: RestartController) -> None:
        path = self.folder / "bridge.toml"
        key = f"{path} {self.config}"
        if key not in _loaded:
            _loaded[key] = load(path)
        await daemon.live(_loaded[key], restarts, HeldAddress(), ServiceManager())

    async def start_second(self) -> BaseException | None:
        """Start another bridge by mistake; return why it ended, None where it goes on."""
        process, restarts = Process("second"), RestartController()
        restarts.begin()
        task = self.loop.create_task(self._run(restarts), context=process.context.copy())
        await asyncio.wait({task}, timeout=2.0)
        failure = task.exception() if task.done() else None
        process.alive = False
        process.context.run(self._kill, process)
        return failure

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive and self.is_ready

    def stop(self) -> None:
        """Ask the program to end, as SIGTERM does."""
        if self.running and self.restarts is not None:
            self.restarts.stop()

    def end(self, *, power_cut: bool = False) -> None:
        """Clear up after a crash: what was on disk stays, all else is gone."""
        process = self.process
        assert process is not None
        process.alive = False
        image = self.disk.image()
        if power_cut and self.disk.images:
            image = self.disk.images[0]
        self.disk.images.clear()
        process.context.run(self._kill, process)
        self._close_files()
        self.disk.restore(image)
        self.is_ready = False
        self.process = self.disk.process = None
        self.bridge = self.receiver = None

    def _kill(self, process: Process) -> None:
        while process.tasks:  # what is cut off may begin others
            task, _none = process.tasks.popitem()
            setattr(task, "_log_destroy_pending", False)  # noqa: B010 -- asyncio's own, without a type
            with contextlib.suppress(BaseException):
                for _await in range(100):  # what stands in a `finally` may wait, too
                    task.coro.throw(_Ended())
        for thread in list(process.threads):
            thread.kill()
        process.threads.clear()

    def ended(self) -> None:
        """Clear up after an end in order."""
        if self.process is not None:
            self.process.alive = False
            self.process.context.run(self._kill, self.process)
        self._close_files()
        self.is_ready = False
        self.process = self.disk.process = None
        self.bridge = self.receiver = None

    def _close_files(self) -> None:
        for engine in self.disk.engines():
            engine.dispose()
        for connection in self.disk.connections:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self.disk.connections.clear()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        for lock in self.locks:
            lock.release()
        self.locks.clear()

    def change_version(self, *, is_newer: bool) -> None:
        """Let the ledger be as another version leaves it: the one before ours, or one to come."""
        path = self.folder / "data" / "ledger.db"
        self._close_files()  # of whoever has looked meanwhile
        if is_newer:
            with contextlib.closing(_connect(path, isolation_level=None)) as ledger:
                ledger.execute("UPDATE alembic_version SET version_num = '9999'")
            return
        older = path.with_name("older.db")
        with contextlib.closing(_connect(older, isolation_level=None)) as ledger:
            ledger.executescript(_LEDGERS[-2].read_text("utf-8"))
            ledger.execute("ATTACH ? AS now", (str(path),))
            tables = ledger.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
            for (table,) in tables.fetchall():
                if table != "alembic_version":
                    names = [each[1] for each in ledger.execute(f"PRAGMA main.table_info({table})")]
                    columns = ", ".join(names)
                    ledger.executescript(
                        f"DELETE FROM main.{table}; INSERT INTO main.{table} ({columns})"
                        f" SELECT {columns} FROM now.{table}"
                    )
        for name in (*LEDGER[1:], "ledger.db-shm"):
            path.with_name(name).unlink(missing_ok=True)
        older.replace(path)
        path.chmod(0o600)

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """Read the ledger as it is committed."""
        if self._reader is None:
            self._reader = _connect(self.folder / "data" / "ledger.db", isolation_level=None)
        return self._reader.execute(sql, parameters).fetchall()

    async def deliver(self, headers: dict[str, str], body: bytes) -> int:
        """Bring a delivery to the receiver; 0 where nobody answers."""
        process, receiver = self.process, self.receiver
        if process is None or receiver is None or not self.running:
            return 0
        request: Any = SimRequest("/webhooks/main", headers, body)
        status: asyncio.Future[int] = self.loop.create_future()

        async def handle() -> None:
            answer: web.StreamResponse = await receiver._handle(request)
            if not status.done():
                status.set_result(answer.status)

        task = self.loop.create_task(handle(), context=process.context.copy())
        try:
            async with asyncio.timeout(10.0):
                while not status.done() and process.alive and not task.done():
                    await asyncio.wait({status}, timeout=0.5)
        except TimeoutError:
            return 0
        if task.done() and not task.cancelled() and task.exception() is not None:
            self.sim.violated("12 supervised", f"the receiver raised {task.exception()!r}")
        return status.result() if status.done() else 0

    async def perform(self, name: str, arguments: dict[str, Any], actor: Any) -> Any:
        """Let a person do an operation at the page; raises what it raises."""
        process, bridge = self.process, self.bridge
        if process is None or bridge is None or not self.running:
            return None
        task = self.loop.create_task(
            dispatcher_of(bridge).perform(name, arguments, actor),
            context=process.context.copy(),
        )
        while not task.done() and process.alive:
            await asyncio.wait({task}, timeout=0.5)
        return task.result() if task.done() else None


class _Lock(LedgerLock):
    waits_s = 0.0  # of real time

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        _machines[-1].locks.append(self)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Exchange what the program takes from the system, for this process."""
    structlog.configure(
        processors=[_log],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=lambda *_: None,
        cache_logger_on_first_use=False,
    )

    async def receive(self: Receiver) -> None:
        for path in self._paths:
            await self.refresh(path)
        self.port = 8088

    async def forever(self: FolderEvents) -> None:
        await asyncio.get_running_loop().create_future()

    def session(self: Transport) -> Any:
        self._session = SimSession(_machines[-1].sim.network)  # type: ignore[assignment]  # stands in
        return self._session

    noise = random.Random(0)
    threads = SimpleNamespace(Thread=SimThread)
    patches: list[Any] = [
        patch.object(
            sqlite3, "connect", lambda *a, **k: _connect(*a, **{"factory": SimConnection, **k})
        ),
        patch.object(sqlite, "_engine", cache(sqlite._engine)),  # statements stay compiled
        patch.object(ledger, "threading", threads),
        patch.object(ledger, "SimpleQueue", SimQueue),
        patch.object(ledger, "LedgerLock", _Lock),
        patch.object(call_lane.POOL, "run", lambda work: SimThread(target=work).start()),
        patch.object(runner, "wait", virtual.wait_in_loop),
        patch.object(daemon, "_Daemon", SimDaemon),
        patch.object(daemon, "set_level", lambda _level: None),
        patch.object(Receiver, "start", receive),
        patch.object(FolderEvents, "run", forever),
        patch.object(Transport, "_opened", session),
        patch.object(os, "fsync", lambda _file: None),
        patch.object(secrets, "token_bytes", noise.randbytes),
        patch.object(secrets, "token_hex", lambda n=32: noise.randbytes(n).hex()),
        patch.object(secrets, "token_urlsafe", lambda n=32: noise.randbytes(n).hex()),
        patch.object(time, "time", lambda: _clocks[-1].wall() + 0.0),
        patch.object(time, "time_ns", lambda: int(_clocks[-1].wall() * 1e9)),
        patch.object(time, "monotonic", lambda: _clocks[-1].loop.now),
        patch.object(time, "monotonic_ns", lambda: int(_clocks[-1].loop.now * 1e9)),
        patch.object(time, "perf_counter", lambda: _clocks[-1].loop.now),
    ]
    dated = (executors, schedulers, cron, interval, scheduler, runner)
    patches += [patch.object(module, "datetime", SimDatetime) for module in dated]
    with contextlib.ExitStack() as stack:
        logging.disable(logging.CRITICAL)  # what libraries say of a process that has ended
        stack.callback(logging.disable, logging.NOTSET)
        for each in patches:
            stack.enter_context(each)
        yield


_clocks: list[Clock] = []


def _log(_logger: Any, _name: str, event: Any) -> Any:
    if _machines:
        _machines[-1].sim.logged(event)
    raise structlog.DropEvent


def clear(folder: Path) -> None:
    """Make an empty data folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)


def template_of(folder: Path) -> dict[str, bytes]:
    """Return a machine's own files, so that another one may begin with them."""
    return {name: path.read_bytes() for name in _KEEP if (path := folder / "data" / name).exists()}
