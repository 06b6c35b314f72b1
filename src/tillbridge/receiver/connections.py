"""The receiver's connections, with deadlines, and the certificate for direct TLS.

aiohttp does not disconnect slow senders and slow readers.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from enum import IntEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from tillbridge.config.bridge import ReceiverSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemTracker

log = get_logger()

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_SLOW_BODY_S = 1.0  # the service sends a delivery's body together with its head
_LINGER_S = 2.0  # how long to read the rest of a refused body, so that the sender gets the answer
WARN_DAYS = 14
_DAY_MS = 86_400_000
_CERTIFICATE_CODES = frozenset(
    {
        "receiver.certificate_ending",
        "receiver.certificate_expired",
        "receiver.certificate_broken",
    }
)
SERVER = {"Server": "tillbridge"}  # without a version: nobody outside needs it
_HEAD_OF_200 = b"HTTP/1.1 200 OK\r\nServer: tillbridge\r\nContent-Length: 0\r\nDate: "


class _Acknowledged(web.Response):
    """The 200 to a delivery, which holds nothing: one object answers them all."""

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays open; whoever ends it gets an answer of its own."""
        return True


ACKNOWLEDGED = _Acknowledged()


class _Phase(IntEnum):
    """A connection's phase; higher ones matter more."""

    IDLE = 0  # between two requests
    HEAD = 1  # waiting for a request's head
    REQUEST = 2  # a request is being answered


class DeadlineServer(web.Server):
    """An HTTP server with a deadline for each request's head and for each answer.

    If there are too many connections, `free_slot` closes one.
    """

    def __init__(self, handler: Handler, settings: ReceiverSettings) -> None:
        super().__init__(
            handler,
            request_factory=_request,
            access_log=None,
            keepalive_timeout=settings.keepalive_s,
            lingering_time=_LINGER_S,
            auto_decompress=False,  # signatures are over the bytes as sent
        )
        self._settings = settings
        self.open: dict[_Connection, None] = {}

    def __call__(self) -> web.RequestHandler:
        """Return the protocol for an accepted connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    async def enforce_deadlines(self) -> None:
        """Abort what is late, until cancelled.

        Checks all connections once a second: a timer for each request costs as much as verifying
        it.
        """
        limit_s = self._settings.head_timeout_s
        while True:
            await asyncio.sleep(min(1.0, limit_s / 4))
            for connection in list(self.open):
                connection.enforce_deadline(limit_s)

    def free_slot(self) -> bool:
        """Close the connection that matters least; False if each has a delivery under way.

        A stranger goes before whoever has sent a delivery with a good signature, an idle one
        before one that is slow, and the one that has been so for longest first.
        """
        now = self._loop.time()
        candidates = [each for each in self.open if each.may_be_closed(now)]
        if not candidates:
            return False
        min(candidates, key=lambda each: (each.trusted, each.phase, each.since)).abort()
        return True


class _Connection(web.RequestHandler):
    """One connection with its phase and when that began."""

    def __init__(self, server: DeadlineServer, **options: Any) -> None:  # noqa: ANN401 -- aiohttp's own
        super().__init__(server, **options)
        self._server = server
        self.phase, self.since = _Phase.HEAD, self._loop.time()
        self.body: StreamReader | None = None
        self.goes_on = False  # whether another request may follow this one
        self._held = False  # whether the peer was too fast, so that nothing more is read
        # aiohttp forgets its own when it closes, though the peer may never read what was written.
        self._link: asyncio.Transport | None = None
        # Since when the peer has not read anything of an answer.
        self._full_since: float | None = None
        self._closing_since: float | None = None
        self.trusted = False  # whether it has carried a delivery with a good signature

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._link = cast("asyncio.Transport", transport)
        self._server.open[self] = None

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.open.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.phase is _Phase.IDLE:
            self.phase, self.since = _Phase.HEAD, self._loop.time()

    def pause_reading(self) -> None:
        super().pause_reading()
        self._held = True

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 -- aiohttp's signature
        # aiohttp calls this after each body, and would parse nothing where nothing is held back.
        if self._held:
            self._held = False
            super().resume_reading(resume_parser)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._full_since = None

    def enforce_deadline(self, limit_s: float) -> None:
        """Abort the connection if its peer is too slow in sending a head or reading an answer."""
        now = self._loop.time()
        if self._link is not None and self._link.is_closing():
            self._closing_since = self._closing_since or now
        head_since = self.since if self.phase is _Phase.HEAD else None
        waits = (head_since, self._full_since, self._closing_since)
        if any(since is not None and now - since >= limit_s for since in waits):
            self.abort()

    def may_be_closed(self, now: float) -> bool:
        """Return whether no request could be lost that comes as fast as the service's do."""
        if self.phase is _Phase.REQUEST:
            arrived = self.body is None or self.body.is_eof()
            return not arrived and now - self.since >= _SLOW_BODY_S
        return True

    def abort(self) -> None:
        """Close the connection immediately, even if part of an answer has not been read."""
        self._server.open.pop(self, None)
        if self._link is not None:
            self._link.abort()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        link = self.transport
        try:
            if resp is ACKNOWLEDGED:
                ends = link is None or link.is_closing() or not self.goes_on
                if link is not None and not ends and not link.get_write_buffer_size():
                    # At once, where aiohttp would prepare a stream of it for some 10 µs.
                    date = rfc822_formatted_time().encode("ascii")
                    link.write(_HEAD_OF_200 + date + b"\r\n\r\n")
                    return resp, False
                resp = web.Response(headers=SERVER)  # it ends, or the peer reads too slowly
            return await super().finish_response(request, resp, start_time)
        finally:
            self.body = None
            self.phase, self.since = _Phase.IDLE, self._loop.time()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 -- aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 -- (as above)
    ) -> web.StreamResponse:
        """Answer what is not HTTP, without a log line for every scan from the internet."""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR and exc is not None:
            self.log_exception("Error handling request", exc_info=exc)
        answer = web.Response(status=status, text=f"{HTTPStatus(status).phrase}\n", headers=SERVER)
        answer.force_close()
        return answer


