"""File names made of ids that come from the network.

An id must not choose a folder (`../`), hide its file (`.x`), hit a name that Windows keeps for
itself (`con`), or be longer than a file system takes. Ids as the service makes them stay as they
are.
"""

import hashlib
import re

_MAX_STEM = 120
_KEPT_BY_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def safe_stem(name: str) -> str:
    """Return `name` as the stem of a file name; other names give other stems.

    Raises ValueError for an empty name, which can name nothing.
    """
    if not name:
        raise ValueError("an empty id cannot name a file")
    stem = _UNSAFE.sub(_encoded, name)
    if stem.startswith(".") or _KEPT_BY_WINDOWS.fullmatch(stem):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if len(stem) > _MAX_STEM:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        stem = f"{stem[: _MAX_STEM - 33]}-{digest}"
    return stem


def _encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode(errors="surrogatepass"))
