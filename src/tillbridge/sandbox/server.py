"""The service put together, and running: in a test's process, in the demo, or as a program."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import structlog
from aiohttp import web

# Each of these declares its endpoints.
from tillbridge.sandbox import (  # noqa: F401 (as said)
    control,
    control_traffic,
    oauth,
    panel,
    storefront,
    stores,
)
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import Mirror
from tillbridge.sandbox.endpoints import API, SITE
from tillbridge.sandbox.menus import Jobs
from tillbridge.sandbox.middleware import Traffic
from tillbridge.sandbox.orders import Orders
from tillbridge.sandbox.pages import STATIC, Pages, site_middleware
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.shops import Baskets
from tillbridge.sandbox.state import World
from tillbridge.sandbox.state_file import StateFile
from tillbridge.sandbox.tokens import Tokens
from tillbridge.sandbox.webhooks import Webhooks

_log = structlog.get_logger("tillbridge.sandbox")


class Sandbox:
    """One ordering service in memory. `world` and `clock` are for tests in the same process."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.settings = settings
        self.clock: Clock = Clock(settings.clock_speed)
        self.world = World(settings, self.clock)
        self.tokens: Tokens = Tokens(self.clock, settings)
        self.webhooks: Webhooks = Webhooks(self.clock, settings)
        self.jobs = Jobs(self.world)
        self.orders = Orders(self.world, self.webhooks)
        self.mirror = Mirror(self.world)
        self.traffic = Traffic(self.clock, settings)
        self.baskets = Baskets()
        self.pages = Pages()
        self.state_file: StateFile | None = None

    def reset(self) -> None:
        """Everything back to the seeds; the clock keeps its time and goes at its first speed."""
        self.webhooks.reset()
        self.jobs.reset()
        self.tokens.reset()
        self.baskets.reset()
        self.traffic.reset()
        self.clock.stop()
        self.clock.run_at(self.settings.clock_speed)
        self.world.reset()

    def app(self) -> web.Application:
        """The whole site: the API below its prefix, the control API, the pages."""
        settings, prefix = self.settings, self.settings.api_prefix
        api = web.Application(
            middlewares=[self.traffic.middleware()],
            client_max_size=settings.max_body_bytes,
        )
        api.add_routes(API.routes(self))
        site = web.Application(
            middlewares=[
                *([self.state_file.after_each_request] if self.state_file else []),
                site_middleware(self.pages, prefix),
            ],
            client_max_size=settings.max_body_bytes,
        )
        site.add_subapp(prefix, api)
        site.add_routes(SITE.routes(self))
        site.router.add_static("/static", STATIC)
        site.cleanup_ctx.append(self._running)
        return site

    async def _running(self, _app: web.Application) -> AsyncIterator[None]:
        await self.webhooks.start()
        yield
        if self.state_file is not None:
            self.state_file.save()
        self.clock.stop()
        await self.webhooks.stop()


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
    settings: SandboxSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    state: Path | None = None,
) -> RunningSandbox:
    """Listen and return.

    Port 0 takes a free one. What the file `state` holds is gone on with, and it is kept up to
    date. Raises `OSError` when the address cannot be had, `UnusableStateError`.
    """
    sandbox = Sandbox(settings or SandboxSettings())
    if state is not None:
        sandbox.state_file = StateFile(state, sandbox)
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
    state: Path | None = None,
    ready: Callable[[RunningSandbox], None] | None = None,
) -> None:
    """Serve until cancelled; `ready` is called once, when the sandbox listens."""
    running = await start(settings, host=host, port=port, state=state)
    try:
        if ready is not None:
            ready(running)
        await asyncio.Event().wait()
    finally:
        await running.stop()
