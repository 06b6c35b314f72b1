"""The Windows Data Protection API: a key that opens on this machine only.

Windows has no equivalent of a systemd credential; with DPAPI a copied data folder (a back-up, a
stolen disk image without the system's own keys) does not open the vault. It protects for the
machine and not for one account, because a technician's commands run as another account than the
service; who may read the file is settled by its access list (install.ps1).
"""

import base64
import sys
from collections.abc import Callable
from dataclasses import dataclass

_MARK = b"dpapi:"


@dataclass(frozen=True, slots=True)
class Sealing:
    """A way of sealing that only this machine can undo; both raise OSError."""

    protect: Callable[[bytes], bytes]
    unprotect: Callable[[bytes], bytes]


def seal(key: bytes, sealing: Sealing | None) -> bytes:
    """Return the content of the key file: sealed, or the key itself where the system cannot."""
    return key if sealing is None else _MARK + base64.b64encode(sealing.protect(key))


def unseal(content: bytes, sealing: Sealing | None) -> bytes:
    """Return the key in the content of a key file. Raises OSError where this machine cannot."""
    if not content.startswith(_MARK):
        return content
    if sealing is None:
        raise OSError(0, "it was sealed by Windows, on the machine it comes from")
    try:
        blob = base64.b64decode(content.removeprefix(_MARK).strip(), validate=True)
    except ValueError as slip:
        raise OSError(0, "it is damaged") from slip
    return sealing.unprotect(blob)


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _LOCAL_MACHINE, _NO_UI = 0x4, 0x1

    _Bytes = ctypes.POINTER(ctypes.c_char)

    class _Blob(ctypes.Structure):
        _fields_ = (("length", wintypes.DWORD), ("data", _Bytes))

    def _call(name: str, content: bytes) -> bytes:
        given = _Blob(len(content), ctypes.cast(ctypes.c_char_p(content), _Bytes))
        made = _Blob()
        crypt = getattr(ctypes.WinDLL("crypt32", use_last_error=True), name)
        if not crypt(
            ctypes.byref(given),
            None,
            None,
            None,
            None,
            _LOCAL_MACHINE | _NO_UI,
            ctypes.byref(made),
        ):
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            return ctypes.string_at(made.data, made.length)
        finally:
            ctypes.WinDLL("kernel32").LocalFree(made.data)

    def _protect(content: bytes) -> bytes:
        return _call("CryptProtectData", content)

    def _unprotect(content: bytes) -> bytes:
        return _call("CryptUnprotectData", content)

    SYSTEM: Sealing | None = Sealing(_protect, _unprotect)
else:
    SYSTEM = None
