"""Listens for Star printers that poll (CloudPRNT): one port for all of this process.

The printer's address is `http://THIS_MACHINE:PORT/TOKEN`; whoever does not know the token learns
nothing. It is plain HTTP, for the restaurant's own network. aiohttp serves it in a loop and thread
of its own, so that a caller who is slow costs a connection and nobody's turn.
"""

import asyncio
import hmac
import json
import threading
from collections.abc import Coroutine
from typing import Any
from weakref import WeakSet

from aiohttp import web

from tillbridge_printer.cloud_queue import MEDIA_TYPE, PrintQueue
from tillbridge_printer.places import CloudPlace

_LONGEST_BODY = 64 * 1024
_BODY_S = 5.0
_IDLE_S = 30.0
_MOST_CALLERS = 64  # beyond them the oldest is closed: a printer comes again with its next poll
_START_S = 10.0
_CLOSE_S = 1.0
_SERVER = {"Server": "tillbridge"}  # callers need not know more of what serves them

_open: "dict[CloudPlace, _Listener]" = {}
_lock = threading.Lock()


def listen(place: CloudPlace, token: str) -> PrintQueue:
    """Return the queue of the printer that polls with this token. Raises OSError."""
    with _lock:
        listener = _open.get(place)
        if listener is None:
            listener = _Listener(place)
            _open[place] = listener
        queue, users = listener.queues.get(token, (PrintQueue(), 0))
        listener.queues[token] = (queue, users + 1)
        return queue


def release(place: CloudPlace, token: str) -> None:
    """Give the queue up; the last one closes the port."""
    with _lock:
        listener = _open.get(place)
        if listener is None or token not in listener.queues:
            return
        queue, users = listener.queues[token]
        if users > 1:
            listener.queues[token] = (queue, users - 1)
            return
        del listener.queues[token]
        if not listener.queues:
            del _open[place]
            listener.close()


class _Callers(web.Server):
    """Closes the caller that came first where there are too many."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- aiohttp's own
        super().__init__(*arguments, **options)
        self.links: WeakSet[asyncio.Transport] = WeakSet()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.links.add(transport)
        callers = self.connections
        if len(callers) > _MOST_CALLERS:
            callers[0].force_close()


class _Listener:
    def __init__(self, place: CloudPlace) -> None:
        self.queues: dict[str, tuple[PrintQueue, int]] = {}
        self._loop = asyncio.SelectorEventLoop()  # on Windows too: `_stop` needs `remove_reader`
        self._thread = threading.Thread(target=self._run, name="cloudprnt", daemon=True)
        self._thread.start()
        try:
            self._await(self._start(place))
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """Close the port; return once it is free."""
        self._await(self._stop())
        self._await(self._loop.shutdown_default_executor())
        self._end()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 -- whatever it returns
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    async def _start(self, place: CloudPlace) -> None:
        self._callers = _Callers(self._answer, access_log=None, keepalive_timeout=_IDLE_S)
        self._port = await self._loop.create_server(self._callers, place.host, place.port)

    async def _stop(self) -> None:
        # asyncio never closes a caller whom it accepted just before its server closed: accept no
        # more, and let those whom it has accepted arrive.
        for listening in self._port.sockets:
            self._loop.remove_reader(listening)
        await _turns()
        self._port.close()
        self._callers.pre_shutdown()
        await self._callers.shutdown(_CLOSE_S)
        for link in list(self._callers.links):
            link.abort()  # one whose caller reads no answer would never close
        await _turns()

    def _queue_of(self, path: str) -> PrintQueue | None:
        """Return the queue of a path, compared in constant time."""
        given = path.strip("/").encode("utf-8", "surrogateescape")
        for token, (queue, _users) in list(self.queues.items()):
            if hmac.compare_digest(given, token.encode()):
                return queue
        return None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        queue = self._queue_of(request.path)
        if queue is None:
            answer = _plain(404)
            answer.force_close()
            return answer
        if request.method == "POST":
            return await _polled(queue, request)
        if request.method == "GET":
            return await _fetched(queue, request)
        if request.method == "DELETE":
            query = request.query
            await asyncio.to_thread(queue.confirmed, query.get("token"), query.get("code", ""))
            return _plain(200)
        return _plain(405)


async def _turns() -> None:
    """Let the loop do what a new or closed connection does over several turns."""
    for _turn in range(3):
        await asyncio.sleep(0)


async def _polled(queue: PrintQueue, request: web.BaseRequest) -> web.Response:
    """Answer a poll: how the printer is, and whether there is a job."""
    length = request.content_length
    if length is None or length > _LONGEST_BODY:
        answer = _plain(411 if length is None else 413)
        answer.force_close()
        return answer
    try:
        async with asyncio.timeout(_BODY_S):
            document = json.loads(await request.content.read() or b"{}")
    except TimeoutError:
        return _plain(408)
    except (ValueError, RecursionError):
        return _plain(400)
    code = document.get("statusCode") if isinstance(document, dict) else None
    if not isinstance(code, str):
        return _plain(400)
    return web.json_response(await asyncio.to_thread(queue.polled, code), headers=_SERVER)


async def _fetched(queue: PrintQueue, request: web.BaseRequest) -> web.Response:
    """Hand the job out."""
    if request.query.get("type", MEDIA_TYPE) != MEDIA_TYPE:
        return _plain(415)
    data = await asyncio.to_thread(queue.fetched, request.query.get("token"))
    if data is None:
        return _plain(404)
    headers = {**_SERVER, "X-Star-Cut": "partial; feed=true"}
    return web.Response(body=data, content_type=MEDIA_TYPE, headers=headers)


def _plain(status: int) -> web.Response:
    return web.Response(status=status, headers=_SERVER)
