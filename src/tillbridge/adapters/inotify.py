"""Change events of folders on Linux, straight from the kernel: none while nothing happens.

The library that serves the other systems (watchfiles) collects events by waking up many times a
second, which would take half of what the bridge may take while it idles (decision 11). Three calls
of the C library do; what they tell are hints only, so everything else about inotify is left out.
"""

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence

# Other systems have neither, and never get further than this line.
_NONBLOCK_CLOEXEC = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT = 0x400, 0x800, 0x2000
_OVERFLOW = 0x4000
_ONLY_FOLDERS = 0x0100_0000
_WANTED = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLY_FOLDERS
)
_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_ONE_READ = 65_536


class FolderNotices:
    """The kernel's notices of some folders. Raises OSError where there are none to be had.

    `fileno()` is readable while there are any.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = _checked(libc.inotify_init1(_NONBLOCK_CLOEXEC))
        self._folders: dict[int, str] = {}
        try:
            for folder in folders:
                watch = libc.inotify_add_watch(self._fd, os.fsencode(folder), _WANTED)
                self._folders[_checked(watch)] = folder
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._fd

    def read(self) -> set[tuple[str, str]]:
        """Return (folder, name) of what was touched since the last read.

        The name is "" where the folder itself came or went, or notices were lost.
        """
        try:
            data = os.read(self._fd, _ONE_READ)
        except BlockingIOError:
            return set()
        touched: set[tuple[str, str]] = set()
        for watch, mask, name in _notices(data):
            if mask & _OVERFLOW:
                touched |= {(folder, "") for folder in self._folders.values()}
            elif watch in self._folders:
                touched.add((self._folders[watch], "" if mask & _GONE else name))
        return touched

    def close(self) -> None:
        """Want no more notices."""
        os.close(self._fd)


def _notices(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        watch, mask, _cookie, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = data[at : at + length].rstrip(b"\0")
        at += length
        yield watch, mask, os.fsdecode(name)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
