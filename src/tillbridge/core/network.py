"""Listening sockets, accepting from them with a cap that idle strangers cannot hold, and trust.

asyncio's own servers count nothing before a TLS handshake is done, and log each accept that fails
for want of file descriptors: whoever opens connections and sends nothing exhausts both.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from tillbridge.core.log import get_logger

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
        for family, kind, protocol, _name, address in dict.fromkeys(found):
            each = socket.socket(family, kind, protocol)
            opened.append(each)
            if os.name == "posix":  # elsewhere it would let two programs share the port
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.settimeout(0)
            each.bind(address)
            each.listen(_BACKLOG)
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


class Acceptor:
    """Accepts connections from `sockets` and gives them to `protocol_factory`.

    `max_connections` counts those that `connections()` returns and TLS handshakes under way. A
    connection beyond it takes the place of the oldest handshake, or of whichever `free_slot`
    closes (it returns False where it can close none); else the new one is closed. `on_surplus` is
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
            if self._admits():
                task = loop.create_task(self._open(connection))
                self._opening[task] = None
                task.add_done_callback(partial(self._opened, connection))
            else:
                connection.close()

    def _admits(self) -> bool:
        if len(self._opening) + self._connections() < self._max_connections:
            return True
        admitted = self._close_one()
        self._on_surplus("replaced" if admitted else "refused")
        return admitted

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


def raise_file_limit(enough: int = 65_536) -> None:
    """Let the process open as many files and sockets as the machine allows, up to `enough`."""
    if sys.platform == "win32":
        return  # it has no such limit
    import resource  # noqa: PLC0415 -- Windows has no such module

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def system_trust() -> ssl.SSLContext:
    """Return a context that checks certificates against the system's store."""
    import truststore  # noqa: PLC0415 -- only for TLS, and reading a system's store takes time

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
