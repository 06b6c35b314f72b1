"""Answers that were recorded, given again by a small server on a loopback port.

A case folder with `http.json` has them. Options that name the recorded address are given the
server's, so an adapter needs nothing for it, whatever HTTP library and language it uses.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FILE = "http.json"
_LONGEST_WORDS = 200


@dataclass(slots=True)
class Answers:
    """What one address answered. `strange` collects what was asked and had not been recorded."""

    exchanges: list[Mapping[str, Any]]
    strange: list[str]
    _used: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, body: str) -> Mapping[str, Any]:
        """Return the reply; of several to the same question the next, and then the last again."""
        asked = question(method, path, body)
        with self._lock:
            found = [each["reply"] for each in self.exchanges if _question_of(each) == asked]
            if not found:
                told = f"{method} {path} {body}".strip()[:_LONGEST_WORDS]
                if told not in self.strange:
                    self.strange.append(told)
                return {"status": 501, "text": "This was not recorded."}
            number = self._used.get(asked, 0)
            self._used[asked] = number + 1
            reply: Mapping[str, Any] = found[min(number, len(found) - 1)]
            return reply


@dataclass(frozen=True, slots=True)
class Replaying:
    """Recorded addresses, and those that stand for them now."""

    addresses: Mapping[str, str]
    strange: list[str]

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return an adapter's options with the addresses of the servers."""
        return {name: with_addresses(value, self.addresses) for name, value in options.items()}


@contextmanager
def replaying(folder: Path) -> Iterator[Replaying]:
    """Give the recorded answers of a case folder, if it has any. Raises ValueError."""
    path = folder / FILE
    if not path.is_file():
        yield Replaying({}, [])
        return
    try:
        origins = json.loads(path.read_text("utf-8"))["origins"]
    except (OSError, ValueError, KeyError) as failure:
        raise ValueError(f"{path}: {failure!r} (it holds origins)") from failure
    strange: list[str] = []
    with ExitStack() as servers:
        addresses = {}
        for origin, exchanges in origins.items():
            answers = Answers(list(exchanges), strange)
            addresses[origin] = servers.enter_context(_serving(answers))
        yield Replaying(addresses, strange)


def with_addresses(value: Any, addresses: Mapping[str, str]) -> Any:  # noqa: ANN401 -- an option of any kind
    """Return an option in which each address is replaced by the one that stands for it."""
    if isinstance(value, str):
        for old, new in addresses.items():
            if value == old or value.startswith(f"{old}/"):
                return new + value[len(old) :]
        return value
    if isinstance(value, Mapping):
        return {key: with_addresses(part, addresses) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_addresses(part, addresses) for part in value]
    return value


def question(method: str, path: str, body: str) -> str:
    """Return what makes two questions the same: JSON bodies are, whatever their spaces."""
    with suppress(ValueError):
        body = json.dumps(json.loads(body), sort_keys=True)
    return f"{method} {path}\n{body}"


def body_of(part: Mapping[str, Any]) -> str:
    """Return the body of a recorded request or reply."""
    if "json" in part:
        return json.dumps(part["json"], ensure_ascii=False)
    return str(part.get("text", ""))


def _question_of(exchange: Mapping[str, Any]) -> str:
    request = exchange["request"]
    return question(request["method"], request["path"], body_of(request))


@contextmanager
def _serving(answers: Answers) -> Iterator[str]:
    class Handler(Answering):
        def answer_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            reply = answers.answer(self.command, self.path, body)
            self.reply(
                int(reply.get("status", 200)), reply.get("headers", {}), body_of(reply).encode()
            )

    with serving(Handler) as address:
        yield address


class Answering(BaseHTTPRequestHandler, ABC):
    """Answers every kind of request in `answer_one`, and logs nothing."""

    protocol_version = "HTTP/1.1"

    @abstractmethod
    def answer_one(self) -> None:
        """Answer."""

    def reply(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Send a reply."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as it is called there
        """Say nothing."""


@contextmanager
def serving(handler: type[Answering]) -> Iterator[str]:
    """Serve on a free loopback port; yields the address."""
    for kind in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(handler, f"do_{kind}", handler.answer_one)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
