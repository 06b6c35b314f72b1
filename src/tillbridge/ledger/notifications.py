"""Notifications (NOTIFY) of other bridges on the same PostgreSQL, over a connection for them alone.

One may be lost with the connection, so nothing depends on it: who listens looks for itself every
few seconds, too. Imported only if a URL is configured.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from tillbridge.core.clock import Clock
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Supervisor, Worker, in_thread
from tillbridge.ledger.leases import CHANNEL
from tillbridge.ledger.server import connect

log = get_logger()

_AGAIN_S = 2.0


class Notifications:
    """Calls `on_notification` with the text of each, in the event loop, and with "" at its start.

    That is each time it listens again: some may have been lost. Run `worker`; then `close`.
    """

    def __init__(
        self, url: str, on_notification: Callable[[str], None], supervisor: Supervisor, clock: Clock
    ) -> None:
        self._url = url
        self._on_notification = on_notification
        self._connection: psycopg.Connection[Any] | None = None
        self._failing = False
        self.worker = Worker("notifications", self._listen, supervisor, clock)
        self.worker.wake()

    def close(self) -> None:
        """Listen no more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            asyncio.get_running_loop().remove_reader(connection.fileno())
            connection.close()

    async def _listen(self) -> float | None:
        """Connect and listen; where that fails, return in how many seconds to try again."""
        try:
            connection = await in_thread(lambda: _listening(self._url))
        except psycopg.Error as failure:
            if not self._failing:
                log.warning("notifications.none", detail=" ".join(str(failure).split()))
            self._failing = True
            return _AGAIN_S
        try:
            asyncio.get_running_loop().add_reader(connection.fileno(), self._read)
        except NotImplementedError:  # Windows: whoever listens looks by itself
            connection.close()
            return None
        if self._failing:
            log.info("notifications.listening")
        self._failing = False
        self._connection = connection
        self._on_notification("")
        return None

    def _read(self) -> None:
        """Pass on what has come; without blocking."""
        if self._connection is None:
            return
        try:
            self._connection.pgconn.consume_input()
        except psycopg.OperationalError:
            log.warning("notifications.lost")
            with suppress(psycopg.Error):
                self.close()
            self.worker.wake()
            return
        while (notice := self._connection.pgconn.notifies()) is not None:
            self._on_notification(notice.extra.decode("utf-8", "replace"))


def _listening(url: str) -> psycopg.Connection[Any]:
    connection = connect(url)
    connection.execute(f"LISTEN {CHANNEL}")
    return connection
