"""The redirect's end: a page for the merchant, and for `connect` a listener of its own.

The daemon's status listener answers the same address with `answer_callback`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.stores.consent import ConsentDesk

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",  # the address of this page holds the code
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """What the merchant's browser shows after consent: whether it worked, and one sentence."""

    ok: bool
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CallbackPage:
    """What the browser gets, and what came of it: a store that consented, or the failure."""

    status: int
    page: str
    store: str | None = None
    failure: BridgeError | None = None


async def answer_callback(desk: ConsentDesk, query: Mapping[str, str]) -> CallbackPage:
    """Finish a consent with the query of the redirect. Never raises for what a stranger sent."""
    state, code, error = query.get("state", ""), query.get("code", ""), query.get("error", "")
    try:
        if code:
            store = await desk.finish(code=code, state=state)
            return CallbackPage(
                200,
                _page(_("Thank you!"), _("The store is connected. You can close this page.")),
                store=store,
            )
        raise desk.decline(error=error, state=state)
    except BridgeError as failure:
        page = _page(_("That did not work"), str(failure))
        return CallbackPage(400, page, failure=failure)


def _page(title: str, text: str) -> str:
    # Once in a store's life: its table of entities need not weigh on every start.
    import html  # noqa: PLC0415 -- (as above)

    return (
        "<!doctype html><html><head><meta charset='utf-8'><title>tillbridge</title>"
        "<style>body{font:18px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;"
        "padding:0 1em}</style></head>"
        f"<body><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></body></html>"
    )


@dataclass(frozen=True, slots=True)
class CallbackPlace:
    """Where the redirect arrives: an address of this machine."""

    host: str
    port: int
    path: str


def callback_place(redirect_uri: str) -> CallbackPlace:
    """Return where to listen for `redirect_uri`; BridgeError unless it is http on loopback."""
    parts = urlsplit(redirect_uri)
    host = parts.hostname or ""
    if parts.scheme != "http" or not _is_loopback(host):
        raise BridgeError(
            _("redirect_uri {uri} is not an address of this machine.").format(uri=redirect_uri),
            fix=_("Use http://127.0.0.1:PORT/oauth/callback, and register it with the service."),
        )
    return CallbackPlace(host, parts.port or 80, parts.path or "/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def listening(redirect_uri: str, desk: ConsentDesk) -> AsyncIterator[asyncio.Future[str]]:
    """Listen on the redirect's address; the future tells the store, or the BridgeError.

    An answer with a foreign state gets a page that says so, and the listener goes on waiting.
    Raises BridgeError where the address is not loopback or already in use.
    """
    place = callback_place(redirect_uri)
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(request: web.Request) -> web.Response:
        ours = desk.awaits(request.query.get("state", ""))
        answer = await answer_callback(desk, request.query)
        if ours and not told.done():
            if answer.store is not None:
                told.set_result(answer.store)
            elif answer.failure is not None:
                told.set_exception(answer.failure)
        return web.Response(
            status=answer.status, text=answer.page, content_type="text/html", headers=HEADERS
        )

    app = web.Application()
    app.router.add_get(place.path, handle, allow_head=False)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await _bind(runner, place)
        yield told
    finally:
        if not told.cancel() and not told.cancelled():
            told.exception()  # asked for, so that nobody hears of it twice
        await runner.cleanup()


async def _bind(runner: web.AppRunner, place: CallbackPlace) -> None:
    try:
        await web.TCPSite(runner, place.host, place.port).start()
    except OSError as trouble:
        raise BridgeError(
            _("Nothing can listen on {host}:{port}: {detail}").format(
                host=place.host, port=place.port, detail=trouble.strerror or trouble
            ),
            fix=_("End what uses the port, or change redirect_uri."),
        ) from None
