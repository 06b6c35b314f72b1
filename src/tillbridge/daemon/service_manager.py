"""Talking to systemd: ready, alive, reloading, stopping, over the socket of sd_notify(3).

The protocol is one datagram of text, so it is spoken here rather than by a library.
"""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tillbridge.core.log import get_logger

log = get_logger()


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Who started the bridge and waits for word of it; without an `address` nobody does.

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
        self._tell("READY=1", f"STATUS={_line(status)}")

    def alive(self) -> None:
        """Tell that the bridge gets on with its work."""
        self._tell("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Show a line in `systemctl status`."""
        self._tell(f"STATUS={_line(text)}")

    def reloading(self) -> None:
        """Tell that the configuration is read anew; `ready` ends it."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Tell that the bridge comes to its end by itself."""
        self._tell("STOPPING=1")

    def _tell(self, *lines: str) -> None:
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
            log.warning("service_manager.not_told", said=lines[0], detail=str(failure))


def _line(text: str) -> str:
    return " ".join(text.split())
