"""The page's address, held from one life of the bridge to the next.

While nobody serves it, a browser that comes waits in the queue of the socket.
"""

import asyncio
import os
import socket


class HeldAddress:
    """Listens on one address until `close`; each life of the bridge gets sockets of its own."""

    def __init__(self) -> None:
        self._at = ("", 0)
        self._sockets: list[socket.socket] = []

    async def sockets(self, host: str, port: int) -> list[socket.socket]:
        """Return sockets that listen there, to be closed by whoever serves them. Raises OSError.

        Asked for the same address again, they are those of before, also where port 0 chose one.
        """
        if self._at != (host, port) or not self._sockets:
            self.close()
            self._sockets = await _listening(host, port)
            self._at = (host, port)
        return [each.dup() for each in self._sockets]

    def close(self) -> None:
        """Let go of the address."""
        for each in self._sockets:
            each.close()
        self._sockets = []


async def _listening(host: str, port: int) -> list[socket.socket]:
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
            each.listen(128)
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened
