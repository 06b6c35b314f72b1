"""Listening sockets, accepting from them with a cap that idle strangers cannot hold, and trust.

asyncio's own servers count nothing before a TLS handshake is done, and log each accept that fails
for want of file descriptors: whoever opens connections and sends nothing exhausts both.
And which program has a port that the bridge wants.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger

if TYPE_CHECKING:
    import aiohttp

log = get_logger()

_BACKLOG = 64
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BROKEN = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})  # of the listener itself
_BREATHER_S = 1.0  # after an accept for which the machine had nothing left
_LOG_EVERY_S = 60.0


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Return non-blocking sockets that listen on each address of `host`. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    opened: list[socket.socket] = []
    try:
        for family, _kind, _protocol, _name, address in dict.fromkeys(found):
            opened.append(socket.create_server(address, family=family, backlog=_BACKLOG))
            opened[-1].settimeout(0)
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


class Acceptor:
    """Accepts connections from `sockets` and gives them to `protocol_factory`.

    `max_connections` counts those that `connections()` returns and TLS handshakes under way. A
    connection beyond it takes the place of the oldest handshake, or of whichever `free_slot`
    closes (it returns False if it can close none); else the new one is closed. `on_surplus` is
    called with "replaced" or "refused" each time.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        protocol_factory: Callable[[], asyncio.Protocol],
        *,
        max_connections: int,
        connections: Callable[[], int],
        free_slot: Callable[[], bool],
        on_surplus: Callable[[str], None] = lambda _result: None,
        tls: ssl.SSLContext | None = None,
        handshake_timeout_s: float | None = None,
    ) -> None:
        self._sockets = sockets
        self._protocol_factory = protocol_factory
        self._max_connections = max_connections
        self._connections = connections
        self._free_slot = free_slot
        self._on_surplus = on_surplus
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s
        self._opening: dict[asyncio.Task[bool], None] = {}  # oldest first
        self._logged_at: float | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self, *beside: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Accept until `close`, and run what is `beside` it for as long."""
        self._running = asyncio.create_task(self._run(beside))

    async def until_failure(self) -> None:
        """Wait, after `start`; raises what accepting has died of."""
        if self._running is not None:
            await asyncio.shield(self._running)

    async def close(self) -> None:
        """Stop listening, and end the handshakes under way."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        for each in self._sockets:
            each.close()
        for task in list(self._opening):
            task.cancel()

    async def _run(self, beside: Iterable[Callable[[], Coroutine[Any, Any, object]]]) -> None:
        async with asyncio.TaskGroup() as group:
            for listener in self._sockets:
                group.create_task(self._accept_from(listener))
            for run in beside:
                group.create_task(run())

    async def _accept_from(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _address = await loop.sock_accept(listener)
            except OSError as failure:
                if failure.errno in _BROKEN:
                    raise
                if failure.errno in _EXHAUSTED:
                    self._log_exhausted(failure)
                    self._close_one()
                    await asyncio.sleep(_BREATHER_S)
                continue  # else the stranger has hung up already
            admitted = len(self._opening) + self._connections() < self._max_connections
            if not admitted:
                admitted = self._close_one()
                self._on_surplus("replaced" if admitted else "refused")
            if admitted:
                task = loop.create_task(self._open(connection))
                self._opening[task] = None
                task.add_done_callback(partial(self._opened, connection))
            else:
                connection.close()

    def _close_one(self) -> bool:
        if 2 * len(self._opening) < self._max_connections and self._free_slot():
            return True
        oldest = next(iter(self._opening), None)
        if oldest is None:
            return self._free_slot()
        self._opening.pop(oldest)
        oldest.cancel()
        return True

    async def _open(self, connection: socket.socket) -> bool:
        """Hand the connection over, after its handshake; return whether that went well."""
        with contextlib.suppress(OSError, TimeoutError):  # the internet is full of what is no TLS
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol_factory,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else self._handshake_timeout_s,
            )
            return True
        return False

    def _opened(self, connection: socket.socket, task: asyncio.Task[bool]) -> None:
        self._opening.pop(task, None)
        if task.cancelled() or task.exception() is not None or not task.result():
            connection.close()

    def _log_exhausted(self, failure: OSError) -> None:
        now = asyncio.get_running_loop().time()
        if self._logged_at is None or now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            log.error("listener.exhausted", error=str(failure))


_FILES = 65_536


def raise_file_limit() -> None:
    """Let the process open as many files and sockets as the machine allows, up to 65,536."""
    if sys.platform == "win32":
        return  # it has no such limit
    import resource  # noqa: PLC0415 -- Windows has no such module

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def http_session(url: str, timeout_s: float) -> "aiohttp.ClientSession":
    """Return a session for calls to one server; its certificate is checked if `url` is https."""
    import aiohttp  # noqa: PLC0415 -- commands that make no calls do without

    tls = system_trust() if url.startswith("https:") else True
    connector = aiohttp.TCPConnector(ssl=tls, limit=1, force_close=True)
    return aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=timeout_s)
    )


