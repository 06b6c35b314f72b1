"""How this bridge was started, and so how a person starts it again."""

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from tillbridge.core.i18n import _

_UNIT = re.compile(r"/([^/\n]+\.service)$", re.MULTILINE)

Verb = Literal["start", "restart"]


@cache
def command_to(verb: Verb) -> str:
    """Return what a person does to start this process's bridge, or to restart it."""
    return how_to(verb, os.environ, in_terminal=_in_terminal(), cgroup=_cgroup())


def is_service() -> bool:
    """Whether the system starts this process by itself, so that it comes back after a power cut."""
    return bool(os.environ.get("NOTIFY_SOCKET")) or (sys.platform == "win32" and not _in_terminal())


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


def _in_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _cgroup() -> str:
    try:
        return Path("/proc/self/cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""
