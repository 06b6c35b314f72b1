"""The daemon's process: the set-up page alone, then the bridge; or the bridge again and again.

A life ends for good when the process is told to stop. It ends for another one when the
configuration was changed on the page: everything is closed in order and built again from the file,
while the page's address stays held, so that a browser waits for a moment instead of failing.
"""

import asyncio
import os
from collections.abc import Callable

from tillbridge.config import LoadedSettings
from tillbridge.config.loading import UnconfiguredSettings, load_to_run
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.listening import raise_file_limit
from tillbridge.core.log import get_logger
from tillbridge.core.restart import RestartController
from tillbridge.daemon.life import live
from tillbridge.daemon.service_manager import ServiceManager
from tillbridge.daemon.signals import on_end
from tillbridge.ledger.snapshot import FailedStart, note_failed_start
from tillbridge.menu.gc_pause import unfreeze
from tillbridge.web.held_address import HeldAddress

log = get_logger()


def run(
    loaded: LoadedSettings | UnconfiguredSettings,
    ask_to_stop: Callable[[Callable[[], object]], None] = on_end,
) -> int:
    """Run the bridge until it is told to stop; return the exit code. Raises BridgeError.

    `ask_to_stop` is called in the running loop with what ends the bridge, to be called there too.
    """
    raise_file_limit()
    asyncio.run(_run(loaded, ask_to_stop))
    return 0


def _note(
    loaded: LoadedSettings | UnconfiguredSettings, failure: BridgeError, *, started: bool
) -> None:
    """Write down why the bridge ends, where `status`, `doctor` and `logs` find it."""
    event = "bridge.failed" if started else "bridge.not_started"
    log.error(event, error=failure.text, fix=failure.fix)
    if not started:
        told = FailedStart(Clock().now_ms(), failure.text, failure.fix)
        note_failed_start(loaded.data_dir, told)


async def _run(
    loaded: LoadedSettings | UnconfiguredSettings,
    ask_to_stop: Callable[[Callable[[], object]], None],
) -> None:
    restarts, address = RestartController(), HeldAddress()

    def stop() -> None:
        restarts.stop()
        address.close()  # whoever comes now is refused, and not kept waiting

    ask_to_stop(stop)
    manager = ServiceManager.of(os.environ)
    path = loaded.path
    try:
        while True:
            restarts.begin()
            manager.alive()  # from one life to the next nothing else tells it
            try:
                if isinstance(loaded, UnconfiguredSettings):
                    # Once in a bridge's life.
                    from tillbridge.daemon.setting_up import set_up  # noqa: PLC0415 -- (as above)

                    await set_up(loaded, restarts, address, manager)
                else:
                    await live(loaded, restarts, address, manager)
                if not restarts.again:
                    return
                unfreeze()
                loaded = load_to_run(path)
            except BridgeError as failure:
                if not restarts.take_back(failure):
                    _note(loaded, failure, started=restarts.is_ready)
                    raise
                loaded = load_to_run(path)
    finally:
        address.close()
