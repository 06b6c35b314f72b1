"""What the system's signals mean to the daemon."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable


def on_end(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGTERM and SIGINT; until `on_hangup`, SIGHUP means nothing."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_args: loop.call_soon_threadsafe(stop))
    if sys.platform != "win32" and not _in_a_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_hangup(reload: Callable[[], None]) -> None:
    """Call `reload` on SIGHUP, where there is one."""
    # A host's thread (a service of Windows, a test) hears no signals.
    hears = threading.current_thread() is threading.main_thread()
    if sys.platform != "win32" and hears and not _in_a_terminal():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


def _in_a_terminal() -> bool:
    """Whether a person started it in a window: closing that ends it, as it ends anything."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