def system_trust() -> ssl.SSLContext:
    """Return a context that checks certificates against the system's store."""
    import truststore  # noqa: PLC0415 -- only for TLS, and reading a system's store takes time

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


# -- which program has a port, and how to end it; only Linux shows that

_LISTENS = "0A"
_PROC = Path("/proc")
_DEMO_FOLDER = "tillbridge-demo-"
_LOOK = {"win32": "netstat -ano | findstr :{port}", "linux": "sudo ss -ltnp sport = :{port}"}


def port_taken(port: int, otherwise: str, failure: OSError | None = None) -> tuple[str, str]:
    """Return " by ..." ("" if that is unknown) and what to do about a port that is not free.

    `otherwise` is what helps in any case ("change listen in [receiver]"), and alone where the
    `failure` is not that the port is taken. Blocks.
    """
    by, fix = "", ""
    if failure is None or failure.errno == errno.EADDRINUSE:
        holder = holder_of(port)
        if holder is not None:
            by, fix = _(" by {holder}").format(holder=holder[0]), holder[1]
        else:
            command = _LOOK.get(sys.platform, "lsof -nP -iTCP:{port} -sTCP:LISTEN")
            fix = _("Find out which program uses it: {command}").format(
                command=command.format(port=port)
            )
    if not fix:
        return by, f"{otherwise[:1].upper()}{otherwise[1:]}."
    return by, _("{fix}. Otherwise {otherwise}.").format(fix=fix, otherwise=otherwise)


def holder_of(port: int, proc: Path = _PROC) -> tuple[str, str] | None:
    """Return who listens on the port, to stand after "by", and how to end it. Blocks.

    None if the system does not show it.
    """
    sockets = _listening(port, proc)
    for folder in proc.glob("[0-9]*") if sockets else ():
        with contextlib.suppress(OSError):  # another user's, or one that has just ended
            for handle in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()) in sockets:
                        return _described(folder)
    return _of_another_user(next(iter(sockets.values()))) if sockets else None


def _listening(port: int, proc: Path) -> dict[str, int]:
    """Return the links of the sockets that listen there, `socket:[inode]`, with their users."""
    found = {}
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / table).read_text("ascii", "replace").splitlines()[1:]:
                parts = line.split()
                listens = len(parts) > 9 and parts[3] == _LISTENS
                if listens and int(parts[1].rpartition(":")[2], 16) == port:
                    found[f"socket:[{parts[9]}]"] = int(parts[7])
    return found


def _of_another_user(uid: int) -> tuple[str, str]:
    user = str(uid)
    if sys.platform != "win32":
        import pwd  # noqa: PLC0415 -- Windows has no such module

        with contextlib.suppress(KeyError):
            user = pwd.getpwuid(uid).pw_name
    if user == "tillbridge":
        return _("the installed bridge"), _("Stop it with sudo systemctl stop tillbridge")
    return _("a program of the user {user}").format(user=user), _("Ask that user to stop it")


def _described(folder: Path) -> tuple[str, str]:
    pid = int(folder.name)
    arguments = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    command, config = _tillbridge_command(arguments)
    if command == "sandbox":
        what = _("the practice service (tillbridge sandbox), process {pid}")
    elif command == "demo" or _DEMO_FOLDER in config:
        text = _("a running demo, process {pid}").format(pid=pid)
        pid = pid if command == "demo" else _parent_of(folder) or pid
        fix = _("End the demo with Ctrl-C in its terminal, or with kill {pid}").format(pid=pid)
        return text, fix
    elif command:
        path = (folder / "cwd").readlink() / (config or "bridge.toml")
        what = _("the bridge of {path}, process {pid}").replace("{path}", str(path))
    else:
        what = _program(folder, arguments)
    fix = _("Stop it with Ctrl-C in its terminal, or with kill {pid}").format(pid=pid)
    return what.replace("{pid}", str(pid)), fix


def _tillbridge_command(arguments: Sequence[str]) -> tuple[str, str]:
    """Return the command of a tillbridge, and the file it was given; "" of another program."""
    names = [Path(argument).stem for argument in arguments[:3]]
    if "tillbridge" not in names:
        return "", ""
    words = iter(arguments[names.index("tillbridge") + 1 :])
    config = ""
    for word in words:
        name, _equals, value = word.partition("=")
        if name == "--config":
            config = value or next(words, "")
        elif not word.startswith("-"):
            return word, config
    return "", config


def _parent_of(folder: Path) -> int:
    """Return the process that started this one; 0 if that has ended."""
    text = (folder / "stat").read_text("utf-8", "replace")
    parent = int(text.rpartition(")")[2].split()[1])
    return parent if parent > 1 else 0


def _program(folder: Path, arguments: Sequence[str]) -> str:
    name = (folder / "comm").read_text("utf-8", "replace").strip()
    # The first words alone: further ones may hold a password.
    words = [Path(each).name for each in arguments[:3] if each and not each.startswith("-")]
    command = " ".join(words)
    shown = _("{program}, process {pid}").format(program=name, pid="{pid}")
    return f"{shown} ({command})" if command not in {"", name} else shown
