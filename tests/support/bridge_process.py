"""The real program as a process: start it, read its log, kill it, ask it."""

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, overload

from tests.support.fork_server import PROGRAM, Daemon, can_fork, run

T = TypeVar("T")


# Below the ports that the system gives to connections: one of those may be taken again at once.
# Each worker of pytest has its own, or two would choose the same one in the same moment.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = range(12_000 + _WORKER, 20_000, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
# Of the system's chance: tests seed the other, and would all begin with the same ports.
_chosen = itertools.cycle(random.SystemRandom().sample(_PORTS, len(_PORTS)))


def free_port() -> int:
    """Return a loopback port that nobody listens on, and that was not returned before."""
    for port in itertools.islice(_chosen, len(_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@overload
async def until(
    what: str, look: Callable[[], Coroutine[Any, Any, T]], *, within_s: float = 60
) -> T: ...


@overload
async def until(what: str, look: Callable[[], T], *, within_s: float = 60) -> T: ...


async def until(what: str, look: Callable[[], object], *, within_s: float = 60) -> object:
    """Return what `look` (a function, or one that gives an awaitable) gives once it is true.

    The deadline is for what never comes: on a busy machine, everything takes its time.
    """
    deadline, pause_s = time.monotonic() + within_s, 0.01
    while True:
        seen = look()
        if inspect.isawaitable(seen):
            seen = await seen
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.1, 0.1)  # the bridge, too, works for each look


class BridgeProcess:
    """`tillbridge run` with a configuration; its log is a file of JSON lines."""

    def __init__(self, config: Path, *, env: dict[str, str] | None = None) -> None:
        self.config = config
        self.log_path = config.with_name("bridge.log")
        self.env = {**os.environ, **(env or {})}
        self.process: asyncio.subprocess.Process | Daemon | None = None
        self.own_interpreter = False  # True: started as users start it, not forked
        self.module = PROGRAM  # whose `main` is run where it is forked
        self._log_from = 0

    async def start(self, *, wait: bool = True) -> "BridgeProcess":
        """Start the daemon, by default until it listens."""
        self._log_from = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            if can_fork(self.env) and not self.own_interpreter:
                arguments = ("--config", str(self.config), "run")
                self.process = await asyncio.to_thread(
                    Daemon, arguments, self.env, log, self.module
                )
            else:
                self.process = await asyncio.create_subprocess_exec(
                    *self.command("run"), stdout=log, stderr=log, env=self.env
                )
        if wait:
            await self.logged("bridge.ready")
        return self

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of the program with this configuration."""
        return [sys.executable, "-m", "tillbridge", "--config", str(self.config), *arguments]

    async def run(self, *arguments: str, within_s: float = 60) -> tuple[int, str, str]:
        """Run another command of the program; return its exit code, output and error output."""
        config = ("--config", str(self.config))
        done = await asyncio.to_thread(run, *config, *arguments, env=self.env, within_s=within_s)
        return done.returncode, done.stdout, done.stderr

    def events(self, name: str | None = None, **fields: object) -> list[dict[str, Any]]:
        """Return the log events since the last start, by name and fields."""
        found = []
        wanted = (name or "").encode()  # who waits reads the same lines again and again
        with self.log_path.open("rb") as log:
            log.seek(self._log_from)
            for line in log.read().split(b"\n"):
                if not line.startswith(b"{") or wanted not in line:
                    continue
                event = json.loads(line)
                if name in {None, event.get("event")} and all(
                    event.get(key) == value for key, value in fields.items()
                ):
                    found.append(event)
        return found

    async def logged(self, name: str, *, within_s: float = 60, **fields: object) -> dict[str, Any]:
        """Wait for a log event."""

        def look() -> list[dict[str, Any]]:
            found = self.events(name, **fields)
            if not found and self.process is not None and self.process.returncode is not None:
                text = self.log_path.read_text(encoding="utf-8", errors="replace")[-3000:]
                raise AssertionError(f"the bridge ended before {name}:\n{text}")
            return found

        event: dict[str, Any] = (
            await until(f"log event {name} {fields}", look, within_s=within_s)
        )[0]
        return event

    async def kill(self) -> None:
        """Kill it as a power cut would: at once."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def stop(self, *, within_s: float = 12) -> int:
        """Send SIGTERM and return the exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), within_s)
