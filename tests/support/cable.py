"""A network cable that can be pulled out: two virtual devices, one in a namespace of its own.

Needs Linux, iproute2 and root.
"""

import contextlib
import ctypes
import itertools
import os
import random
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


class Cable:
    """Leads from here to `address`, in the namespace. Raises OSError where that is not allowed."""

    def __init__(self) -> None:
        self.name = f"tb{os.getpid()}-{next(_numbers)}"  # a device's name has 15 characters at most
        # Of the network for benchmarks (RFC 2544); another run has another part of it.
        place = random.SystemRandom().randrange(2**14) * 4
        near, self.address = (f"198.18.{place >> 8}.{place % 256 + at}" for at in (1, 2))
        _ip(f"netns add {self.name}")
        try:
            _ip(f"link add {self.name} type veth peer name far netns {self.name}")
            _ip(f"addr add {near}/30 dev {self.name}")
            _ip(f"link set {self.name} up")
            _ip(f"-n {self.name} addr add {self.address}/30 dev far")
            self.plug_in()
        except OSError:
            self.remove()
            raise

    def listener(self) -> socket.socket:
        """Return a socket that listens at the far end; it stays there, whoever accepts."""
        # A namespace is a thread's, so a thread goes there, and ends.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._listen_there).result()

    def _listen_there(self) -> socket.socket:
        with Path(f"/run/netns/{self.name}").open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        return socket.create_server((self.address, 0))

    def unplug(self) -> None:
        """Lose every packet from now on, without a word to either end."""
        _ip(f"-n {self.name} link set far down")

    def plug_in(self) -> None:
        """Let packets through again."""
        _ip(f"-n {self.name} link set far up")

    def remove(self) -> None:
        """Remove the namespace, and the devices with it."""
        with contextlib.suppress(OSError):
            _ip(f"link del {self.name}")  # a socket at the far end would let it live on
        _ip(f"netns del {self.name}")


def new_cable() -> Cable | None:
    """Return a cable; None where the system allows none."""
    try:
        return Cable()
    except OSError:
        return None


def listening_at_the_end_of(cable: Cable | None) -> socket.socket:
    """Return a socket that listens at the far end, or on this machine if there is no cable."""
    return socket.create_server(("127.0.0.1", 0)) if cable is None else cable.listener()


def _ip(words: str) -> None:
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.returncode, done.stderr.strip())
