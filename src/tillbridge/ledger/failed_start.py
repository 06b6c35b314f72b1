"""The last start of the bridge that failed, beside the ledger, for `status` and `doctor`.

A file and not a fact: a start can fail before the ledger is open, or because it cannot be. Light to
import.
"""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

_NAME = "failed_start.json"


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A start of the bridge that failed: when (ms), why, and what to do about it."""

    at_ms: int
    text: str
    fix: str = ""


def note_failed_start(data_dir: Path, failed: FailedStart) -> None:
    """Write it down; nothing where that cannot be done."""
    told = {"at_ms": failed.at_ms, "text": failed.text, "fix": failed.fix}
    with contextlib.suppress(OSError):
        (data_dir / _NAME).write_text(json.dumps(told), encoding="utf-8")


def forget_failed_start(data_dir: Path) -> None:
    """Forget it: the bridge has started."""
    with contextlib.suppress(OSError):
        (data_dir / _NAME).unlink(missing_ok=True)


def failed_start(data_dir: Path) -> FailedStart | None:
    """Return the last start, where it failed; None where it did not, or nobody knows."""
    try:
        told = json.loads((data_dir / _NAME).read_text(encoding="utf-8"))
        return FailedStart(int(told["at_ms"]), str(told["text"]), str(told["fix"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
