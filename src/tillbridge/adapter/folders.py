"""Folders that are written into: whether writing works, and in words what is wrong with one.

A right can be missing, a disk full, a share gone, a quota used up; only writing shows all of it.
"""

import errno
import os
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.files import NotOurFolder, create_new, make_own_folder, sync_folder, write_new

__all__ = [
    "FolderTrouble",
    "make_own_folder",
    "refusal",
    "sync_folder",
    "trouble_of",
    "try_writing",
    "write_new",
]

PROBE_NAME = ".tillbridge-probe"
_REFUSED = {errno.EACCES, errno.EPERM}
_FULL = {errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC}


@dataclass(frozen=True, slots=True)
class FolderTrouble:
    """Why a folder cannot be used, and what to do about it; each a sentence."""

    text: str
    fix: str


def trouble_of(folder: Path, failure: OSError) -> FolderTrouble:
    """Return what a failure in or below a folder means; it names the folder that is to blame."""
    if isinstance(failure, NotOurFolder):
        return FolderTrouble(f"{failure.strerror}.", "Remove it; the bridge makes its own.")
    there = _blamed(folder, failure)
    if isinstance(failure, FileNotFoundError | NotADirectoryError):
        return FolderTrouble(
            f"The folder {there} is not there.",
            f"Check that its disk or share is mounted, or make it (mkdir -p {_quoted(there)}).",
        )
    if failure.errno == errno.EROFS:
        # A service under systemd sees the whole machine read-only, but for what is named.
        return FolderTrouble(
            f"The bridge may not write to the folder {there} ({failure.strerror}).",
            "Mount it writable. Where the bridge is a service of systemd, run: sudo tillbridge "
            "service install.",
        )
    if failure.errno in _REFUSED:
        owner = _owner(there)
        belongs = f", which belongs to {owner}" if owner else ""
        return FolderTrouble(
            f"The bridge may not write to the folder {there}{belongs} ({failure.strerror}).",
            _grant_access(there),
        )
    if failure.errno in _FULL:
        return FolderTrouble(
            f"The disk of the folder {there} is full.", f"Free space on the disk of {there}."
        )
    return FolderTrouble(
        f"The folder {there} cannot be used: {failure.strerror or failure}.",
        f"Check the disk or the share that {there} is on.",
    )


def refusal(folder: Path) -> OSError | None:
    """Return what the rights of a folder say against writing in it; nothing is written."""
    if not folder.is_dir():
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    number = errno.EROFS if _is_read_only(folder) else errno.EACCES
    return OSError(number, os.strerror(number))


def try_writing(folder: Path) -> OSError | None:
    """Write a small hidden file in a folder and remove it; return what went wrong, None if nothing.

    A folder is never made.
    """
    if refused := refusal(folder):
        return refused
    probe = folder / PROBE_NAME
    try:
        # Not synced, unlike what matters: it would wear a memory card, and slow a share down.
        file = create_new(probe)
        try:
            os.write(file, b"probe\n")
        finally:
            os.close(file)
            probe.unlink(missing_ok=True)
    except OSError as failure:
        return failure
    return None


def _blamed(folder: Path, failure: OSError) -> Path:
    """Return the folder that a failure is about: that of the file it names, if that is refused."""
    named = [
        Path(os.fsdecode(name)).parent
        for name in (failure.filename, failure.filename2)
        if isinstance(name, str | bytes)
    ]
    inside = [each for each in named if each == folder or folder in each.parents]
    return next((each for each in inside if refusal(each)), inside[0] if inside else folder)


def _grant_access(folder: Path) -> str:
    if sys.platform == "win32":
        return f"Give the account that the bridge runs as the right to modify {folder}."
    user = _user_name(os.geteuid())
    if _owner(folder) == user and not folder.stat().st_mode & stat.S_IWUSR:
        return f"Let the bridge's user write there (chmod -R u+rwX {_quoted(folder)})."
    return (
        f"Give it to the bridge's user (sudo chown -R {user}: {_quoted(folder)}); a service of "
        "systemd may also need: sudo tillbridge service install."
    )


def _owner(folder: Path) -> str:
    if sys.platform == "win32":
        return ""
    try:
        return _user_name(folder.stat().st_uid)
    except OSError:
        return ""


def _user_name(number: int) -> str:
    if sys.platform == "win32":
        return str(number)
    import pwd  # noqa: PLC0415 -- Windows has none

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in containers
        return str(number)


def _quoted(path: Path) -> str:
    return f'"{path}"' if sys.platform == "win32" else shlex.quote(str(path))


def _is_read_only(folder: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:  # a share that has just vanished
        return False
