"""JSON-RPC with Odoo over HTTP: one question, one answer, or the fact that there was none.

Odoo answers failures with status 200 and an `error` in the body. Nothing is tried again here; a
kept connection that turns out to be dead is opened anew for questions that change nothing.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import urlsplit

_REUSED_FOR_S = 4.0  # servers close idle connections after 5 seconds and more
_LARGEST = 64 * 1024 * 1024
_MOST_IDLE = 2


class NoAnswer(Exception):
    """Odoo did not answer. `sent` is True where it may have been asked, and may be doing it."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.text = text
        self.sent = sent


class Fault(Exception):
    """Odoo refused; `kind` is the name of its exception, `text` what it says."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Asks(Protocol):
    """A way to ask Odoo."""

    def ask(self, service: str, method: str, args: Sequence[object], *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the answer. `changes` says that asking twice is not the same as asking once.

        Raises NoAnswer, Fault.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class HttpRpc:
    """Asks over HTTP, from any thread; connections are kept for a while."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._path = f"{parts.path.rstrip('/')}/jsonrpc"
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._closed = False

    def ask(self, service: str, method: str, args: Sequence[object], *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the answer. Raises NoAnswer, Fault."""
        params = {"service": service, "method": method, "args": list(args)}
        body = json.dumps({"jsonrpc": "2.0", "method": "call", "id": 1, "params": params})
        return answer_in(self._post(body.encode(), changes=changes))

    def close(self) -> None:
        """Close all connections; one that is in use is closed when its answer is there."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection, _since in idle:
            connection.close()

    def _post(self, body: bytes, *, changes: bool) -> bytes:
        reused = None if changes else self._reusable()
        if reused is not None:
            began = time.monotonic()
            try:
                return self._exchange(reused, body)
            except NoAnswer:
                if time.monotonic() - began > self._timeout_s / 2:
                    raise  # it is the server that is slow, and not the connection that is dead
        return self._exchange(self._connected(), body)

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes) -> bytes:
        done = False
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read(_LARGEST + 1)
            done = not response.will_close and len(content) <= _LARGEST
        except (OSError, http.client.HTTPException) as failure:
            raise NoAnswer(_described(failure, self._timeout_s), sent=True) from failure
        finally:
            if done:
                self._store(connection)
            else:
                connection.close()
        if response.status != 200 or len(content) > _LARGEST:
            raise NoAnswer(_status_text(response.status), sent=True)
        return content

    def _connected(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        try:
            connection.connect()
        except OSError as failure:
            connection.close()
            raise NoAnswer(_described(failure, self._timeout_s), sent=False) from failure
        return connection

    def _reusable(self) -> http.client.HTTPConnection | None:
        """Return the connection that was used last, if the server will still have it open."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is None:
            return None
        connection, since = found
        if time.monotonic() - since <= _REUSED_FOR_S:
            return connection
        connection.close()
        return None

    def _store(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def answer_in(content: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the result in the body of an answer, numbers exact. Raises NoAnswer, Fault."""
    try:
        answer = json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError) as failure:
        raise NoAnswer("What answers there is no Odoo.", sent=True) from failure
    if not isinstance(answer, Mapping) or not ("result" in answer or "error" in answer):
        raise NoAnswer("What answers there is no Odoo.", sent=True)
    if "error" in answer:
        raise _fault(answer["error"])
    return answer["result"]


def _fault(error: object) -> Fault:
    fault = error if isinstance(error, Mapping) else {}
    data = fault.get("data")
    data = data if isinstance(data, Mapping) else {}
    text = str(data.get("message") or fault.get("message") or "no reason given")
    return Fault(str(data.get("name") or ""), " ".join(text.split()))


def _status_text(status: int) -> str:
    if status in {301, 302, 307, 308}:
        return f"The server sends elsewhere (status {status}): correct the option url."
    if status == 404:
        return "There is no Odoo at this address (status 404): correct the option url."
    return f"The server answers with status {status}."


def _described(failure: Exception, timeout_s: float) -> str:
    if isinstance(failure, TimeoutError):
        return f"Odoo has not answered for {timeout_s:g} seconds."
    if isinstance(failure, ConnectionRefusedError):
        return "Nobody answers at Odoo's address."
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"Odoo's certificate is not trusted ({failure.verify_message})."
    return f"There is no connection to Odoo ({str(failure) or type(failure).__name__})."
