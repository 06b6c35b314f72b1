"""The service manager: what it hears from the bridge, and what it asks for by signals.

The watchdog tells it that everything makes progress. It runs by a timer of the event loop, so a
loop that hangs is silent. Beside that it checks what the loop alone does not show: a writer whose
thread is stuck in the disk, an inbox that nobody works on, a scheduler that begins nothing. A disk
that refuses is no reason: the bridge goes on without it, and a new start would find the same disk.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tillbridge.core.log import get_logger
from tillbridge.core.started import in_terminal
from tillbridge.operations.bridge import Bridge

log = get_logger()

_BEATS = 3  # within the watchdog's time: one that comes late or is lost ends nothing
# A commit waits for the disk, and memory cards have been seen to take ten seconds over one.
_WRITER_S = 30.0
# Taking in begins with asking the tills, whose calls end within their own time-outs.
_INBOX_S = 120.0
_TIMERS_S = 60.0
# Every hour it begins again.
_HOUSEKEEPING_S = 3600.0


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Who started the bridge and waits for its signals; without an `address` nobody does.

    Spoken to over the socket of sd_notify(3): one datagram of text, which needs no library.

    `watchdog_s`: it ends the bridge unless `alive` is told within this many seconds; None: never.
    """

    address: str = ""
    watchdog_s: float | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ServiceManager":
        """Return whom the environment names; a watchdog of another process is left alone."""
        address = environment.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls()
        usec = environment.get("WATCHDOG_USEC", "")
        meant_for = environment.get("WATCHDOG_PID", "")
        watched = usec.isdigit() and int(usec) > 0 and meant_for in {"", str(os.getpid())}
        return cls(address, int(usec) / 1_000_000 if watched else None)

    def ready(self, status: str) -> None:
        """Tell that the ledger and both listeners are up."""
        self._send("READY=1", f"STATUS={_line(status)}")

    def alive(self) -> None:
        """Tell that the bridge gets on with its work."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Show a line in `systemctl status`."""
        self._send(f"STATUS={_line(text)}")

    def reloading(self) -> None:
        """Tell that the configuration is read anew; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Tell that the bridge comes to its end by itself."""
        self._send("STOPPING=1")

    def _send(self, *lines: str) -> None:
        if not self.address or sys.platform == "win32":
            return
        # An address that begins with @ has no file: Linux wants a zero byte there.
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        text = "\n".join(lines).encode()
        try:
            with contextlib.closing(
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            ) as talk:
                # A manager that does not read must not hold up the loop that it watches.
                talk.settimeout(0)
                talk.sendto(text, address)
        except OSError as failure:
            log.warning("service_manager.notify_failed", state=lines[0], detail=str(failure))


def _line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class ProgressCheck:
    """Something that has to make progress: since when (monotonic, s) it is busy, None if idle."""

    what: str
    busy_since: float | None
    patience_s: float


def stuck(checks: Iterable[ProgressCheck], now: float) -> tuple[str, ...]:
    """Return what has been at one thing for longer than it may be."""
    return tuple(
        check.what
        for check in checks
        if check.busy_since is not None and now - check.busy_since > check.patience_s
    )


class Watchdog:
    """Tells `manager` that the bridge is alive; `checks` are made before each time."""

    def __init__(
        self,
        manager: ServiceManager,
        checks: Callable[[], Sequence[ProgressCheck]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager = manager
        self._checks = checks
        self._clock = clock
        self._stuck: tuple[str, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, watchdog_s: float) -> None:
        """Beat from now on, in the running loop."""
        # By the loop's own timer: a job of the scheduler could not tell that the scheduler stands.
        every_s = watchdog_s / _BEATS
        self._timer = asyncio.get_running_loop().call_later(every_s, self.start, watchdog_s)
        self.beat()

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()

    def beat(self) -> None:
        """Check, and tell. What is stuck is logged once: its silence is what ends the bridge."""
        found = stuck(self._checks(), self._clock())
        if found != self._stuck:
            self._stuck = found
            if found:
                log.error("bridge.stuck", what=found)
                self._manager.status("Stuck: " + ", ".join(found))
            else:
                log.info("bridge.moves_again")
        if not found:
            self._manager.alive()


def watchdog_of(manager: ServiceManager, bridge: Bridge) -> Watchdog:
    """Return the watchdog of this bridge."""
    # Without a beat it is ended by SIGABRT: the log then has what each thread was at.
    faulthandler.enable()
    unwritable_at = 0.0

    def checks() -> list[ProgressCheck]:
        nonlocal unwritable_at
        if not bridge.ledger.writable:
            unwritable_at = time.monotonic()
        # The time in which nothing could be processed, because the disk refused, does not count.
        behind = {
            name: None if since is None else max(since, unwritable_at)
            for name, store in bridge.stores.items()
            for since in (store.orders.intake.behind_since,)
        }
        return [
            ProgressCheck("writer", bridge.ledger.writing_since, _WRITER_S),
            *(ProgressCheck(f"{name}.inbox", since, _INBOX_S) for name, since in behind.items()),
            ProgressCheck("timers", bridge.context.scheduler.late_since(), _TIMERS_S),
            ProgressCheck("housekeeping", bridge.context.scheduler.busy_since, _HOUSEKEEPING_S),
        ]

    return Watchdog(manager, checks)


# -- what the service manager asks for by signals


def on_end(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGTERM and SIGINT; until `on_hangup`, SIGHUP means nothing."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_args: loop.call_soon_threadsafe(stop))
    if sys.platform != "win32" and not in_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_hangup(reload: Callable[[], None]) -> None:
    """Call `reload` on SIGHUP, where there is one."""
    # A host's thread (a service of Windows, a test) hears no signals.
    gets_signals = threading.current_thread() is threading.main_thread()
    if sys.platform != "win32" and gets_signals and not in_terminal():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
