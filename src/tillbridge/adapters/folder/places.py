"""What is wrong with a folder of the till, in words that say what to do."""

import errno
import os
import sys
from pathlib import Path

_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}


def wrong_with(folder: Path, failure: OSError) -> str:
    """Return why a folder cannot be used; a sentence, or two."""
    if isinstance(failure, FileNotFoundError | NotADirectoryError):
        return f"The folder {folder} is not there."
    if failure.errno in _REFUSED:
        # A service under systemd sees the whole machine read-only, but for what is named.
        return (
            f"The bridge may not write to the folder {folder} ({failure.strerror}). Give its user "
            "the right to; a service under systemd also needs: sudo tillbridge service install"
        )
    return f"The folder {folder} cannot be used: {failure.strerror or failure}."


def refusal(folder: Path) -> OSError | None:
    """Return what writing in this folder would end with, None where it may be written."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    number = errno.EROFS if _is_read_only(folder) else errno.EACCES
    return OSError(number, os.strerror(number))


def _is_read_only(folder: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:  # a share that has just vanished
        return False
