"""Live updates by server-sent events: a browser is notified of a change, and reloads.

Only transitions are sent: while nothing is committed to the ledger, a stream costs a comment every
15 seconds. Streams are bounded in number, and end at once when the bridge does.
"""

import asyncio
import contextlib
from collections.abc import Callable

from aiohttp import web

_BEAT_S = 15.0
_GATHER_S = 0.3  # what happens together is sent once
_SLOW_S = 10.0  # a browser that takes longer to read a line is gone
_MOST = 24
_MOST_EACH = 4  # of one browser; its own limit is six connections


class LiveHub:
    """Notifies every open stream of each change. Used from the event loop."""

    def __init__(self, *, beat_s: float = _BEAT_S) -> None:
        self._beat_s = beat_s
        self._version = 0
        self._changed = asyncio.Event()
        self._closed = False
        self._streams: list[tuple[str, web.Request]] = []

    @property
    def streams(self) -> int:
        """How many streams are open."""
        # A browser that has gone is noticed at the next write; its place is free at once.
        self._streams = [each for each in self._streams if _is_there(each[1])]
        return len(self._streams)

    def change(self) -> None:
        """Record that something may look different now."""
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self.change()

    async def stream(
        self, request: web.Request, browser: str, welcome: Callable[[], bool]
    ) -> web.StreamResponse:
        """Serve one stream until it ends; `welcome` says whether the visitor may still look."""
        full = self.streams >= _MOST
        mine = sum(each == browser for each, _request in self._streams)
        if self._closed or full or mine >= _MOST_EACH:
            # 204 makes EventSource stop asking: the page then refreshes itself now and then.
            return web.Response(status=204)
        entry = (browser, request)
        self._streams.append(entry)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        try:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await response.prepare(request)
                await self._stream(response, welcome)
        finally:
            self._streams = [each for each in self._streams if each is not entry]
        return response

    async def _stream(self, response: web.StreamResponse, welcome: Callable[[], bool]) -> None:
        sent = self._version
        await _write(response, f"retry: 3000\nevent: hello\ndata: {sent}\n\n")
        while not self._closed:
            changed = self._changed
            if self._version == sent:
                try:
                    async with asyncio.timeout(self._beat_s):
                        await changed.wait()
                except TimeoutError:
                    await _write(response, ": here\n\n")
            if not welcome():
                await _write(response, "event: ended\ndata: \n\n")
                return
            if self._version != sent and not self._closed:
                await asyncio.sleep(_GATHER_S)
                sent = self._version
                await _write(response, f"event: change\ndata: {sent}\n\n")


def _is_there(request: web.Request) -> bool:
    transport = request.transport
    return transport is not None and not transport.is_closing()


async def _write(response: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(_SLOW_S):
        await response.write(text.encode())
