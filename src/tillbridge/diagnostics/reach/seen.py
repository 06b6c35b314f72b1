"""What of it this machine has already: programs that are installed, and those that run."""

import contextlib
import shutil
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# A way's program to type, and the process that does the work.
PROGRAMS = {
    "cloudflared": ("cloudflared", "cloudflared"),
    "tailscale": ("tailscale", "tailscaled"),
    "caddy": ("caddy", "caddy"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """`path` of the program, "" where it is not; `running` is None where nobody can tell."""

    path: str = ""
    running: bool | None = None


def look(
    way: str,
    *,
    which: Callable[[str], str | None] = shutil.which,
    processes: Callable[[], AbstractSet[str] | None] | None = None,
) -> Seen:
    """Look for a way's program. A way that needs none is never seen."""
    if way not in PROGRAMS:
        return Seen()
    program, process = PROGRAMS[way]
    names = (processes or running_names)()
    return Seen(which(program) or "", None if names is None else process in names)


def running_names(proc: Path = _PROC) -> frozenset[str] | None:
    """Return the names of all processes; None where the system does not list them in files."""
    if not (proc / "self").exists():
        return None
    names = set()
    for entry in proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has just ended
            names.add(entry.read_text("utf-8", "replace").strip())
    return frozenset(names)
