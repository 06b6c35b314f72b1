"""Reading a file that another program may be writing at this moment."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.core.files import NotTheTills
from tillbridge.core.i18n import _


def still_being_written(name: str, what: str) -> ExportUnreadable:
    """Return the failure for a file that is not complete yet; it is temporary."""
    return ExportUnreadable(
        _("{name} {what}; it is probably still being written.").format(name=name, what=what),
        place=name,
        fix=_("Nothing to do while the till writes it. If this stays, export again."),
        passing=True,
    )


_QUIET_S = 1.0
_GRACE_S = 20.0


def is_fresh(path: Path) -> bool:
    """Return whether a file has changed so short a time ago that it may still be written."""
    return abs(time.time() - path.stat().st_mtime) < _GRACE_S


def unfinished(path: Path, what: str, *, place: str, fix: str) -> ExportUnreadable:
    """Return the failure of a file that seems to be half written.

    While the file is fresh it is that, and mends itself. One that has not changed for a while is
    not being written: then it is wrong as it is, at `place`, and a person has to `fix` it.
    """
    if is_fresh(path):
        return still_being_written(path.name, what)
    return ExportUnreadable(
        _("{name} {what}.").format(name=path.name, what=what), place=place, fix=fix
    )


@dataclass(slots=True)
class LastRead:
    """The file that was last read completely: a till that writes in place changes this file."""

    _file: tuple[int, int] | None = field(default=None, init=False)

    def is_being_rewritten(self, path: Path) -> bool:
        """Return whether that file was just changed in place, and may still grow."""
        status = path.stat()
        fresh = abs(time.time() - status.st_mtime) < _QUIET_S
        return fresh and self._file == (status.st_dev, status.st_ino)

    def done(self, path: Path) -> None:
        """Record that the file was read completely."""
        status = path.stat()
        self._file = (status.st_dev, status.st_ino)


@contextmanager
def reading_whole(path: Path) -> Iterator[None]:
    """Make a reading valid only if the file was the same before and after.

    Raises ExportUnreadable, with `passing` if the file is missing, locked or empty, or changed in
    the meantime (other errors in it then do not matter).
    """
    before = _signature(path)
    if before[0] == 0:
        # A till that writes in place empties the file first. A menu of nothing has a header.
        raise still_being_written(path.name, _("is empty"))
    try:
        yield
    except (ExportUnreadable, OSError, UnicodeError) as failure:
        if _signature(path) != before:
            raise still_being_written(path.name, _("changed while it was read")) from failure
        if isinstance(failure, OSError):
            raise _unreadable(path, failure) from failure
        raise
    if _signature(path) != before:
        raise still_being_written(path.name, _("changed while it was read"))


def _signature(path: Path) -> tuple[int, int, int, int]:
    try:
        status = path.stat()
    except OSError as failure:
        raise _unreadable(path, failure) from failure
    return (status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)


def _unreadable(path: Path, failure: OSError) -> ExportUnreadable:
    if isinstance(failure, FileNotFoundError | NotADirectoryError):
        return ExportUnreadable(
            _("{path} is not there.").format(path=str(path)),
            place=path.name,
            fix=_("Let the till export it, or correct the path in the configuration."),
            passing=True,
        )
    if isinstance(failure, IsADirectoryError):
        return ExportUnreadable(
            _("{path} is a folder, not a file.").format(path=str(path)),
            place=path.name,
            fix=_("Name the file itself in the configuration."),
        )
    if isinstance(failure, NotTheTills):
        return ExportUnreadable(
            _("{path} is a link to a file of the bridge, which is not read.").format(
                path=str(path)
            ),
            place=path.name,
            fix=_("Put the till's own file there, and check who may write in that folder."),
        )
    if isinstance(failure, PermissionError):
        return ExportUnreadable(
            _("{path} cannot be opened: {why}.").format(path=str(path), why=failure.strerror),
            place=path.name,
            fix=_(
                "If the till has it open, it is read when the till closes it. If not, give the "
                "bridge's user permission to read it."
            ),
            passing=True,
        )
    return ExportUnreadable(
        _("{path} cannot be read: {detail}.").format(path=str(path), detail=failure.strerror),
        place=path.name,
        fix=_("Check the disk or the network share it is on."),
        passing=True,
    )
