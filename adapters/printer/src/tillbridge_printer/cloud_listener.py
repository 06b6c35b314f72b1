"""Listens for Star printers that poll (CloudPRNT): one port for all of this process.

The printer's address is `http://THIS_MACHINE:PORT/TOKEN`; whoever does not know the token learns
nothing. It is plain HTTP, for the restaurant's own network.
"""

import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tillbridge_printer.cloud_desk import MEDIA_TYPE, JobDesk
from tillbridge_printer.places import CloudPlace

_LONGEST_BODY = 64 * 1024
_CALLERS = 16

_open: "dict[CloudPlace, _Server]" = {}
_lock = threading.Lock()


def listen(place: CloudPlace, token: str) -> JobDesk:
    """Return the desk of the printer that polls with this token. Raises OSError."""
    with _lock:
        server = _open.get(place)
        if server is None:
            server = _open[place] = _Server(place)
        desk, users = server.desks.get(token, (JobDesk(), 0))
        server.desks[token] = (desk, users + 1)
        return desk


def let_go(place: CloudPlace, token: str) -> None:
    """Give the desk up; the last one closes the port."""
    with _lock:
        server = _open.get(place)
        if server is None or token not in server.desks:
            return
        desk, users = server.desks[token]
        if users > 1:
            server.desks[token] = (desk, users - 1)
            return
        del server.desks[token]
        if not server.desks:
            del _open[place]
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, place: CloudPlace) -> None:
        self.desks: dict[str, tuple[JobDesk, int]] = {}
        self._callers = threading.BoundedSemaphore(_CALLERS)
        super().__init__((place.host, place.port), _Handler)
        threading.Thread(
            target=self.serve_forever, args=(0.1,), name="cloudprnt", daemon=True
        ).start()

    def desk_of(self, path: str) -> JobDesk | None:
        """Return the desk of a path, compared in constant time."""
        given = path.strip("/").encode()
        for token, (desk, _users) in list(self.desks.items()):
            if hmac.compare_digest(given, token.encode()):
                return desk
        return None

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the library has it
        """Hang up on more callers at once than a restaurant has printers."""
        if not self._callers.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the library has it
        """Serve a caller in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._callers.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the library has it
        """Say nothing of callers that hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Server

    def do_POST(self) -> None:
        """Answer a poll: how the printer is, and whether there is a job."""
        desk = self._desk()
        if desk is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _LONGEST_BODY:
            self._answer(413 if length.isdigit() else 411, close=True)
            return
        try:
            said = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            self._answer(400)
            return
        code = said.get("statusCode") if isinstance(said, dict) else None
        if not isinstance(code, str):
            self._answer(400)
            return
        self._answer(200, json.dumps(desk.polled(code)).encode(), "application/json")

    def do_GET(self) -> None:
        """Hand the job out."""
        desk = self._desk()
        if desk is None:
            return
        query = self._query()
        if query.get("type", MEDIA_TYPE) != MEDIA_TYPE:
            self._answer(415)
            return
        data = desk.fetched(query.get("token"))
        if data is None:
            self._answer(404)
        else:
            self._answer(200, data, MEDIA_TYPE, {"X-Star-Cut": "partial; feed=true"})

    def do_DELETE(self) -> None:
        """Take note of what became of the job."""
        desk = self._desk()
        if desk is not None:
            query = self._query()
            desk.confirmed(query.get("token"), query.get("code", ""))
            self._answer(200)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 -- as the library has it
        """Write nothing: polls are no news, and the path is a secret."""

    def version_string(self) -> str:
        """Tell callers nothing of what serves them."""
        return "tillbridge"

    def _desk(self) -> JobDesk | None:
        desk = self.server.desk_of(urlsplit(self.path).path)
        if desk is None:
            self._answer(404, close=True)
        return desk

    def _query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True, max_num_fields=20)
        return {name: values[0] for name, values in found.items()}

    def _answer(
        self,
        status: int,
        body: bytes = b"",
        kind: str = "text/plain",
        more: dict[str, str] | None = None,
        *,
        close: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if close:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)
