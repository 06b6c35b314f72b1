"""Connections with deadlines: aiohttp leaves slow senders and surplus connections open."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from tillbridge.config import ReceiverSettings

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_LINGER_S = 2.0  # how long the rest of a refused body is read, so that the sender sees the answer


class DeadlineServer(web.Server):
    """Speaks HTTP, with a deadline for each request's head and a cap on connections."""

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
        self._open = 0

    def __call__(self) -> web.RequestHandler:
        """Make the protocol of a connection that was accepted."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    @property
    def head_timeout_s(self) -> float:
        """How long a sender may take for a request's head."""
        return self._settings.head_timeout_s

    def enter(self) -> bool:
        """Count a connection; False where it is one too many."""
        self._open += 1
        return self._open <= self._settings.max_connections

    def leave(self) -> None:
        """Count a connection that has ended."""
        self._open -= 1


class _Connection(web.RequestHandler):
    """One connection. A deadline runs from its start, and from each next request's first byte."""

    __slots__ = ("_busy", "_head_since", "_server", "_timer")

    def __init__(self, server: DeadlineServer, **options: Any) -> None:  # noqa: ANN401 -- aiohttp's own
        super().__init__(server, **options)
        self._server = server
        self._busy = False
        self._head_since: float | None = None  # None: no head is awaited
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._server.enter():
            self._await_head()
        elif self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.leave()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._busy and self._head_since is None:
            self._await_head()

    def head_arrived(self) -> None:
        """Let the request take its time from here on: its body has a deadline of its own."""
        self._busy = True
        self._head_since = None

    def _await_head(self) -> None:
        self._head_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._server.head_timeout_s, self._look)

    def _look(self) -> None:
        # One timer serves many requests: setting one for each would cost as much as verifying it.
        self._timer = None
        if self._head_since is None:
            return
        end = self._head_since + self._server.head_timeout_s
        if self._loop.time() >= end:
            self.force_close()
        else:
            self._timer = self._loop.call_at(end, self._look)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._busy = False

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


SERVER = {"Server": "tillbridge"}  # and no version: nobody outside needs to know it


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    cast("_Connection", protocol).head_arrived()
    return web.BaseRequest(message, payload, protocol, writer, task, task.get_loop())
