"""A relay between an adapter and its till's HTTP: it hands everything on, and keeps a copy."""

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tillbridge.adapter.conformance.recorded import Answering, serving

_PATIENCE_S = 60.0
# What connections are about; the relay has connections of its own.
_NOT_HANDED_ON = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
}
_KEPT = ("Content-Type", "ETag", "Link", "Retry-After")


@dataclass(slots=True)
class Heard:
    """What went through: questions and replies, in their order."""

    exchanges: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(
        self, request: dict[str, Any], status: int, headers: Mapping[str, str], content: bytes
    ) -> None:
        """Keep an exchange; a body that is no text is left out."""
        reply: dict[str, Any] = {"status": status}
        if headers:
            reply["headers"] = dict(headers)
        with self._lock:
            try:
                reply |= as_body(content.decode("utf-8"))
            except UnicodeDecodeError:
                self.left_out.append(f"{request['method']} {request['path']}: it is no text")
            self.exchanges.append({"request": request, "reply": reply})


@contextmanager
def relaying(origin: str, heard: Heard) -> Iterator[str]:
    """Hand requests on to `origin` (`https://till.example.net`); yields the relay's address."""
    parts = urlsplit(origin)

    class Handler(Answering):
        def answer_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_HANDED_ON
            }
            try:
                status, headers, content = _asked(
                    _connection(parts.scheme, parts.netloc), self.command, self.path, body, sent
                )
            except (OSError, http.client.HTTPException):
                self.close_connection = True  # as the till did; nothing is kept of no answer
                return
            request = {"method": self.command, "path": self.path}
            request |= as_body(body.decode("utf-8", "replace")) if body else {}
            kept = {name: headers[name] for name in _KEPT if name in headers}
            heard.keep(request, status, kept, content)
            back = {
                name: value
                for name, value in headers.items()
                if name.lower() not in _NOT_HANDED_ON | {"date", "server"}
            }
            self.reply(status, back, content)

    with serving(Handler) as address:
        yield address


def as_body(text: str) -> dict[str, Any]:
    """Return a body as it stands in http.json: as JSON where that loses nothing."""
    try:
        value = json.loads(text)
        if json.loads(text, parse_float=str) == json.loads(
            json.dumps(value, ensure_ascii=False), parse_float=str
        ):
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return {"text": text} if text else {}


def _connection(scheme: str, netloc: str) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(netloc, timeout=_PATIENCE_S, context=context)
    return http.client.HTTPConnection(netloc, timeout=_PATIENCE_S)


def _asked(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
) -> tuple[int, http.client.HTTPMessage, bytes]:
    try:
        connection.request(method, path, body or None, dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()
