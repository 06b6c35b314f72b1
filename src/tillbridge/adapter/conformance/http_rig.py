"""A rig for tills with an HTTP interface: a small real server on a loopback port.

A vendor derives from `HttpRig`, says in `answer` what the till answers, and has all that can go
wrong with a network: answers that get lost, a till that is slow, away, or hangs while it writes.
"""

import json
import socketserver
import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tillbridge.adapter.conformance.cases import Answering
from tillbridge.adapter.conformance.rig import Rig

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the till; names of `headers` in lower case, `body` as parsed JSON."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class HttpRig(Rig):
    """A till that answers at `address`. `lock` guards its state; it is held during `answer`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lock = threading.RLock()
        self._wake = threading.Condition()
        self._delay_s = 0.0
        self._is_away = False
        self._loses_answer = False
        self._hangs = False
        self._waiting: list[HttpRequest] = []  # writes, while they hang
        self._server = _Server(self, 0)
        self._server.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    @abstractmethod
    def answer(self, request: HttpRequest) -> tuple[int, object]:
        """Return the till's answer: a status, and the content of its JSON (None: empty)."""

    def close(self) -> None:
        """Stop the server."""
        if not self._is_away:
            self.go_offline()
        self._server.server_close()

    def go_offline(self) -> None:
        """Refuse connections and drop open ones; the port stays reserved for the till."""
        with self._wake:
            self._is_away = True
            self._wake.notify_all()
        port = self._server.server_address[1]
        self._server.stop()
        self._server = _Server(self, port)

    def come_back(self) -> None:
        """Answer again, at the same address."""
        self._is_away = False
        self._server.start()

    def lose_next_answer(self) -> None:
        """Carry out the next write, and hang up instead of answering."""
        self._loses_answer = True

    def answer_slowly(self, delay_s: float) -> None:
        """Let every answer take this long; answers delayed before continue."""
        with self._wake:
            self._delay_s = delay_s
            self._wake.notify_all()

    def hang_writes(self) -> None:
        """Let writes wait; reads are answered."""
        self._hangs = True

    def carry_out_writes(self) -> None:
        """Carry out the waiting writes, in order."""
        with self._wake:
            self._hangs = False
            waiting, self._waiting = self._waiting, []
            for request in waiting:
                self._answered(request)
            self._wake.notify_all()

    def _outcome(self, request: HttpRequest) -> tuple[int, object] | None:
        """Return the answer, None if the connection is to break."""
        is_write = request.method not in {"GET", "HEAD"}
        with self._wake:
            if self._delay_s:
                self._wake.wait_for(lambda: self._is_away or not self._delay_s, self._delay_s)
            if is_write and self._hangs:
                self._waiting.append(request)
                self._wake.wait_for(lambda: self._is_away or not self._hangs)
                return None  # nobody waits for it any more
        if self._is_away:
            return None
        answer = self._answered(request)
        if is_write and self._loses_answer:
            self._loses_answer = False
            return None
        return answer

    def _answered(self, request: HttpRequest) -> tuple[int, object] | None:
        """Return the answer; None if the rig fails, which the check reports."""
        try:
            with self.lock:
                return self.answer(request)
        except Exception as failure:  # noqa: BLE001 -- whatever the code of a vendor's rig raises
            self.broke = self.broke or failure
            return None


class _Server(socketserver.ThreadingTCPServer):
    """Bound to its port from the beginning; answers once it is started."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, rig: HttpRig, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler, bind_and_activate=False)
        self.rig = rig
        self.server_bind()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Answer from now on."""
        self.server_activate()
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL_S,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Leave it: whoever asked has hung up, which some checks do."""


class _Handler(Answering):
    wbufsize = -1  # an answer leaves in one piece
    server: _Server

    def answer_one(self) -> None:
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = HttpRequest(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query)),
            {name.lower(): value for name, value in self.headers.items()},
            json.loads(content) if content else None,
        )
        outcome = self.server.rig._outcome(request)  # noqa: SLF001 -- its own server
        if outcome is None:
            self.close_connection = True
            return
        status, body = outcome
        answered = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        self.reply(status, {"Content-Type": "application/json"}, answered)
