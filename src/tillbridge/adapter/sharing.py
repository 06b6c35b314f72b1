"""Opening a file that its till keeps open, without being in the till's way.

Windows lets the one who opens a file say what others may do meanwhile. Python's own `open` allows
reading and writing, but not replacing or removing: a till that renames its new export over the one
that is being read would be refused, and some then stop exporting. Here everything is allowed.

It is also where the bridge's own files are refused to an adapter: a link in the till's folder, put
there after its path was checked, opens nothing of them (`core.files`).
"""

import errno
import sys
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

from tillbridge.core import files

# Of CreateFileW, as Windows numbers them.
GENERIC_READ = 0x80000000
SHARE_ALL = 0x1 | 0x2 | 0x4  # read, write, delete (which is also: rename and replace)
OPEN_EXISTING = 3
SEQUENTIAL = 0x08000000

_TRIES = 3

Opener = Callable[[str, int], int]


def open_shared(path: Path) -> BufferedReader:
    """Open a file for reading, so that its till may do with it what it likes.

    Raises OSError: NotTheTills where a link leads to a file of the bridge's own.
    """
    for tries_left in reversed(range(_TRIES)):
        file = open(path, "rb", opener=_OPENER)  # noqa: SIM115 -- the caller closes it
        try:
            files.refuse(path, file.fileno())
        except OSError as failure:
            file.close()
            # The till has put another file in its place meanwhile: that one is the export.
            if failure.errno != errno.ESTALE or not tries_left:
                raise
        else:
            return file
    raise AssertionError  # the last try returns or raises


def read_shared(path: Path) -> bytes:
    """Return the content of a file, read as `open_shared` opens it. Raises OSError."""
    with open_shared(path) as file:
        return file.read()


def sharing_opener(
    create_file: Callable[[str, int, int, int, int], int], to_descriptor: Callable[[int], int]
) -> Opener:
    """Return an opener for `open`.

    `create_file` takes name, access, sharing, disposition and flags, returns a handle, and raises
    OSError; `to_descriptor` makes a descriptor of the handle.
    """

    def opener(name: str, _flags: int) -> int:
        return to_descriptor(create_file(name, GENERIC_READ, SHARE_ALL, OPEN_EXISTING, SEQUENTIAL))

    return opener


if sys.platform == "win32":
    import ctypes
    import msvcrt
    import os
    from ctypes import wintypes

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateFileW.restype = wintypes.HANDLE
    _kernel.CreateFileW.argtypes = (
        wintypes.LPCWSTR,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.LPVOID,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.HANDLE,
    )

    def _create_file(name: str, access: int, sharing: int, disposition: int, flags: int) -> int:
        handle = _kernel.CreateFileW(name, access, sharing, None, disposition, flags, None)
        if handle in {None, wintypes.HANDLE(-1).value}:
            raise ctypes.WinError(ctypes.get_last_error())
        return int(handle)

    def _to_descriptor(handle: int) -> int:
        return msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY)

    _OPENER: Opener | None = sharing_opener(_create_file, _to_descriptor)
else:
    _OPENER = None
