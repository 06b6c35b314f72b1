"""Files in folders where another user of the machine may write, and the bridge's own files.

A till has its folder, and whoever runs the till may put a symbolic link there, and change it at any
moment. Where the bridge is about to write, it would overwrite whatever the link names if it opened
it in the usual way. Where an adapter reads, the link may lead to the bridge's own files: what
counts is not the path that was checked but the file that was opened (`refuse`).
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from tillbridge.core.i18n import _

# -- new files

_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ROOT = 0
# What a file system says that cannot sync a folder, or need not.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM, errno.EISDIR}


class NotOurFolder(PermissionError):
    """A folder of the bridge that is a link, or that another user has made."""


def create_new(path: Path, mode: int = 0o666) -> int:
    """Return the descriptor of a new, empty file at `path`; what stood there is removed.

    A link is removed, never followed. Raises OSError, FileExistsError if somebody else has put
    something there at that very moment.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, _FLAGS, mode)


def write_new(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a new file at `path` and sync it; nothing is left of it where that fails.

    Raises OSError.
    """
    file = create_new(path, mode)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where its file system has a way to. Raises OSError."""
    handle = -1
    try:
        handle = os.open(folder, os.O_RDONLY)  # Windows opens no folders
        os.fsync(handle)
    except OSError as failure:
        if failure.errno not in _CANNOT_SYNC:
            raise
    finally:
        if handle >= 0:
            os.close(handle)


def make_own_folder(folder: Path) -> None:
    """Make a folder for files of the bridge alone, where it is not there yet.

    Raises NotOurFolder for one that is a link or another user's, OSError where it cannot be made.
    """
    folder.mkdir(exist_ok=True)
    about = folder.lstat()
    # Windows has links for folders that are no symbolic links: junctions.
    attributes = getattr(about, "st_file_attributes", 0)
    is_junction = bool(attributes & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0))
    if not stat.S_ISDIR(about.st_mode) or is_junction:
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
        raise _not_ours(_("{folder} belongs to another user").format(folder=str(folder)))


def _not_ours(what: str) -> NotOurFolder:
    return NotOurFolder(
        errno.EPERM, _("{what}; remove it, so that the bridge makes its own").format(what=what)
    )


# -- the files of the bridge itself, which no adapter reads as a till's

_SYSTEM = ("/proc", "/sys", "/dev")

_folders: set[Path] = set()
_files: set[Path] = set()


class NotTheTills(PermissionError):
    """What was opened as a till's file is the bridge's own."""


def claim_folder(folder: Path) -> None:
    """Count the folder, and all in it, as the bridge's own in this process."""
    _folders.add(folder.absolute())


def claim_file(path: Path) -> None:
    """Count the file as the bridge's own in this process: the configuration, a secret."""
    _files.add(path.absolute())


def is_own(path: Path) -> bool:
    """Return whether the path leads to a file of the bridge's own, or of the system's (blocking).

    It may lead somewhere else a moment later: whoever opens it calls `refuse`.
    """
    real = path.resolve()
    return any(real.is_relative_to(place.resolve()) for place in (*_places(), *tuple(_files)))


def refuse(path: str | os.PathLike[str], descriptor: int) -> None:
    """Raise NotTheTills if what was opened at `path` is the bridge's own.

    A file within one of its folders may be opened by its own path (a person has configured it so),
    but not by a link that leads there. Raises OSError (ESTALE) where the path leads to another
    file by now: open it again.
    """
    if not _folders and not _files:
        return
    opened, named = os.fstat(descriptor), os.path.abspath(path)  # noqa: PTH100 -- resolves no link
    real = os.path.realpath(path)
    if any(os.path.samestat(opened, found) for found in _found(tuple(_files))):
        raise _not_the_tills(named)
    if not any(os.path.samestat(opened, found) for found in _found([Path(real)])):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), named)
    for place in _places():
        inside, own = Path(real), place.resolve()
        if not inside.is_relative_to(own):
            continue
        if Path(named) not in {inside, place / inside.relative_to(own)}:
            raise _not_the_tills(named)


def _places() -> list[Path]:
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    return [*tuple(_folders), *map(Path, _SYSTEM), *([Path(credentials)] if credentials else [])]


def _found(paths: Iterable[Path]) -> list[os.stat_result]:
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append(path.stat())
    return found


def _not_the_tills(path: str) -> NotTheTills:
    return NotTheTills(errno.EACCES, _("it is a file of the bridge, not of the till"), path)
