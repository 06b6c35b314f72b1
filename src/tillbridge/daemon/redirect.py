"""Where the merchant returns to, if that is not an address of the status listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tillbridge.config import host_and_port, is_loopback
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.stores.consent import callback_place
from tillbridge.web.pages import HEADERS, callback_page
from tillbridge.web.ports import OnCallback


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

    async def handle(request: web.Request) -> web.Response:
        answer = await on_callback(request.query)
        return web.Response(
            status=200 if answer.ok else 400,
            text=callback_page(answer),
            content_type="text/html",
            headers=HEADERS,
        )

    application = web.Application()
    application.router.add_get(place.path, handle, allow_head=False)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, place.host, place.port).start()
        except OSError as failure:
            raise ConfigError(
                _("Nothing can listen at redirect_uri {uri}: {detail}.").format(
                    uri=redirect_uri, detail=failure.strerror or failure
                ),
                fix=_("End what uses the port, or give redirect_uri that of status_page.listen."),
            ) from failure
        yield
    finally:
        await runner.cleanup()
