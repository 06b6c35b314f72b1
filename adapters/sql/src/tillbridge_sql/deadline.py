"""A time limit for a driver that has none: PostgreSQL's waits for its server as long as it takes.

The server's own limits (statement_timeout) do not help where the server itself hangs, or the line
is dead. So the connection's socket is shut when the time is up; the driver then reports a lost
connection.
"""

import os
import socket
import threading
from types import TracebackType
from typing import Any, Self


class Deadline:
    """Shuts a connection's socket after so many seconds, unless it is left before."""

    def __init__(self, dbapi_connection: Any, seconds: float) -> None:  # noqa: ANN401 -- a driver's connection
        # A duplicate: the number of a socket that was closed may soon be another's.
        self._socket = socket.socket(fileno=os.dup(dbapi_connection.fileno()))
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._close)
        self._timer.daemon = True
        self._timer.name = "sql-deadline"

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _failure: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket.close()

    def _close(self) -> None:
        with self._lock:
            if self._socket.fileno() >= 0:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    return  # gone already
