"""HTTP for adapters: one question, one answer, or the failure that fits. Blocking, no retries.

`HttpClient` decides what every driver for a REST till has to decide: when the till was surely not
reached (PosOffline), when it may have done what it was asked (TicketOutcomeUnknown), and what its
refusals mean. docs/adapters/writing.md has the table. It asks no proxy, follows no redirect, and
checks certificates. What it raises and what it logs never holds a header or a query.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tillbridge.adapter.failures import PosFailure, PosOffline, StoreClosed, TicketOutcomeUnknown
from tillbridge.adapter.texts import _
from tillbridge.adapter.values import Health
from tillbridge.core.network import system_trust
from tillbridge.core.redaction import masked
from tillbridge.model.numbers import parse_json_float, parse_json_int, printable

MOST_BYTES = 64 * 1024 * 1024
_REUSED_FOR_S = 4.0  # servers close idle connections after 5 seconds and more
_MOST_IDLE = 2
_LONGEST_WORDS = 300
_EXACT_DIGITS = 15  # a float distinguishes so many decimal digits
_IN_PATH = "/%:@!$&'()*+,;=~-._"
_WORDS = ("message", "detail", "error_description", "title", "reason", "error", "errors")
_LOGIN_FIX = _("Correct the key or the password in the adapter's options.")
_ADDRESS_FIX = _("Correct the address in the adapter's options.")


class NoAnswer(Exception):
    """There was no complete answer. `sent` is True if the request may have reached the till."""

    def __init__(self, text: str, *, sent: bool, fix: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.sent = sent
        self.fix = fix


class HttpRefused(PosFailure):
    """The till refused a write with a status of 400 to 499: certainly nothing was written.

    `status` is that status, `body` the answer's JSON (None if it has none). Catch it to raise
    ItemUnavailable, PriceMismatch or AtCapacity; otherwise it is a PosFailure in the till's own
    words.
    """

    def __init__(self, message: str, status: int, body: Any = None) -> None:  # noqa: ANN401 -- any JSON value
        super().__init__(message)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An unprocessed answer; the names of `headers` are in lower case."""

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpClient:
    """An HTTP or HTTPS client for one till, usable from any thread.

    `base_url` is the till's address (`https://till.example.net/api`), `headers` are sent with every
    request (a key, for example), `name` is the till's name in messages. `connect_s` limits
    connecting, `answer_s` everything from then until the last byte of the answer. Certificates are
    checked against the system's store, or only against `ca_file`. Raises ValueError for an address
    or a header that cannot work.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = _("The till"),
        connect_s: float = 3.0,
        answer_s: float = 10.0,
        ca_file: Path | None = None,
    ) -> None:
        self._secure, self._host, self._port, self._path = _parts(base_url)
        self._headers = dict(headers or {})
        for header, value in self._headers.items():
            _check_header(header, value)
        self._name = name
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._trust: ssl.SSLContext | None = None
        if self._secure:
            try:
                self._trust = (
                    ssl.create_default_context(cafile=ca_file) if ca_file else system_trust()
                )
            except OSError as failure:
                raise ValueError(
                    _("{file} cannot be used as certificate: {why}").format(
                        file=str(ca_file), why=str(failure)
                    )
                ) from failure
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._closed = False

    # -- JSON: what nearly every till speaks

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        missing: Any = ...,  # noqa: ANN401 -- any value
        answer_s: float | None = None,
    ) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the JSON at `path`; fractions are Decimal, never float. Raises PosOffline.

        `missing` is returned for status 404 (without it, 404 raises PosOffline too: a wrong
        address). In `find_ticket`, a search that returns an empty list is safer.
        """
        answer = self._asked("GET", path, query, None, changes=False, answer_s=answer_s)
        if answer.status == 404 and missing is not ...:
            return missing
        return self._json(answer, changes=False)

    def post(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "POST",
        changes: bool = True,
        answer_s: float | None = None,
    ) -> Any:  # noqa: ANN401 -- any JSON value
        """Send `body` as JSON and return the answer's JSON, None if it has none.

        Raises PosOffline (certainly nothing was written), TicketOutcomeUnknown (it may have been
        written), StoreClosed (423), HttpRefused. Use `changes=False` for a POST that only reads: it
        raises what `get` raises.
        """
        content = b"" if body is None else json.dumps(body, default=_number).encode()
        answer = self._asked(method, path, None, content, changes=changes, answer_s=answer_s)
        return self._json(answer, changes=changes)

    def put(self, path: str, body: object = None) -> Any:  # noqa: ANN401 -- any JSON value
        """Like `post`, with PUT."""
        return self.post(path, body, method="PUT")

    def patch(self, path: str, body: object = None) -> Any:  # noqa: ANN401 -- any JSON value
        """Like `post`, with PATCH."""
        return self.post(path, body, method="PATCH")

    def delete(self, path: str) -> Any:  # noqa: ANN401 -- any JSON value
        """Like `post`, with DELETE and without a body."""
        return self.post(path, method="DELETE")

    def health(self, path: str, *, answer_s: float = 4.0) -> Health:
        """Return whether the till answers a GET of `path`: enough for `ReportsHealth`.

        It waits for at most `answer_s`, or for the client's own `answer_s` if that is shorter.
        """
        try:
            self.get(path, answer_s=min(answer_s, self._answer_s))
        except StoreClosed as failure:
            return Health(online=True, closed=failure.message)
        except PosFailure as failure:
            return Health(online=False, detail=failure.message, fix=failure.fix)
        return Health(online=True)

    def close(self) -> None:
        """Close all connections; one that is in use is closed after its answer."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection, _since in idle:
            connection.close()

    # -- below JSON: for tills that speak something else

    def exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        changes: bool,
        answer_s: float | None = None,
    ) -> HttpAnswer:
        """Return the answer, whatever its status. Raises NoAnswer.

        `changes` says that the request must not be repeated. Only if it is False, a connection is
        reused; a dead one is then replaced.
        """
        target = self._target(path, query)
        sent = {"Accept": "application/json", **self._headers, **(headers or {})}
        limit_s = self._answer_s if answer_s is None else answer_s
        idle = None if changes else self._idle_connection()
        if idle is not None:
            began = time.monotonic()
            try:
                return self._ask(idle, method, target, body, sent, limit_s)
            except NoAnswer:
                if time.monotonic() - began > limit_s / 2:
                    raise  # it is the till that is slow, and not the connection that is dead
        return self._ask(self._connected(), method, target, body, sent, limit_s)

    def _asked(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        *,
        changes: bool,
        answer_s: float | None,
    ) -> HttpAnswer:
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            return self.exchange(
                method, path, query, body=body, headers=headers, changes=changes, answer_s=answer_s
            )
        except NoAnswer as failure:
            raise _unanswered(failure, changes=changes) from failure

    def _json(self, answer: HttpAnswer, *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        try:
            body = json_of(answer.content)
        except ValueError as failure:
            if 200 <= answer.status <= 299:
                text = _("{name} answers with something that is no JSON.").format(name=self._name)
                raise _unanswered(NoAnswer(text, sent=True), changes=changes) from failure
            body = None
        if 200 <= answer.status <= 299:
            return body
        raise _refusal(self._name, answer, body, changes=changes)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limit_s: float,
    ) -> HttpAnswer:
        done = False
        try:
            with _Deadline(connection.sock, limit_s):
                connection.request(method, target, body, dict(headers))
                with contextlib.closing(connection.getresponse()) as response:
                    chunked = response.chunked
                    content = response.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise NoAnswer(
                    _("{name} answers with more than {size} MB.").format(
                        name=self._name, size=MOST_BYTES >> 20
                    ),
                    sent=True,
                )
            # http.client takes a hang-up for the end, of the head as of a body of unknown length;
            # and read() does not say that it got less than was announced.
            if response.length or (response.length is None and not chunked and not content):
                raise http.client.IncompleteRead(content)
            done = not response.will_close
        except (OSError, http.client.HTTPException) as failure:
            raise NoAnswer(_described(self._name, failure, limit_s), sent=True) from failure
        finally:
            if done:
                self._keep(connection)
            else:
                connection.close()
        named = {name.lower(): value for name, value in response.headers.items()}
        return HttpAnswer(response.status, content, named)

    def _connected(self) -> http.client.HTTPConnection:
        connection = (
            http.client.HTTPConnection(self._host, self._port, timeout=self._connect_s)
            if self._trust is None
            else http.client.HTTPSConnection(
                self._host, self._port, timeout=self._connect_s, context=self._trust
            )
        )
        try:
            connection.connect()
        except (OSError, UnicodeError) as failure:
            connection.close()
            text = _described(self._name, failure, self._connect_s)
            raise NoAnswer(text, sent=False) from failure
        return connection

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        """Return the connection that was used last, if the till will still have it open."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is None:
            return None
        connection, since = found
        if time.monotonic() - since <= _REUSED_FOR_S:
            return connection
        connection.close()
        return None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        target = self._path + quote(path, safe=_IN_PATH)
        return f"{target}?{urlencode(query)}" if query else target


