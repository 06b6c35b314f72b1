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
from tillbridge.core.i18n import _

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
        return FolderTrouble(f"{failure.strerror}.", _("Remove it; the bridge makes its own."))
    there = _blamed(folder, failure)
    if isinstance(failure, FileNotFoundError | NotADirectoryError):
        return FolderTrouble(
            _("The folder {folder} is not there.").format(folder=str(there)),
            _("Check that its disk or share is mounted, or make it (mkdir -p {folder}).").format(
                folder=_quoted(there)
            ),
        )
    if failure.errno == errno.EROFS:
        # A service under systemd sees the whole machine read-only, but for what is named.
        return FolderTrouble(
            _("The bridge may not write to the folder {folder} ({why}).").format(
                folder=str(there), why=failure.strerror
            ),
            _(
                "Mount it writable. Where the bridge is a service of systemd, run: sudo tillbridge "
                "service install."
            ),
        )
    if failure.errno in _REFUSED:
        owner = _owner(there)
        refused = (
            _("The bridge may not write to the folder {folder}, which belongs to {owner} ({why}).")
            if owner
            else _("The bridge may not write to the folder {folder} ({why}).")
        )
        return FolderTrouble(
            refused.format(folder=str(there), owner=owner, why=failure.strerror),
            _grant_access(there),
        )
    if failure.errno in _FULL:
        return FolderTrouble(
            _("The disk of the folder {folder} is full.").format(folder=str(there)),
            _("Free space on the disk of {folder}.").format(folder=str(there)),
        )
    return FolderTrouble(
        _("The folder {folder} cannot be used: {why}.").format(
            folder=str(there), why=failure.strerror or str(failure)
        ),
        _("Check the disk or the share that {folder} is on.").format(folder=str(there)),
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
        return _("Give the account that the bridge runs as the right to modify {folder}.").format(
            folder=str(folder)
        )
    user = _user_name(os.geteuid())
    if _owner(folder) == user and not folder.stat().st_mode & stat.S_IWUSR:
        return _("Let the bridge's user write there (chmod -R u+rwX {folder}).").format(
            folder=_quoted(folder)
        )
    return _(
        "Give it to the bridge's user (sudo chown -R {user}: {folder}); a service of systemd may "
        "also need: sudo tillbridge service install."
    ).format(user=user, folder=_quoted(folder))


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
