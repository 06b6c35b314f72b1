"""Keeping the data folder within its budget: copies of the ledger go first, the ledger never.

The disk is the till's too. What holds no order of its own (back-ups, ledgers that were set aside)
is deleted from the oldest on; the newest back-up stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.ledger.backup import back_ups, forget, set_asides, vault_of


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the ledger that may go: its path, its size in bytes and its age (ms, mtime)."""

    path: Path
    size: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What the data folder takes now, in bytes, and which copies went."""

    used: int
    gone: tuple[str, ...] = ()


def too_many(copies: Sequence[Copy], used: int, budget: int) -> tuple[Copy, ...]:
    """Return which copies have to go, the oldest first, until `used` fits into `budget` bytes."""
    going: list[Copy] = []
    for copy in sorted(copies, key=lambda each: each.at_ms):
        if used <= budget:
            break
        going.append(copy)
        used -= copy.size
    return tuple(going)


def trim(data_dir: Path, budget: int) -> Trimmed:
    """Delete what has to go for the folder to fit into `budget` bytes. Raises OSError."""
    used = _used(data_dir)
    spare = [*back_ups(data_dir)[1:], *set_asides(data_dir)]
    going = too_many([_copy(path) for path in spare], used, budget)
    for each in going:
        forget(each.path)
    return Trimmed(used - sum(each.size for each in going), tuple(e.path.name for e in going))


def _copy(path: Path) -> Copy:
    about = path.stat()
    beside = vault_of(path)
    size = about.st_size + (beside.stat().st_size if beside.exists() else 0)
    return Copy(path, size, round(about.st_mtime * 1000))


def _used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
