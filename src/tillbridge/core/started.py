"""How this bridge was started: how a person starts it again, and where commands find it."""

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TextIO

from tillbridge.core.i18n import _

CONTROL_FILE = "control.json"  # of the data folder: where a command reaches the running bridge
ZONE_HEADER = "X-Tillbridge-Zone"  # of its answers: the time zone of the times in them

_UNIT = re.compile(r"/([^/\n]+\.service)$", re.MULTILINE)

Verb = Literal["start", "restart"]


@cache
def command_to(verb: Verb) -> str:
    """Return what a person does to start this process's bridge, or to restart it."""
    return how_to(verb, os.environ, in_terminal=in_terminal(), cgroup=_cgroup())


def is_service() -> bool:
    """Whether the system starts this process by itself, so that it comes back after a power cut."""
    return bool(os.environ.get("NOTIFY_SOCKET")) or (sys.platform == "win32" and not in_terminal())


def how_to(
    verb: Verb, environment: Mapping[str, str], *, in_terminal: bool, cgroup: str = ""
) -> str:
    """Return what a person does about a bridge with this environment."""
    if environment.get("NOTIFY_SOCKET"):
        found = _UNIT.search(cgroup)
        unit = found[1].removesuffix(".service") if found else "tillbridge"
        return f"systemctl {verb} {unit}"
    if sys.platform == "win32" and not in_terminal:
        return f"{verb.capitalize()}-Service tillbridge"
    if in_terminal:
        if verb == "start":
            return "tillbridge run"
        return _("press Ctrl-C in its terminal, then type tillbridge run")
    if verb == "start":
        return _("tillbridge run, or the way you started it before")
    return _("stop it, then start it the way you did before")


def in_terminal() -> bool:
    """Return whether a person started it in a window: closing that ends it, as it ends anything."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _cgroup() -> str:
    try:
        return Path("/proc/self/cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""


# -- lines for systemd's journal: each begins with its priority, as sd-daemon(3) has it

_PRIORITIES = {
    "critical": 2,
    "fatal": 2,
    "error": 3,
    "exception": 3,
    "warning": 4,
    "warn": 4,
    "info": 6,
    "debug": 7,
}


def goes_to_journal(stream: TextIO) -> bool:
    """Return whether systemd's journal reads what is written to `stream`.

    JOURNAL_STREAM names device and inode of what systemd has connected: a process that was started
    by a service and writes elsewhere has the variable too.
    """
    named = os.environ.get("JOURNAL_STREAM")
    if not named:
        return False
    try:
        about = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False
    return named == f"{about.st_dev}:{about.st_ino}"


def with_priority(level: str, text: str) -> str:
    """Return the text with the priority of this level before each of its lines."""
    mark = f"<{_PRIORITIES.get(level, 6)}>"
    return "\n".join(mark + line for line in text.split("\n"))
