"""The lock that keeps a second daemon out of a data directory."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Self

from tillbridge.core.errors import LedgerError, LedgerLocked
from tillbridge.core.i18n import _
from tillbridge.ledger.durable import as_the_folder_is

_LOCK_FILE = "ledger.lock"
_LOCKED_BYTE = 1 << 20  # Windows forbids others to read the locked range: keep it off the text


class LedgerLock:
    """An exclusive lock on `ledger.lock`; the system releases it however the process ends.

    Raises LedgerLocked while another process has it.
    """

    def __init__(self, data_dir: Path) -> None:
        path = data_dir / _LOCK_FILE
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as failure:
            raise LedgerError(
                _("{path} cannot be opened: {detail}.").format(path=path, detail=failure.strerror),
                fix=_("Let the bridge's user write to the data directory, or change data_dir."),
            ) from failure
        try:
            _lock(self._file)
        except OSError as failure:
            owner = _owner(path)
            os.close(self._file)
            raise LedgerLocked(
                _("Another tillbridge ({owner}) has the ledger in {data_dir}.").format(
                    owner=owner, data_dir=data_dir
                ),
                fix=_("Stop that one first, or give this one another data_dir."),
            ) from failure
        # The lock stands whether or not a full disk lets us say whose it is.
        with contextlib.suppress(OSError):
            as_the_folder_is(data_dir, self._file)
            os.ftruncate(self._file, 0)
            os.write(self._file, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Let the next one have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()


def _owner(path: Path) -> str:
    try:
        pid = path.read_text("ascii").strip()
    except (OSError, ValueError):
        pid = ""
    return f"pid {pid}" if pid.isdigit() else _("pid unknown")


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
