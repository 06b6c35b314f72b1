"""The files of the bridge itself, which no adapter reads as a till's.

Whoever may write in a till's folder can put a link there, and change it at any moment. So what
counts is not the path that was checked but the file that was opened: `refuse` looks at the
descriptor.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

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
    """Raise NotTheTills where what was opened at `path` is the bridge's own.

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
        inside = Path(real)
        own = place.resolve()
        if inside.is_relative_to(own) and Path(named) not in {
            inside,
            place / inside.relative_to(own),
        }:
            raise _not_the_tills(named)


def _places() -> list[Path]:
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    return [*tuple(_folders), *map(Path, _SYSTEM), *([Path(credentials)] if credentials else [])]


def _found(paths: Iterable[Path]) -> list[os.stat_result]:
    found = []
    for path in paths:
        try:
            found.append(path.stat())
        except OSError:
            continue
    return found


def _not_the_tills(path: str) -> NotTheTills:
    return NotTheTills(errno.EACCES, "it is a file of the bridge, not of the till", path)
