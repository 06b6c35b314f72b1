"""Connections with deadlines: aiohttp leaves slow senders, and slow readers, connected."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from tillbridge.config import ReceiverSettings

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_SLOW_BODY_S = 1.0  # the service sends a delivery's body with its head
_LINGER_S = 2.0  # how long the rest of a refused body is read, so that the sender sees the answer


class _Phase(Enum):
    HEAD = "the head of a request is awaited"
    REQUEST = "a request is being answered"
    IDLE = "between two requests"


class DeadlineServer(web.Server):
    """Speaks HTTP, with a deadline for each request's head and for each answer.

    Where there are more connections than may be, `make_room` closes one.
    """

    def __init__(self, handler: Handler, settings: ReceiverSettings) -> None:
        super().__init__(
            handler,
            request_factory=_request,
            access_log=None,
            keepalive_timeout=settings.keepalive_s,
            lingering_time=_LINGER_S,
            auto_decompress=False,  # a signature is of the bytes as they came
        )
        self._settings = settings
        self.open: dict[_Connection, None] = {}

    def __call__(self) -> web.RequestHandler:
        """Make the protocol of a connection that was accepted."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    async def enforce_deadlines(self) -> None:
        """Abort what is late, until cancelled.

        One look a second at all of them: a timer for each request costs as much as verifying it.
        """
        limit_s = self._settings.head_timeout_s
        while True:
            await asyncio.sleep(min(1.0, limit_s / 4))
            for connection in list(self.open):
                connection.enforce_deadline(limit_s)

    def make_room(self) -> bool:
        """Close the connection that matters least; False where each has a delivery under way.

        A stranger goes before whoever has sent a delivery with a good signature, an idle one
        before one that is slow, and the one that has been so for longest first.
        """
        now = self._loop.time()
        candidates = [each for each in self.open if each.may_be_closed(now)]
        if not candidates:
            return False
        min(candidates, key=_Connection.worth).abort()
        return True


class _Connection(web.RequestHandler):
    """One connection, which knows since when it is in which phase."""

    __slots__ = (
        "_body",
        "_closing_since",
        "_full_since",
        "_link",
        "_phase",
        "_server",
        "_since",
        "trusted",
    )

    def __init__(self, server: DeadlineServer, **options: Any) -> None:  # noqa: ANN401 -- aiohttp's own
        super().__init__(server, **options)
        self._server = server
        self._phase = _Phase.HEAD
        self._since = self._loop.time()
        self._body: StreamReader | None = None
        # aiohttp forgets its own when it closes, though what it wrote may never be read.
        self._link: asyncio.Transport | None = None
        self._full_since: float | None = None  # since when the peer reads nothing of an answer
        self._closing_since: float | None = None
        self.trusted = False  # whether a delivery with a good signature came by it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._link = cast("asyncio.Transport", transport)
        self._server.open[self] = None

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.open.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._phase is _Phase.IDLE:
            self._enter(_Phase.HEAD)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._full_since = None

    def head_arrived(self, body: StreamReader) -> None:
        """Let the request take its time from here on: its body has a deadline of its own."""
        self._body = body
        self._enter(_Phase.REQUEST)

    def enforce_deadline(self, limit_s: float) -> None:
        """Abort the connection where its peer sends a head, or reads an answer, too slowly."""
        now = self._loop.time()
        if self._link is not None and self._link.is_closing():
            self._closing_since = self._closing_since or now
        late = self._phase is _Phase.HEAD and now - self._since >= limit_s
        if late or any(
            since is not None and now - since >= limit_s
            for since in (self._full_since, self._closing_since)
        ):
            self.abort()

    def may_be_closed(self, now: float) -> bool:
        """Whether no request would be lost that comes as fast as the service's do."""
        if self._phase is _Phase.REQUEST:
            arrived = self._body is None or self._body.is_eof()
            return not arrived and now - self._since >= _SLOW_BODY_S
        return True

    def worth(self) -> tuple[bool, int, float]:
        """Return what connections are compared by; the least is closed first."""
        return self.trusted, _WORTH[self._phase], self._since

    def abort(self) -> None:
        """End the connection at once, whatever has not been read of an answer."""
        self._server.open.pop(self, None)
        if self._link is not None:
            self._link.abort()

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._since = self._loop.time()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._body = None
            self._enter(_Phase.IDLE)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 -- aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 -- (as above)
    ) -> web.StreamResponse:
        """Answer what is no HTTP, without a line in the log for each probe of the internet."""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR and exc is not None:
            self.log_exception("Error handling request", exc_info=exc)
        answer = web.Response(status=status, text=f"{HTTPStatus(status).phrase}\n", headers=SERVER)
        answer.force_close()
        return answer


_WORTH = {_Phase.IDLE: 0, _Phase.HEAD: 1, _Phase.REQUEST: 2}


def trust(request: web.BaseRequest) -> None:
    """Note that the request's sender knows a webhook secret: its connection is closed last."""
    cast("_Connection", request.protocol).trusted = True


SERVER = {"Server": "tillbridge"}  # and no version: nobody outside needs to know it


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    cast("_Connection", protocol).head_arrived(payload)
    return web.BaseRequest(message, payload, protocol, writer, task, task.get_loop())