def trust(request: web.BaseRequest) -> None:
    """Note that the sender knows a webhook secret: its connection is closed last."""
    cast("_Connection", request.protocol).trusted = True


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """Return the request for a head that has arrived: its body has a deadline of its own."""
    connection, loop = cast("_Connection", protocol), task.get_loop()
    connection.body = payload
    connection.goes_on = (
        message.version == HttpVersion11 and not message.should_close and not message.upgrade
    )
    connection.phase, connection.since = _Phase.REQUEST, loop.time()
    return web.BaseRequest(message, payload, protocol, writer, task, loop)


# -- the certificate for direct TLS


class LiveCertificate:
    """The receiver's own certificate: `context` follows its PEM files, without a restart.

    A new pair is first tried in a separate context; only a valid one replaces the present one. New
    connections use it, and open ones continue unchanged. Raises ConfigError at first.
    """

    def __init__(self, certificate: Path, key: Path, tracker: ProblemTracker, clock: Clock) -> None:
        self._certificate = certificate
        self._key = key
        self._tracker = tracker
        self._clock = clock
        self._broken = ""
        self._seen = self._stamp()
        try:
            self.context, self._ends_ms = self._checked()
        except (OSError, ValueError) as failure:
            raise ConfigError(
                _("receiver.tls_cert: the certificate cannot be used: {detail}.").format(
                    detail=self._why(failure)
                ),
                fix=_("Name the PEM files of a certificate (with its chain) and of its key."),
            ) from None

    async def look(self) -> None:
        """Load a new pair if there is one, and report how long the current one is valid."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                _tried, ends_ms = self._checked()
                self.context.load_cert_chain(self._certificate, self._key)
            except (OSError, ValueError) as failure:
                self._broken = self._why(failure)
            else:
                self._ends_ms, self._broken = ends_ms, ""
                days = (ends_ms - self._clock.now_ms()) // _DAY_MS
                log.info("receiver.certificate_reloaded", days=days)
        self.report()

    def report(self) -> None:
        """Report what is wrong with the certificate."""
        found = []
        left_ms = self._ends_ms - self._clock.now_ms()
        if left_ms <= 0:
            found.append(Found("receiver.certificate_expired"))
        elif left_ms < WARN_DAYS * _DAY_MS:
            found.append(Found("receiver.certificate_ending", detail={"days": left_ms // _DAY_MS}))
        if self._broken:
            found.append(Found("receiver.certificate_broken", detail={"detail": self._broken}))
        self._tracker.report(Scope("", _CERTIFICATE_CODES), found)

    def _stamp(self) -> list[tuple[int, int, int]]:
        """Return values that change when a file does."""
        stamp = []
        for path in (self._certificate, self._key):
            with contextlib.suppress(OSError):
                found = path.stat()
                stamp.append((found.st_mtime_ns, found.st_size, found.st_ino))
        return stamp

    def _checked(self) -> tuple[ssl.SSLContext, int]:
        """Return a context with the present pair, and when the certificate expires (ms).

        Raises OSError (ssl.SSLError is one) or ValueError if the pair is invalid.
        """
        from cryptography import x509  # noqa: PLC0415 -- only needed if the receiver serves TLS itself

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key, password=_no_password)
        ends = x509.load_pem_x509_certificate(self._certificate.read_bytes()).not_valid_after_utc
        return context, int(ends.timestamp() * 1000)

    def _why(self, failure: Exception) -> str:
        if isinstance(failure, ssl.SSLError):
            if failure.reason == "KEY_VALUES_MISMATCH":
                return _("the key does not belong to the certificate")
            return _("the files are not a certificate and its key ({reason})").format(
                reason=failure.reason or "PEM"
            )
        if isinstance(failure, OSError):
            missing = [path for path in (self._certificate, self._key) if not path.is_file()]
            path = failure.filename or (missing[0] if missing else self._certificate)
            return f"{path}: {failure.strerror or failure}"
        return str(failure)


def _no_password() -> str:
    # Without this OpenSSL asks at the terminal, and a daemon would wait for ever.
    msg = "the key is protected by a password"
    raise ValueError(msg)
