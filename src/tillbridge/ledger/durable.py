"""Files that survive a power cut: whole as they were, or whole as they are to be."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from tillbridge.core.new_files import create_new

_OURS_ALONE = 0o600


def write_durably(path: Path, content: bytes) -> None:
    """Put `content` in place of the file, readable by its owner only. Raises OSError."""
    beside = path.with_name(f"{path.name}.new")
    file = create_new(beside, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            as_the_folder_is(path.parent, file)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def as_the_folder_is(folder: Path, made: int | Path) -> None:
    """Give what root has made in this folder to the folder's owner, as SQLite does with its files.

    A command that root runs beside the service must leave nothing that the service cannot read.
    """
    if sys.platform != "win32" and os.geteuid() == 0:
        about = folder.stat()
        os.chown(made, about.st_uid, about.st_gid)


def close_to_others(paths: Iterable[Path]) -> None:
    """Let the owner alone read and write these files of the bridge; others' files stay.

    A file that was made read-only for a while left its -shm and -wal files read-only, too.
    """
    if os.name != "posix":
        return
    for path in paths:
        # What is not there needs nothing; what is another user's shows when it is opened.
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != _OURS_ALONE:
                path.chmod(_OURS_ALONE)


def sync_folder(folder: Path) -> None:
    """Make renames in the folder durable, where the system has a way to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
