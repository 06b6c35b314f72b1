"""Reaches whoever can do it: the running bridge, or this very process while none runs."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tillbridge.cli.control import NotRunning, RunningBridge, find_running, os_user
from tillbridge.cli.say import progress

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings
    from tillbridge.web.ports import Control

Answer = dict[str, Any]


def ask(
    loaded: "LoadedSettings",
    of_running: Callable[[RunningBridge], Answer],
    by_itself: Callable[["Control"], Awaitable[Answer]],
) -> Answer:
    """Return the running bridge's answer, or do the work here with the ledger's lock held.

    Raises a BridgeError: what the bridge or the work told, LedgerLocked where a bridge has the
    ledger and does not answer (it is starting or ending).
    """
    import asyncio

    running = find_running(loaded.data_dir)
    with progress():
        if running is not None:
            try:
                return of_running(running)
            except NotRunning:
                pass  # it ended this very moment
        return asyncio.run(_alone(loaded, by_itself))


async def _alone(
    loaded: "LoadedSettings", by_itself: Callable[["Control"], Awaitable[Answer]]
) -> Answer:
    from tillbridge import daemon

    async with daemon.alone(loaded, user=os_user()) as control:
        return await by_itself(control)
