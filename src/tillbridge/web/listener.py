"""The second listener: the page, JSON, metrics, the OAuth callback, and commands."""

import asyncio
import contextlib
import hmac
import json
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from json import JSONDecodeError
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from aiohttp import web

from tillbridge.config.values import host_and_port, is_loopback
from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError, ConfigError, own_defect, reason_of
from tillbridge.core.files import create_new
from tillbridge.core.i18n import (
    Reader,
    _,
    in_zone,
    languages,
    localised,
    of_browser,
    reader,
    reading,
)
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.core.network import Acceptor, listening_sockets, port_taken
from tillbridge.core.operation import BadRequest, Dispatcher
from tillbridge.core.started import CONTROL_FILE, ZONE_HEADER
from tillbridge.stores.consent import callback_place
from tillbridge.web.authenticator import Authenticator, Denied, Visitor
from tillbridge.web.metrics import CONTENT_TYPE, exposition
from tillbridge.web.rendering import HEADERS, PICTURES, STATIC, OnCallback, callback_page
from tillbridge.web.site.site import LANGUAGE_COOKIE, Site

# -- Live updates by server-sent events: a browser is notified of a change, and reloads.
#
# Only transitions are sent: while nothing is committed to the ledger, a stream costs a comment
# every 15 seconds. Streams are bounded in number, and end at once when the bridge does.


_BEAT_S = 15.0
_GATHER_S = 0.3  # what happens together is sent once
_SLOW_S = 10.0  # a browser that takes longer to read a line is gone
_MOST = 24
_MOST_EACH = 4  # of one browser; its own limit is six connections


class LiveHub:
    """Notifies every open stream of each change. Used from the event loop.

    `subscribe` is given whom to call whenever something may look different, once somebody looks.
    """

    def __init__(
        self,
        subscribe: Callable[[Callable[[], None]], None] | None = None,
        *,
        beat_s: float = _BEAT_S,
    ) -> None:
        self._subscribe = subscribe
        self._beat_s = beat_s
        self._run = secrets.token_hex(4)  # a page of an earlier run is never as things are now
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

    def version(self) -> str:
        """Return what a page that is made now carries: its stream says whether it still holds."""
        if self._subscribe is not None:
            self._subscribe(self.change)
            self._subscribe = None
        return f"{self._run}-{self._version}"

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
        await _write(response, f"retry: 3000\nevent: hello\ndata: {self.version()}\n\n")
        sent = self._version
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
                await _write(response, f"event: change\ndata: {self.version()}\n\n")


def _is_there(request: web.Request) -> bool:
    transport = request.transport
    return transport is not None and not transport.is_closing()


