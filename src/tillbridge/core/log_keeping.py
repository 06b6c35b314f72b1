"""Keeps the log's last lines on disk, so that a page, a command or a bundle can tell them later.

JSON lines in numbered files (`log/00000007.jsonl` in the data folder), the oldest of which goes
when all of them together are too large. On disk and not in memory: a bridge that died can still be
asked what happened, and one that runs is not heavier for it (decision 28).
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

LOG_FOLDER = "log"
FILES = 8  # about as many; the oldest goes whole
LONGEST_LINE = 32_768

_SMALLEST_FILE = 16_384
_WAITING = 64  # lines from before the data folder is made


class KeptLines:
    """Appends lines to the last file in `folder`, and begins a new one when it is full.

    `max_bytes` bounds all files together (roughly: a file is forgotten whole); 0 keeps nothing. A
    disk that refuses costs the line and nothing else. Safe to use from any thread.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._file_bytes = max(max_bytes // FILES, _SMALLEST_FILE)
        self._lock = threading.Lock()
        self._file = -1
        self._size = 0
        self._waiting: list[bytes] = []

    def keep(self, line: str) -> None:
        """Write one line (without its end), as JSON in ASCII."""
        if not self._max_bytes:
            return
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._waiting.append(line.encode("ascii", "backslashreplace") + b"\n")
            del self._waiting[:-_WAITING]
            # The folder of the ledger is made by the ledger, with its own rights.
            if self._file >= 0 or self._folder.parent.is_dir():
                self._write(b"".join(self._waiting))

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        with self._lock:
            self._close()

    def _write(self, data: bytes) -> None:
        if self._file < 0 or self._size >= self._file_bytes:
            self._open()
        # Taken for written whatever comes of it: a full disk is not asked for the same line twice.
        self._waiting.clear()
        written = os.write(self._file, data)
        self._size += written
        if written < len(data):
            self._close()  # the next line begins a line of its own

    def _open(self) -> None:
        self._close()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        kept = kept_files(self._folder)
        last = kept[-1] if kept else self._folder / file_name(1)
        if kept and last.stat().st_size >= self._file_bytes:
            last = self._folder / file_name(number_of(last) + 1)
        self._forget(kept)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(last, flags | getattr(os, "O_BINARY", 0), 0o600)
        self._size = os.fstat(self._file).st_size
        if self._size and _torn(self._file, self._size):
            self._size += os.write(self._file, b"\n")

    def _forget(self, kept: list[Path]) -> None:
        """Remove the oldest files, so that a full one more still fits."""
        sizes = [each.stat().st_size for each in kept]
        room = self._max_bytes - self._file_bytes
        for place, path in enumerate(kept[:-1]):
            if sum(sizes[place:]) <= room:
                return
            with contextlib.suppress(OSError):  # Windows keeps what somebody reads just now
                path.unlink()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def file_name(number: int) -> str:
    """Return the name of the file with this number."""
    return f"{number:08d}.jsonl"


def number_of(path: Path) -> int:
    """Return the number of a kept file."""
    return int(path.stem)


def kept_files(folder: Path) -> list[Path]:
    """Return the files of kept lines, the oldest first; none where the folder is not there."""
    try:
        found = [path for path in folder.iterdir() if _is_kept(path)]
    except OSError:
        return []
    return sorted(found, key=number_of)


def backwards(path: Path, block: int = 65_536) -> Iterator[bytes]:
    """Return a file's lines, the last first, without reading all of it. Raises OSError."""
    with path.open("rb") as file:
        place = file.seek(0, os.SEEK_END)
        begun = b""
        while place:
            step = min(block, place)
            place -= step
            file.seek(place)
            begun, *whole = (file.read(step) + begun).split(b"\n")
            yield from reversed(whole)
        yield begun


def _is_kept(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.stem.isascii() and path.stem.isdecimal()


def _torn(file: int, size: int) -> bool:
    """Whether the last line was cut off by a crash."""
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) != b"\n"