class _Deadline:
    """Cuts a connection off after that many seconds, also where the till drips byte by byte."""

    def __init__(self, sock: socket.socket, limit_s: float) -> None:
        self._sock = sock
        self._limit_s = limit_s
        self._late = False
        self._timer = threading.Timer(limit_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._sock.settimeout(self._limit_s)
        self._timer.start()

    def __exit__(self, *_failure: object) -> None:
        self._timer.cancel()
        if self._late:
            raise TimeoutError

    def _cut(self) -> None:
        self._late = True
        with contextlib.suppress(OSError):  # it has been closed meanwhile
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


def json_of(content: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the JSON in the body of an answer, with exact numbers; None for an empty body.

    Raises ValueError.
    """
    if not content.strip():
        return None
    try:
        return json.loads(
            content, parse_float=parse_json_float, parse_int=parse_json_int, parse_constant=_refuse
        )
    except RecursionError as failure:
        raise ValueError("it is nested too deeply") from failure


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _number(value: object) -> float | str:
    """Return a Decimal as the JSON number that says the same."""
    if isinstance(value, Decimal) and len(value.as_tuple().digits) <= _EXACT_DIGITS:
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _parts(base_url: str) -> tuple[bool, str, int | None, str]:
    """Return whether it is secure, host, port, path. Raises ValueError."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.username or parts.password:
        raise ValueError(_("The address holds a password: give it an option of its own."))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(
            _(
                "{url!r} is no address of a till; it looks like http://192.168.1.20:8080/api."
            ).format(url=base_url)
        )
    path = quote(parts.path.rstrip("/"), safe=_IN_PATH)
    return parts.scheme == "https", parts.hostname, port, path


def _check_header(name: str, value: str) -> None:
    """Refuse what http.client would refuse with the value, which may be a secret, in its words."""
    if not value.isprintable() or not value.isascii():
        raise ValueError(
            _("What is to be sent as {name} holds a line break or odd characters.").format(
                name=name
            )
        )


def _described(name: str, failure: Exception, limit_s: float) -> str:
    match failure:
        case TimeoutError():
            return _("{name} has not answered for {limit_s:g} seconds.").format(
                name=name, limit_s=limit_s
            )
        case ConnectionRefusedError():
            return _("Nobody answers at the address of {name}.").format(name=_inside(name))
        case ssl.SSLCertVerificationError():
            return _("The certificate of {name} is not trusted ({why}).").format(
                name=_inside(name), why=failure.verify_message
            )
        case socket.gaierror():
            return _("The name in the address of {name} is not known on this network.").format(
                name=_inside(name)
            )
        case http.client.HTTPException():
            return _("{name} broke off its answer.").format(name=name)
        case _:
            why = failure.strerror if isinstance(failure, OSError) else ""
            return _("There is no connection to {name} ({why}).").format(
                name=_inside(name), why=why or type(failure).__name__
            )


def _inside(name: str) -> str:
    """Return the name as it stands within a sentence."""
    return _("the till") if name == "The till" else name


def _unanswered(failure: NoAnswer, *, changes: bool) -> PosFailure:
    if changes and failure.sent:
        return TicketOutcomeUnknown(failure.text, fix=failure.fix)
    return PosOffline(failure.text, fix=failure.fix)


def _refusal(name: str, answer: HttpAnswer, body: object, *, changes: bool) -> PosFailure:
    """Return what a status means that is not of the 200s: the table in docs/adapters/writing.md."""
    status = answer.status
    words = printable(masked(" ".join(_messages_in(body))), most=_LONGEST_WORDS)
    said = _("{name} answers with status {status}").format(name=name, status=status) + (
        f": {words}" if words else "."
    )
    if status in {401, 403, 407}:
        return PosOffline(
            _("{name} refuses the login (status {status}).").format(name=name, status=status),
            fix=_LOGIN_FIX,
        )
    if 300 <= status <= 399:
        return PosOffline(
            _("{name} sends elsewhere (status {status}).").format(name=name, status=status),
            fix=_ADDRESS_FIX,
        )
    if status == 423:
        return StoreClosed(words or _("{name} takes no orders now.").format(name=name))
    if status == 429:
        return PosOffline(_("{name} is busy (status 429).").format(name=name))
    if status == 408 or not 400 <= status <= 499:
        return _unanswered(NoAnswer(said, sent=True), changes=changes)
    if changes:
        return HttpRefused(words or said, status, body)
    return PosOffline(said, fix=_ADDRESS_FIX if status == 404 else "")


def _messages_in(body: object) -> Iterator[str]:
    """Yield what a body of JSON says for people, by the names that tills use for it."""
    match body:
        case str():
            yield body
        case list():
            for each in body:
                yield from _messages_in(each)
        case dict():
            found = next((body[name] for name in _WORDS if body.get(name)), None)
            yield from _messages_in(found)
