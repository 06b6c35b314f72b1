"""Noticing that the menu may have changed without reading it: a query's answer, or a NOTIFY."""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import URL

from tillbridge.adapter import Change
from tillbridge_sql.database import Place

_LOOK_S = 30.0  # a listener that hears nothing looks so often whether the line is alive
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
_CONNECT_S = 5
_SUBJECTS = {each.value: each for each in Change}


class Listener:
    """LISTENs on a channel in a thread of its own, and connects anew whenever the line is lost.

    What was told while nobody listened is lost, so after each connect everything counts as changed.
    A message that is `catalogue`, `availability`, `tables` or `updates` names what has changed;
    any other says that all of it may have.
    """

    def __init__(self, place: Place, channel: str) -> None:
        self._url = place.url
        self._channel = channel
        self._listeners: tuple[Callable[[Change], None], ...] = ()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._wake_receiver, self._wake = socket.socketpair()

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Call `listener`, too, in the thread of this object, from now on."""
        self._listeners = (*self._listeners, listener)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sql-listener", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._stop.set()
        self._wake.close()
        if self._thread is not None:
            self._thread.join(1.0)
        if self._thread is None or not self._thread.is_alive():
            self._wake_receiver.close()

    def _run(self) -> None:
        from psycopg import Error  # noqa: PLC0415 -- a driver that only some have

        pause_s = _FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                with self._connected() as raw:
                    pause_s = _FIRST_PAUSE_S
                    for change in (Change.CATALOGUE, Change.AVAILABILITY, Change.TABLES):
                        self._publish(change)
                    self._listen(raw)
            except (Error, OSError):  # the line is lost
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @contextlib.contextmanager
    def _connected(self) -> Any:  # noqa: ANN401 -- a driver's connection, which only some have
        import psycopg  # noqa: PLC0415 -- as above
        from psycopg import sql  # noqa: PLC0415 -- as above

        raw = psycopg.connect(
            **_parts(self._url),
            autocommit=True,
            connect_timeout=_CONNECT_S,
            application_name="tillbridge-listener",
            keepalives_idle=30,
            tcp_user_timeout=10_000,
            options="-c default_transaction_read_only=on",
        )
        try:
            raw.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            yield raw
        finally:
            raw.close()

    def _listen(self, raw: Any) -> None:  # noqa: ANN401 -- as above
        while not self._stop.is_set():
            for notice in raw.notifies(timeout=0):
                self._notify(notice.payload)
            sources = [raw.fileno(), self._wake_receiver]
            readable, _writable, _odd = select.select(sources, [], [], _LOOK_S)
            if not readable:
                raw.execute("SELECT 1")  # raises where the line is dead

    def _notify(self, payload: str) -> None:
        named = _SUBJECTS.get(payload.strip().lower())
        for change in (named,) if named is not None else tuple(Change):
            self._publish(change)

    def _publish(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def _parts(url: URL) -> dict[str, Any]:
    named = {
        "host": url.host,
        "port": url.port,
        "user": url.username,
        "password": url.password,
        "dbname": url.database,
    }
    return {name: value for name, value in {**named, **url.query}.items() if value is not None}
