"""Bytes to and from a printer: over the network, or through a device file."""

import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tillbridge.adapter import PosOffline
from tillbridge.adapter.texts import _
from tillbridge_printer.places import DevicePlace, TcpPlace

CONNECT_S = 3.0


class Wire(Protocol):
    """An open way to a printer. `until` is in monotonic seconds; OSError is for what breaks."""

    def send(self, data: bytes, until: float) -> None:
        """Send all of it. Raises TimeoutError where the printer takes no more."""
        ...

    def receive(self, until: float) -> bytes:
        """Return what comes; b"" where nothing came in time. Raises EOFError at the end."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


def wire_to(place: TcpPlace | DevicePlace) -> Callable[[], Wire]:
    """Return how to open the way; opening raises PosOffline."""
    if isinstance(place, TcpPlace):
        return lambda: TcpWire(place)
    return lambda: DeviceWire(place.path)


class TcpWire:
    """A connection to port 9100. Printers take one at a time, so it is short."""

    def __init__(self, place: TcpPlace) -> None:
        try:
            self._socket = socket.create_connection((place.host, place.port), CONNECT_S)
        except OSError as failure:
            raise PosOffline(
                _("The printer at {host}:{port} does not answer ({why}).").format(
                    host=place.host, port=place.port, why=failure.strerror or str(failure)
                ),
                fix=_("Check that the printer is on and in the network."),
            ) from failure

    def send(self, data: bytes, until: float) -> None:
        """Send all of it."""
        self._socket.settimeout(max(0.01, until - time.monotonic()))
        self._socket.sendall(data)

    def receive(self, until: float) -> bytes:
        """Return what comes."""
        self._socket.settimeout(max(0.01, until - time.monotonic()))
        try:
            data = self._socket.recv(4096)
        except TimeoutError:
            return b""
        if not data:
            raise EOFError
        return data

    def close(self) -> None:
        """Hang up; what was sent goes on its way."""
        self._socket.close()


class DeviceWire:
    """A device file such as /dev/usb/lp0, read and written without waiting in the kernel."""

    def __init__(self, path: Path) -> None:
        try:
            self._handle = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        except OSError as failure:
            raise PosOffline(
                _("The printer's device {path} cannot be opened ({why}).").format(
                    path=str(path), why=failure.strerror
                ),
                fix=_(
                    "Check that the printer is on and plugged in, and that the bridge's user may "
                    "write to it."
                ),
            ) from failure

    def send(self, data: bytes, until: float) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            _reads, writes, _odd = select.select([], [self._handle], [], _left(until))
            if not writes:
                raise TimeoutError
            rest = rest[os.write(self._handle, rest) :]

    def receive(self, until: float) -> bytes:
        """Return what comes; a device that ends a read with nothing just has nothing."""
        reads, _writes, _odd = select.select([self._handle], [], [], _left(until))
        if not reads:
            return b""
        data = os.read(self._handle, 4096)
        if not data:
            time.sleep(min(0.05, _left(until)))  # the driver has no other way to say "nothing yet"
        return data

    def close(self) -> None:
        """Close the device."""
        os.close(self._handle)


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
