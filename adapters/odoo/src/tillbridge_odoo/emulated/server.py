"""An emulated Odoo on a loopback port, with everything that can go wrong between it and us."""

import json
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tillbridge_odoo.emulated.faults import OdooFault
from tillbridge_odoo.emulated.till import EmulatedOdoo

_CHANGING = {"create_from_ui", "sync_from_ui", "refund", "action_pos_order_cancel"}
_CREATING = {"create_from_ui", "sync_from_ui"}


class OdooServer:
    """Serves one emulated Odoo. Its port stays the same while it is away."""

    def __init__(self, odoo: EmulatedOdoo) -> None:
        self.odoo = odoo
        self.delay_s = 0.0
        self.lose_next = False
        self.next_status = 0
        self.next_body = b""
        self.next_create_status = 0
        self.before_creating: Callable[[], object] | None = None
        self._unlocked = threading.Event()
        self._unlocked.set()
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._asked = 0
        self._idle = threading.Condition()
        self._away = False
        self._server: _Server | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answer, at the same port as before."""
        self._away = False
        self._ending.clear()
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = self._server.server_address[1]
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()

    def stop(self) -> None:
        """Answer no more: the port is closed, and connections that were kept are cut."""
        self._away = True
        self._unlocked.set()
        self._ending.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def hang_writes(self) -> None:
        """Let whatever changes orders wait for a lock on their table, while reads are answered."""
        self._unlocked.clear()

    def carry_out_writes(self) -> None:
        """Give the lock back: all that waits is carried out, whoever still listens or not."""
        self._unlocked.set()

    def wait_until_idle(self) -> None:
        """Wait until every question has been worked on to its end."""
        with self._idle:
            self._idle.wait_for(lambda: self._asked == 0)

    def answer(self, asked: Mapping[str, Any]) -> tuple[int, bytes] | None:
        """Return status and body for a question; None where the answer gets lost."""
        with self._idle:
            self._asked += 1
        try:
            return self._answer(asked)
        finally:
            with self._idle:
                self._asked -= 1
                self._idle.notify_all()

    def _answer(self, asked: Mapping[str, Any]) -> tuple[int, bytes] | None:
        params = asked["params"]
        if self.delay_s and self._ending.wait(self.delay_s):
            return None
        seen = None
        if not self._unlocked.is_set() and _changes(params):
            seen = self.odoo.orders_now()
            self._unlocked.wait()
        if self.before_creating is not None and _changes(params, _CREATING):
            self.before_creating()
        with self._lock:
            if self._away:
                return None
            if self.next_create_status and _changes(params, _CREATING):
                status, self.next_create_status = self.next_create_status, 0
                return status, b"Bad Gateway"
            if self.next_status or self.next_body:
                status, body = self.next_status or 200, self.next_body
                self.next_status, self.next_body = 0, b""
                return status, body
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.get("id")}
            late = self.odoo.late_wanted and _changes(params, _CREATING)
            self.odoo.sales.seen = seen
            try:
                answer["result"] = self.odoo.answer(
                    params["service"], params["method"], params["args"]
                )
            except OdooFault as fault:
                answer["error"] = fault.to_json()
            finally:
                self.odoo.sales.seen = None
            if late or (self.lose_next and _changes(params)):
                self.lose_next = False
                return None
        return 200, json.dumps(answer).encode()


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: OdooServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the library has it
        """Say nothing of somebody who hung up; anything else is a mistake of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one piece, or the kernel waits 40 ms between them
    server: _Server

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/jsonrpc":
            answered: tuple[int, bytes] | None = (404, b"Not Found")
        else:
            answered = self.server.owner.answer(json.loads(content))
        if answered is None:
            self.close_connection = True
            return
        status, body = answered
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # whoever asked has given up

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- named as in the library
        """Say nothing."""


def _changes(params: Mapping[str, Any], methods: Collection[str] = _CHANGING) -> bool:
    args = params["args"]
    return params["method"] == "execute_kw" and args[4] in methods
