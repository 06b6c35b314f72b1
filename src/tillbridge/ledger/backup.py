"""Back-ups of the ledger: whole, taken while it is in use, and not kept for ever."""

import contextlib
import os
import sqlite3
from pathlib import Path

from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.durable import sync_folder
from tillbridge.model.instant import to_iso

_FOLDER = "backups"
KEPT = 5


def stamp(at_ms: int) -> str:
    """Return the instant for a file name: `20261121T190200.000Z`, which sorts by time."""
    return to_iso(at_ms).replace("-", "").replace(":", "")


def back_up(data_dir: Path, *, at: int) -> Path:
    """Copy the ledger into `backups/` and keep the newest five. Raises OSError, sqlite3.Error."""
    folder = data_dir / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"ledger-{stamp(at)}.db"
    copy_database(data_dir / LEDGER_FILE, target)
    for old in back_ups(data_dir)[KEPT:]:
        old.unlink(missing_ok=True)
    return target


def back_ups(data_dir: Path) -> list[Path]:
    """Return the back-ups, newest first."""
    return sorted((data_dir / _FOLDER).glob("ledger-*.db"), reverse=True)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database that may be in use, durably; `target` appears whole or not at all."""
    beside = target.with_name(f"{target.name}.new")
    beside.unlink(missing_ok=True)
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        with (
            contextlib.closing(sqlite3.connect(source)) as original,
            contextlib.closing(sqlite3.connect(beside)) as copy,
        ):
            original.backup(copy)
            # A copy that stands alone: no -wal file has to be kept with it.
            copy.execute("PRAGMA journal_mode = DELETE")
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def forget_old_files(data_dir: Path, *, before: int) -> int:
    """Delete back-ups and damaged ledgers from before this instant: they hold personal data too.

    Returns how many files went.
    """
    old = [
        path
        for path in (*back_ups(data_dir), *data_dir.glob(f"{LEDGER_FILE}.damaged-*"))
        if path.stat().st_mtime * 1000 < before
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)
