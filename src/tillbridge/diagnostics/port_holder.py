"""Which program has a port of this machine, where the system tells (Linux)."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.i18n import _

_LISTENS = "0A"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Holder:
    """A program that listens. `command` is how it was started, shortened."""

    pid: int
    name: str
    command: str = ""

    def __str__(self) -> str:
        """Return it in words, to stand after "by"."""
        told = _("{name}, process {pid}").format(name=self.name, pid=self.pid)
        return f"{told} ({self.command})" if self.command else told


def holder_of(port: int, proc: Path = _PROC) -> Holder | None:
    """Return who listens on the port; None where the system does not tell this user. Blocks."""
    sockets = _listening(port, proc)
    if not sockets:
        return None
    for folder in _processes(proc):
        with contextlib.suppress(OSError):  # another user's, or one that has just ended
            for handle in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()) in sockets:
                        return _described(folder)
    return None


def taken_by(port: int) -> str:
    """Return " by NAME, process 12" for a port that is taken; "" where nobody can tell."""
    holder = holder_of(port)
    return "" if holder is None else _(" by {holder}").format(holder=holder)


def _listening(port: int, proc: Path) -> set[str]:
    """Return the links of the sockets that listen there: `socket:[inode]`."""
    found = set()
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / table).read_text("ascii", "replace").splitlines()[1:]:
                parts = line.split()
                listens = len(parts) > 9 and parts[3] == _LISTENS
                if listens and int(parts[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{parts[9]}]")
    return found


def _processes(proc: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in proc.iterdir() if each.name.isdigit()]
    return []


def _described(folder: Path) -> Holder:
    name = (folder / "comm").read_text("utf-8", "replace").strip()
    words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    # The first words alone: further ones may hold a password.
    command = " ".join(Path(word).name for word in words[:3] if word and not word.startswith("-"))
    return Holder(int(folder.name), name, command if command != name else "")
