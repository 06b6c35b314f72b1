"""A line between the adapter and a server, on which everything can go wrong that does.

It refuses, it delays, it loses a COMMIT, or the answer to one that the server has done.
"""

import contextlib
import socket
import threading

_CHUNK = 65_536


class Wire:
    """Listens on a loopback port and passes all on to the server's."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listening: socket.socket | None = None
        self._hastened = threading.Event()
        self.delay_s = 0.0
        self.lose_commits = False  # the answer to the next one
        self.swallow_commits = False  # the next one itself
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen()
        self.port = listening.getsockname()[1]
        self._listening = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        listening, self._listening = self._listening, None
        if listening is not None:
            # close alone does not wake whoever waits in accept
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        self.break_connections()

    def break_connections(self) -> None:
        """Break all connections that there are."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _end(each)

    def delay(self, seconds: float) -> None:
        """Let every answer take so long."""
        self.delay_s = seconds
        if not seconds:
            self._hastened.set()
        else:
            self._hastened.clear()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _address = listening.accept()
            except OSError:
                return  # cut
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            line = _Line(self, client, server)
            for pump in (line.to_server, line.to_client):
                threading.Thread(target=pump, daemon=True).start()

    def wait(self) -> None:
        """Wait as long as an answer takes now."""
        if self.delay_s:
            self._hastened.wait(self.delay_s)

    def gone(self, *sockets: socket.socket) -> None:
        """Forget sockets that are no more."""
        with self._lock:
            self._sockets -= set(sockets)
        for each in sockets:
            _end(each)


class _Line:
    """One connection."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire = wire
        self._client = client
        self._server = server
        self._losing = False
        self._wrote = False

    def to_server(self) -> None:
        """Pass on what the adapter says; take note of a COMMIT whose answer is to be lost."""
        with contextlib.suppress(OSError):
            while chunk := self._client.recv(_CHUNK):
                upper = chunk.upper()
                self._wrote = self._wrote or b"INSERT" in upper
                if self._wrote and b"COMMIT" in upper:  # drivers also commit where nothing was done
                    if self._wire.swallow_commits:
                        self._wire.swallow_commits = False
                        break
                    self._losing = self._wire.lose_commits
                self._server.sendall(chunk)
        self._wire.gone(self._client, self._server)

    def to_client(self) -> None:
        """Pass on what the server says."""
        with contextlib.suppress(OSError):
            while chunk := self._server.recv(_CHUNK):
                self._wire.wait()
                if self._losing:  # the server has done it, and nobody is told
                    self._wire.lose_commits = False
                    break
                self._client.sendall(chunk)
        self._wire.gone(self._client, self._server)


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
