"""A service manager that only listens: what systemd would be told, in the order it was told."""

import socket
from pathlib import Path


class ListeningManager:
    """Reads a socket of its own in `folder`; `environment` is what the bridge is started with."""

    def __init__(self, folder: Path, *, watchdog_s: float | None = None) -> None:
        path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.environment = {"NOTIFY_SOCKET": str(path)}
        if watchdog_s is not None:
            self.environment["WATCHDOG_USEC"] = str(round(watchdog_s * 1_000_000))
        self.told: list[str] = []

    def hear(self) -> list[str]:
        """Return the lines that came since the last call, and keep them in `told`."""
        lines: list[str] = []
        while True:
            try:
                lines += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                self.told += lines
                return lines

    def heard(self, line: str) -> bool:
        """Whether this line has been told by now."""
        self.hear()
        return line in self.told

    def close(self) -> None:
        """Hear no more."""
        self._socket.close()