async def _write(response: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(_SLOW_S):
        await response.write(text.encode())


class HeldAddress:
    """Listens on one address until `close`; each run of the bridge gets sockets of its own.

    While none of them is served, a browser that comes waits in the queue of the socket.
    """

    def __init__(self) -> None:
        self._at = ("", 0)
        self._sockets: list[socket.socket] = []

    async def sockets(self, host: str, port: int) -> list[socket.socket]:
        """Return sockets that listen there, to be closed by whoever serves them. Raises OSError.

        Asked for the same address again, they are those of before, also where port 0 chose one.
        """
        if self._at != (host, port) or not self._sockets:
            self.close()
            self._sockets = await listening_sockets(host, port)
            self._at = (host, port)
        return [each.dup() for each in self._sockets]

    def close(self) -> None:
        """Let go of the address."""
        for each in self._sockets:
            each.close()
        self._sockets = []


CONTROL = r"/control/{operation:[\w.]+}"
_STATIC_NAME = re.compile(r"[a-z0-9-]+\.(?:css|js|png|svg)")
_MOST_CONNECTIONS = 128
_KEEPALIVE_S = 75.0
_A_YEAR = "max-age=31536000, immutable"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = get_logger()


@dataclass(frozen=True, slots=True)
class MerchantReturn:
    """Where a merchant comes back to after consent: the path of redirect_uri, and who takes it."""

    path: str
    on_callback: OnCallback


class StatusListener:
    """Serves the technician's page on `host:port` until it is closed.

    `token` is what commands of this user have. `merchant` is None if another port serves
    redirect_uri. `on_change` is given whom to call whenever something may look different. While the
    bridge `is_parting`, since another run takes over, no connection stays open.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        authenticator: Authenticator,
        *,
        token: str,
        metrics: Metrics,
        merchant: MerchantReturn | None = None,
        on_change: Callable[[Callable[[], None]], None] | None = None,
        is_parting: Callable[[], bool] = lambda: False,
        only_setup: bool = False,
    ) -> None:
        self.authenticator = authenticator
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._is_parting = is_parting
        self._token = token
        self._hub = LiveHub(on_change)
        application = web.Application(middlewares=[self._guarded], client_max_size=65_536)
        application.add_routes(
            [
                web.get("/api/status", self._api_status),
                web.get("/metrics", self._prometheus),
                web.get("/healthz", self._healthz),
                web.get("/events", self._events),
                web.get("/static/{name}", self._static),
                web.post(CONTROL, self._command),
            ]
        )
        if merchant is not None:
            application.router.add_get(merchant.path, _consent_callback(merchant.on_callback))
        self._site = Site(
            dispatcher, authenticator, version=self._hub.version, only_setup=only_setup
        )
        application.add_routes(self._site.routes())
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=_KEEPALIVE_S,
            shutdown_timeout=2,
        )
        self._acceptor: Acceptor | None = None

    async def start(self, host: str, port: int, held: HeldAddress | None = None) -> tuple[str, int]:
        """Listen; return the address, whose port is a real one also for port 0. Raises OSError.

        Where the address is `held`, whoever came while nobody served it is served now.
        """
        await self._runner.setup()
        server = cast("web.Server", self._runner.server)  # there since the setup
        sockets = await (
            listening_sockets(host, port) if held is None else held.sockets(host, port)
        )

        def free_slot() -> bool:
            server.connections[0].close()  # the oldest; one that has a request finishes it first
            return len(server.connections) < 2 * _MOST_CONNECTIONS

        self._acceptor = Acceptor(
            sockets,
            server,
            max_connections=_MOST_CONNECTIONS,
            connections=lambda: len(server.connections),
            free_slot=free_slot,
        )
        self._acceptor.start()
        address, actual = sockets[0].getsockname()[:2]
        log.info("status_page.listening", address=address, port=actual)
        return address, actual

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return what runs beside it, after `start`; each is supervised."""
        acceptor = self._acceptor
        return {} if acceptor is None else {"status_page.accept": acceptor.until_failure()}

    async def close(self) -> None:
        """Stop listening, and end what is live at once."""
        self._hub.close()
        if self._acceptor is not None:
            await self._acceptor.close()
        await self._runner.cleanup()

    async def _command(self, request: web.Request) -> web.StreamResponse:
        """Perform an operation for a command, which has the token that only this user can read.

        A `BridgeError` is answered 409 with `error: {kind, text, fix}`, a defect 500 with the same.
        """
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return _refused(401, "Unauthorised", "No.")
        # As the command says itself; only the bridge's user has the token.
        user = re.sub(r"[^\w.@-]", "", request.headers.get("X-Tillbridge-User", ""))[:64]
        actor = Actor(f"command:{user or '?'}", Role.TECHNICIAN)
        try:
            body = await request.json() if request.can_read_body else {}
        except (JSONDecodeError, UnicodeDecodeError):
            return _refused(400, "BadRequest", _NOT_UNDERSTOOD.format("it is not JSON"))
        if not isinstance(body, dict):
            return _refused(400, "BadRequest", _NOT_UNDERSTOOD.format("it is not an object"))
        name = request.match_info["operation"]
        zone = self._dispatcher.zone(str(body.get("store", "")))
        in_zone(zone)
        try:
            answer = localised(await self._dispatcher.perform(name, body, actor))
            # What the command says itself of a time is in the same zone.
            headers = {ZONE_HEADER: zone.key} if isinstance(zone, ZoneInfo) and zone.key else {}
            return web.json_response(answer, headers=headers)
        except BadRequest as failure:
            return _refused(400, "BadRequest", failure.text, failure.fix)
        except BridgeError as failure:
            # The name by which a command knows what to end with.
            kind = "ConfigError" if isinstance(failure, ConfigError) else type(failure).__name__
            return _refused(409, kind, failure.text, failure.fix)
        except Exception as failure:
            log.exception("status_page.failed", path=request.path)
            defect = own_defect(failure)
            return _refused(500, "Defect", defect.text, defect.fix)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        def welcome() -> bool:
            return isinstance(self.authenticator.visitor(request, person=False), Visitor)

        visitor = self.authenticator.visitor(request, person=False)
        if not isinstance(visitor, Visitor):
            return _turned_away(visitor)
        return await self._hub.stream(request, self.authenticator.browser(request), welcome)

    async def _api_status(self, request: web.Request) -> web.StreamResponse:
        visitor = await self.authenticator.machine(request)
        if not isinstance(visitor, Visitor):
            return _turned_away(visitor)
        answer = await self._dispatcher.perform("status", {}, visitor.actor)
        return web.json_response(localised(answer))

    async def _prometheus(self, request: web.Request) -> web.StreamResponse:
        visitor = await self.authenticator.machine(request)
        if not isinstance(visitor, Visitor):
            return _turned_away(visitor)
        measures = await self._dispatcher.perform("status.measures", {}, visitor.actor)
        text = exposition(measures, self._metrics)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        found = [each / name for each in (STATIC, PICTURES) if (each / name).is_file()]
        if not _STATIC_NAME.fullmatch(name) or not found:
            raise web.HTTPNotFound
        # Its address changes with its content.
        headers = {"Cache-Control": _A_YEAR} if request.query_string else {}
        return web.FileResponse(found[0], headers=headers)

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer only to known names, which stops DNS rebinding, and set the headers."""
        if not self.authenticator.knows_host(request):
            return web.Response(status=421, text=_UNKNOWN_NAME)
        try:
            with reading(_reader_of(request)):
                response = await handler(request)
        except web.HTTPException as refusal:
            response = web.Response(status=refusal.status, text=f"{refusal.status}\n")
        except BridgeError as failure:
            log.error("status_page.failed", path=request.path, error=str(failure))
            response = web.Response(status=503, text=f"{failure}\n")
        except Exception:  # a defect of ours, which must not show itself to strangers
            log.exception("status_page.failed", path=request.path)
            response = web.Response(status=500, text=_DEFECT)
        if self._is_parting():
            response.force_close()
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response


def _reader_of(request: web.Request) -> Reader:
    """Return who reads the answer: in the language of the choice made here, else the browser's."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    asked = request.headers.get("Accept-Language", "")
    if chosen in languages():
        return Reader(of_browser(f"{chosen},{asked}" if not asked.startswith(chosen) else asked))
    return Reader(of_browser(asked)) if asked else reader()


def _refused(status: int, kind: str, text: str, fix: str = "") -> web.Response:
    error = {"kind": kind, "text": str(text), "fix": str(fix)}
    return web.json_response({"error": error}, status=status)


_NOT_UNDERSTOOD = "The request is not understood: {}."
_DEFECT = "This page has a defect. The bridge goes on; its log has the details.\n"
_UNKNOWN_NAME = (
    "This page answers to 127.0.0.1 and localhost, to the address it listens on, and to the names\n"
    "in allowed_hosts of [status_page] in bridge.toml. Open it by one of them, or add this one.\n"
)


def _turned_away(turned: Denied | None) -> web.Response:
    if turned is not None:
        return web.Response(status=turned.status, text=f"{turned.text}\n")
    return web.Response(
        status=401,
        text="Sign in first: a user of [status_page.users], by HTTP Basic.\n",
        headers={"WWW-Authenticate": 'Basic realm="tillbridge", charset="UTF-8"'},
    )


def _consent_callback(on_callback: OnCallback) -> _Handler:
    """Return who answers a merchant who comes back from the service."""

    async def handle(request: web.Request) -> web.Response:
        with reading(_reader_of(request)):
            answer = await on_callback(dict(request.query))
            return web.Response(
                status=200 if answer.ok else 400,
                text=callback_page(answer),
                content_type="text/html",
                headers=HEADERS,
            )

    return handle


def path_on_status_page(redirect_uri: str, listen: str) -> str:
    """Return the path of `redirect_uri` that the status listener serves, "" for none."""
    place = callback_place(redirect_uri)
    host, port = host_and_port(listen)
    here = is_loopback(host) or host in {"0.0.0.0", "::"}  # noqa: S104 -- recognised, not listened on
    return place.path if here and place.port == port else ""


@asynccontextmanager
async def redirect_listener(redirect_uri: str, on_callback: OnCallback) -> AsyncIterator[None]:
    """Listen on the address of `redirect_uri`, and on no other path. Raises ConfigError."""
    place = callback_place(redirect_uri)
    application = web.Application()
    application.router.add_get(place.path, _consent_callback(on_callback), allow_head=False)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, place.host, place.port).start()
        except OSError as failure:
            other = _("give redirect_uri the port of status_page.listen")
            holder, fix = port_taken(place.port, other, failure)
            raise ConfigError(
                _("Nothing can listen at redirect_uri {uri}: {detail}{holder}.").format(
                    uri=redirect_uri, detail=reason_of(failure), holder=holder
                ),
                fix=fix,
            ) from failure
        yield
    finally:
        await runner.cleanup()


def reached_at(address: str) -> str:
    """Return where this machine reaches a listener on `address`, as a URL writes it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.is_unspecified:
        return "[::1]" if found.version == 6 else "127.0.0.1"
    return f"[{address}]" if found.version == 6 else address


@contextlib.contextmanager
def announced(data_dir: Path, *, url: str, token: str) -> Iterator[None]:
    """Announce the address to commands while the body runs: a file only this user can read."""
    path = data_dir / CONTROL_FILE
    try:
        fresh = path.with_name(f".{path.name}.new")
        with os.fdopen(create_new(fresh, 0o600), "w") as file:
            json.dump({"url": url, "token": token, "pid": os.getpid()}, file)
        fresh.replace(path)  # it appears whole
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(path=path, detail=reason_of(failure)),
            fix=_(
                "Give the bridge's user permission to write to {folder}, free disk space there, "
                "or repair the disk. Then start the bridge again."
            ).format(folder=data_dir),
        ) from failure
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        except OSError as failure:
            # Commands find out by themselves that nobody answers there.
            log.warning("control.left_behind", file=str(path), detail=reason_of(failure))
