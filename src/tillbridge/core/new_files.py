"""Making files in folders where another user of the machine may write, too.

A till has its folder, and whoever runs the till may put a symbolic link where the bridge is about
to write: opened in the usual way, the bridge would overwrite whatever the link names.
"""

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ROOT = 0


class NotOurFolder(PermissionError):
    """A folder of the bridge that is a link, or that another user has made."""


def create_new(path: Path, mode: int = 0o666) -> int:
    """Return the descriptor of a new, empty file at `path`; what stood there is removed.

    A link is removed, never followed. Raises OSError, FileExistsError where somebody else has put
    something there at that very moment.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, _FLAGS, mode)


def write_new(path: Path, content: bytes) -> None:
    """Write a new file at `path` and sync it; nothing is left of it where that fails.

    Raises OSError.
    """
    file = create_new(path)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def make_own_folder(folder: Path) -> None:
    """Make a folder for files of the bridge alone, where it is not there yet.

    Raises NotOurFolder for one that is a link or another user's, OSError where it cannot be made.
    """
    folder.mkdir(exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or _is_a_junction(folder):
        raise _not_ours(f"{folder} is a link")
    if sys.platform == "win32" or about.st_uid in {os.geteuid(), _ROOT} or os.geteuid() == _ROOT:
        return
    # A network share may show all files as one user's, those that we make included.
    probe = folder / f".owner-{os.getpid()}"
    file = create_new(probe, 0o600)
    try:
        ours = os.fstat(file).st_uid
    finally:
        os.close(file)
        probe.unlink(missing_ok=True)
    if about.st_uid != ours:
        raise _not_ours(f"{folder} belongs to another user")


def _not_ours(what: str) -> NotOurFolder:
    return NotOurFolder(errno.EPERM, f"{what}; remove it, so that the bridge makes its own")


def _is_a_junction(folder: Path) -> bool:
    """Return whether the folder is one of the links that Windows has for folders."""
    attributes = getattr(folder.lstat(), "st_file_attributes", 0)
    return bool(attributes & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0))
