"""What commands do while no daemon runs: operations under the ledger's lock, an examination."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tillbridge.config import LoadedSettings
from tillbridge.core.actor import Actor, Role
from tillbridge.core.daemon_threads import UnwaitedThreads
from tillbridge.core.operation import Answer, Dispatcher
from tillbridge.daemon.compose import compose, compose_read_only
from tillbridge.daemon.page import redirect_listener
from tillbridge.diagnostics.checkup import examination
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.operations.bridge import Bridge, Mode
from tillbridge.operations.connect import Connections

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices


async def perform_alone(
    loaded: LoadedSettings, name: str, arguments: Mapping[str, object], *, user: str = ""
) -> Answer:
    """Do an operation without a daemon. Raises LedgerLocked while one runs."""
    async with compose(loaded, Mode.EXCLUSIVE) as bridge:
        return await _dispatcher(bridge).perform(name, arguments, _actor(user))


@dataclass(frozen=True, slots=True)
class Session:
    """Operations one after another, between which the merchant's return is taken."""

    runner: asyncio.Runner
    dispatcher: Dispatcher
    actor: Actor

    def perform(self, name: str, arguments: Mapping[str, object]) -> Answer:
        """Do an operation."""
        return self.runner.run(self.dispatcher.perform(name, arguments, self.actor))

    def wait(self, seconds: float) -> None:
        """Let what was begun go on."""
        self.runner.run(asyncio.sleep(seconds))


@contextmanager
def connecting(loaded: LoadedSettings, store: str, *, user: str = "") -> Iterator[Session]:
    """Connect a store without a daemon. Raises LedgerLocked while one runs."""
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()

        async def begin() -> Bridge:
            bridge = await opened.enter_async_context(compose(loaded, Mode.EXCLUSIVE, only=[store]))
            bridge.connections = Connections(bridge, _nothing_more)
            redirect_uri = bridge.settings.service.redirect_uri
            await opened.enter_async_context(
                redirect_listener(redirect_uri, bridge.connections.returned)
            )
            return bridge

        try:
            yield Session(runner, _dispatcher(runner.run(begin())), _actor(user))
        finally:
            runner.run(opened.aclose())


def examine_alone(
    loaded: LoadedSettings, *, hung: bool, on_progress: Callable[[Answer], None]
) -> Answer:
    """Examine what can be seen without a daemon; `on_progress` is called twice a second.

    `hung`: a daemon is there, and does not answer. Blocks for 20 seconds at most.
    """
    with asyncio.Runner() as runner:
        # A look-up that hangs must not be waited for at the end.
        runner.get_loop().set_default_executor(UnwaitedThreads())
        return runner.run(_examine(loaded, hung=hung, on_progress=on_progress))


async def _examine(
    loaded: LoadedSettings, *, hung: bool, on_progress: Callable[[Answer], None]
) -> Answer:
    async with compose_read_only(loaded, hung=hung) as subject:
        checkup = examination(subject)
        work = asyncio.ensure_future(checkup.run())
        while not work.done():
            await asyncio.wait({work}, timeout=0.5)
            on_progress(checkup.so_far())
        return work.result()


def _dispatcher(bridge: Bridge) -> Dispatcher:
    return Dispatcher(bridge, AuditTrail(bridge.ledger, bridge.clock))


def _actor(user: str) -> Actor:
    return Actor(f"command:{user or '?'}", Role.TECHNICIAN)


async def _nothing_more(_found: "StoreServices") -> None:
    """Nothing runs that could go on with a connected store."""
