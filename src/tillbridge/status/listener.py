"""The second listener: page, JSON, metrics, the OAuth callback, and commands. Loopback only."""

import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from tillbridge.clock import Clock
from tillbridge.config import is_loopback
from tillbridge.errors import BridgeError
from tillbridge.log import get_logger
from tillbridge.status.control_routes import control_routes
from tillbridge.status.pages import HEADERS, STATIC, callback_page, status_page
from tillbridge.status.ports import Control, OnCallback
from tillbridge.tally import Tally

_HOST = re.compile(r"^\[?(.*?)\]?(?::\d+)?$")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = get_logger()


class StatusListener:
    """Serves the technician's page on `host:port` until it is closed.

    `callback_path` is the path of redirect_uri, "" where another port serves it.
    """

    def __init__(
        self,
        control: Control,
        *,
        token: str,
        tally: Tally,
        clock: Clock,
        callback_path: str = "",
        on_callback: OnCallback | None = None,
    ) -> None:
        self._control = control
        self._tally = tally
        self._clock = clock
        self._on_callback = on_callback
        application = web.Application(middlewares=[_guarded], client_max_size=65_536)
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/api/status", self._api_status),
                web.get("/metrics", self._prometheus),
                web.get("/healthz", self._healthz),
                web.get("/static/{name:style\\.css|icon\\.svg}", self._static),
                *control_routes(control, token),
            ]
        )
        if callback_path and on_callback is not None:
            application.router.add_get(callback_path, self._callback)
        self._runner = web.AppRunner(
            application, access_log=None, handle_signals=False, shutdown_timeout=2
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return the address, whose port is a real one also for port 0. Raises OSError."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        address, actual = self._runner.addresses[0][:2]
        log.info("status_page.listening", address=address, port=actual)
        return address, actual

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _page(self, _request: web.Request) -> web.StreamResponse:
        page = status_page(await self._control.status(), self._clock.now_ms())
        return web.Response(text=page, content_type="text/html")

    async def _api_status(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response(await self._control.status())

    async def _prometheus(self, _request: web.Request) -> web.StreamResponse:
        # A megabyte that a bridge nobody measures need not carry.
        from tillbridge.status.metrics import (  # noqa: PLC0415 -- see above
            CONTENT_TYPE,
            exposition,
        )

        text = exposition(await self._control.status(), self._tally)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / request.match_info["name"])

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        if self._on_callback is None:
            raise web.HTTPNotFound
        answer = await self._on_callback(dict(request.query))
        return web.Response(
            text=callback_page(answer),
            content_type="text/html",
            status=200 if answer.ok else 400,
        )


@web.middleware
async def _guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer only to this machine's own names, which stops DNS rebinding, and set the headers."""
    if not is_loopback(_HOST.sub(r"\1", request.headers.get("Host", ""))):
        return web.Response(status=421, text="This page answers only to 127.0.0.1 and localhost.\n")
    try:
        response = await handler(request)
    except web.HTTPException as refusal:
        response = web.Response(status=refusal.status, text=f"{refusal.status}\n")
    except BridgeError as failure:
        log.error("status_page.failed", path=request.path, error=str(failure))
        response = web.Response(status=503, text=f"{failure}\n")
    response.headers.update(HEADERS)
    return response
