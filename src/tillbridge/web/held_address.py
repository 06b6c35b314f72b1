"""The page's address, held from one life of the bridge to the next.

While nobody serves it, a browser that comes waits in the queue of the socket.
"""

import socket

from tillbridge.core.network import listening_sockets


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
            self._sockets = await listening_sockets(host, port)
            self._at = (host, port)
        return [each.dup() for each in self._sockets]

    def close(self) -> None:
        """Let go of the address."""
        for each in self._sockets:
            each.close()
        self._sockets = []
