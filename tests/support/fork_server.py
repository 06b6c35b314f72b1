"""Commands of the program as processes that start at once: forked from one that has imported it.

`python -m tillbridge` spends half a second of a processor on imports, and the tests start it many
hundred times. What `run` starts is a process too, with its arguments, environment, folder, output
and exit code; only its imports are done already, and what it makes at its first use. What is about
the start itself (what is imported, how long it takes, a terminal) starts the real program.
"""

import asyncio
import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# What the interpreter, the loader and libraries read when they are started or imported: aiohttp
# loads the certificates that it trusts (SSL_CERT_FILE) where it is imported.
_READ_AT_START = ("PYTHON", "LD_", "LANG", "LC_", "SSL_")
_starting = threading.Lock()
PROGRAM = "tillbridge.cli"
_SHARED = "TEST_FORK_SERVER"  # where one listens that all of pytest's workers use


def run(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, within_s: float
) -> subprocess.CompletedProcess[str]:
    """Run `tillbridge` with these arguments; TimeoutError where it has not ended in time."""
    with started(*arguments, cwd=cwd, env=env) as command:
        return command.wait(within_s)


@dataclass(frozen=True)
class Command:
    """A command that was started, and what it has written."""

    arguments: tuple[str, ...]
    _ended: Callable[[float], int]
    _out: IO[bytes]
    _err: IO[bytes]

    def output(self) -> str:
        """Return what it has written to standard output by now."""
        return _written(self._out)

    def wait(self, within_s: float) -> subprocess.CompletedProcess[str]:
        """Wait for its end; TimeoutError where it has not ended in time, and is ended."""
        code = self._ended(within_s)
        command = ["tillbridge", *self.arguments]
        return subprocess.CompletedProcess(command, code, self.output(), _written(self._err))


def _written(stream: IO[bytes]) -> str:
    return os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0).decode("utf-8")


@contextmanager
def started(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Command]:
    """Start `tillbridge` with these arguments; the caller waits for its end."""
    wanted = dict(os.environ if env is None else env)
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        ExitStack() as stack,
    ):
        streams = [nothing.fileno(), out.fileno(), err.fileno()]
        if can_fork(wanted):
            ended = stack.enter_context(_forked(arguments, cwd or Path.cwd(), wanted, streams))
        else:
            ended = stack.enter_context(_spawned(arguments, cwd, wanted, streams))
        yield Command(arguments, ended, out, err)


@contextmanager
def _forked(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
) -> Iterator[Callable[[float], int]]:
    connection, pid = _ask(arguments, cwd, env, streams)
    with connection:

        def ended(within_s: float) -> int:
            connection.settimeout(within_s)
            try:
                return int(connection.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise

        yield ended


def _ask(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: Sequence[int],
    module: str = PROGRAM,
) -> tuple[socket.socket, int]:
    """Ask the server for a process; return where its exit code arrives, and its id."""
    # As a child of ours would, in a terminal that nobody looks at or that may be closed (nohup).
    ignores = [each for each in (signal.SIGINT, signal.SIGHUP) if _is_ignored(each)]
    command = {"arguments": arguments, "cwd": str(cwd), "env": env, "module": module}
    request = json.dumps({**command, "ignores": ignores}).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(_server())
        size = len(request).to_bytes(4, "big")
        socket.send_fds(connection, [size], list(streams))
        connection.sendall(request)
        connection.settimeout(60)
        return connection, int.from_bytes(connection.recv(4), "big")
    except BaseException:
        connection.close()
        raise


class Daemon:
    """A process that goes on, with what tests use of `asyncio.subprocess.Process`."""

    def __init__(
        self, arguments: Sequence[str], env: Mapping[str, str], output: IO[bytes], module: str
    ) -> None:
        """Start the `main` of `module` with these arguments; it writes to `output`."""
        with Path(os.devnull).open("rb") as nothing:
            streams = [nothing.fileno(), output.fileno(), output.fileno()]
            self._connection, self.pid = _ask(arguments, Path.cwd(), env, streams, module)
        self._connection.setblocking(False)
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """Its exit code, None while it runs."""
        if self._code is None:
            with suppress(BlockingIOError):
                self._code = int(self._connection.recv(64))
                self._connection.close()
        return self._code

    async def wait(self) -> int:
        """Return its exit code, once it has ended."""
        while (code := self.returncode) is None:
            await asyncio.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; one that has ended gets none."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment may be forked: it changes nothing of the start."""
    return hasattr(os, "fork") and _start_of(env) == _start_of(os.environ)


@contextmanager
def _spawned(
    arguments: Sequence[str],
    cwd: Path | None,
    env: Mapping[str, str],
    streams: Sequence[int],
) -> Iterator[Callable[[float], int]]:
    command = [sys.executable, "-m", "tillbridge", *arguments]
    nothing, out, err = streams
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdin=nothing, stdout=out, stderr=err
    ) as process:

        def ended(within_s: float) -> int:
            try:
                return process.wait(within_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise TimeoutError from None

        yield ended


def _start_of(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}


def _server() -> str:
    """Return where the server listens; the first who asks starts it, and it ends with us."""
    with _starting:
        return _started()


@functools.cache
def _started() -> str:
    address = os.environ.get(_SHARED) or start()
    deadline = time.monotonic() + 120
    while not Path(address).exists():  # it imports
        assert time.monotonic() < deadline, "the server of forks has not started"
        time.sleep(0.05)
    return address


def start_for_workers() -> None:
    """Start a server for all processes that this one starts."""
    os.environ[_SHARED] = start()


def start() -> str:
    """Start a server, which ends with this process; return where it will listen."""
    folder = tempfile.mkdtemp(prefix="tillbridge-fork-")
    address = str(Path(folder) / "socket")
    process = subprocess.Popen([sys.executable, __file__, address], stdin=subprocess.PIPE)
    atexit.register(process.communicate)  # the end of its input ends it
    return address


# -- the server


_NOT_FOR_COMMANDS = (
    "tillbridge.__main__",
    "tillbridge.adapter.conformance",
    "tillbridge.ledger.migrations",
    "tillbridge.pytest_plugin",
    "tillbridge.windows",
)


class _Command(Exception):
    """The process is to become this command."""


def _serve(address: str) -> None:
    """Fork a child for each request, and answer with its exit code; end with standard input."""
    running: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen()
        Path(f"{address}.new").rename(address)  # whoever sees it may connect
        for each in (listener, woken, sys.stdin):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _events in selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is woken:
                    woken.recv(4096)
                    _report_ended(running)
                else:
                    _fork(listener.accept()[0], running)


def _report_ended(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as connection, suppress(OSError):
                connection.sendall(str(os.waitstatus_to_exitcode(ended[1])).encode())


def _fork(connection: socket.socket, running: dict[int, socket.socket]) -> None:
    size, streams, _flags, _address = socket.recv_fds(connection, 4, 3)
    request = b""
    while len(request) < int.from_bytes(size, "big"):
        request += connection.recv(65536)
    pid = os.fork()
    if pid == 0:
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        raise _Command(json.loads(request))
    for stream in streams:
        os.close(stream)
    running[pid] = connection
    connection.sendall(pid.to_bytes(4, "big"))


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _become(request: dict) -> None:
    """Be `python -m tillbridge` from here on."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ignores = request["ignores"]
    interrupted = signal.SIG_IGN if signal.SIGINT in ignores else signal.default_int_handler
    signal.signal(signal.SIGINT, interrupted)
    hung_up = signal.SIG_IGN if signal.SIGHUP in ignores else signal.SIG_DFL
    signal.signal(signal.SIGHUP, hung_up)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 -- lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115 -- (as above)
    sys.stderr = open(  # noqa: SIM115 -- (as above)
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace"
    )
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.path[0] = request["cwd"]
    sys.argv = [str(Path(importlib.import_module("tillbridge").__path__[0]) / "__main__.py")]
    sys.argv += request["arguments"]
    importlib.invalidate_caches()


def _import_everything() -> None:
    gc.disable()  # what imports make, stays
    package = importlib.import_module("tillbridge")
    for module in pkgutil.walk_packages(package.__path__, "tillbridge."):
        if not module.name.startswith(_NOT_FOR_COMMANDS):
            importlib.import_module(module.name)
    importlib.import_module("first_use").make()  # which stands beside this program
    gc.freeze()  # no child looks at it, and so copies none of it
    gc.enable()


def main(address: str) -> None:
    _import_everything()
    try:
        _serve(address)
    except _Command as command:
        request = command.args[0]
    else:
        Path(address).unlink()
        Path(address).parent.rmdir()
        return
    _become(request)
    _end(_run(importlib.import_module(request["module"]).main))


def _run(command: Callable[[], None]) -> int:
    """Return the exit code that the interpreter would end with."""
    try:
        command()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 -- the interpreter prints any
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code: int) -> None:
    """End as the interpreter does, but leave the modules: to free them takes half a second."""
    threading._shutdown()  # type: ignore[attr-defined]  # joins threads, runs what executors leave
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
