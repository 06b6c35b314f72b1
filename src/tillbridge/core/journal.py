"""Lines for systemd's journal: each begins with its priority, as sd-daemon(3) has it."""

import os
from typing import TextIO

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
