"""Running the sandbox: in a test's process, in the demo, or as a program of its own."""

import asyncio
from collections.abc import Callable

import structlog
from aiohttp import web

from tillbridge.sandbox.service import Sandbox
from tillbridge.sandbox.settings import SandboxSettings

_log = structlog.get_logger("tillbridge.sandbox")


class RunningSandbox:
    """A sandbox that listens.

    `url` is the site, `base_url` the API's root; both without a slash at the end.
    """

    def __init__(self, sandbox: Sandbox, runner: web.AppRunner, url: str) -> None:
        self.sandbox = sandbox
        self.url = url
        self.base_url = url + sandbox.settings.api_prefix
        self._runner = runner

    async def stop(self) -> None:
        """Stop listening and end every delivery; safe to call twice."""
        await self._runner.cleanup()


def create_app(settings: SandboxSettings | None = None) -> web.Application:
    """The sandbox as an aiohttp application, for a server of your own."""
    return Sandbox(settings or SandboxSettings()).app()


async def start(
    settings: SandboxSettings | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> RunningSandbox:
    """Listen and return.

    Port 0 takes a free one. Raises `OSError` when the address cannot be had.
    """
    sandbox = Sandbox(settings or SandboxSettings())
    runner = web.AppRunner(sandbox.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError:
        await runner.cleanup()
        raise
    bound = runner.addresses[0][1]
    shown = f"[{host}]" if ":" in host else host
    running = RunningSandbox(sandbox, runner, f"http://{shown}:{bound}")
    _log.info("sandbox.listening", url=running.url)
    return running


async def serve(
    settings: SandboxSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 9000,
    ready: Callable[[RunningSandbox], None] | None = None,
) -> None:
    """Serve until cancelled; `ready` is called once, when the sandbox listens."""
    running = await start(settings, host=host, port=port)
    try:
        if ready is not None:
            ready(running)
        await asyncio.Event().wait()
    finally:
        await running.stop()
