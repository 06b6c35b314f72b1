"""What was begun and what came out, on disk before it happens: a printer cannot be asked.

`<key>.begun` is there before the first byte of a ticket goes to the printer, `<key>.printed` once
the printer has confirmed it. A crash between the two is an outcome that nobody knows.
"""

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tillbridge.adapter.folders import make_own_folder, write_new

_STORED_S = 60 * 86_400
_LOOK_AGAIN_S = 86_400


@dataclass(slots=True)
class Journal:
    """The journal of one printer, in a folder of its own. Raises OSError."""

    folder: Path
    _pruned_at: float | None = field(default=None, init=False)

    def printed(self, key: str) -> str | None:
        """Return what was noted when the ticket came out; None where that is not known."""
        try:
            return self._path(key, "printed").read_text("utf-8")
        except FileNotFoundError:
            return None

    def begun(self, key: str) -> bool:
        """Return whether the ticket was ever begun."""
        try:
            self._path(key, "begun").stat()
        except FileNotFoundError:
            return False
        return True

    def begin(self, key: str) -> None:
        """Note that the ticket is going to the printer, before anything of it goes."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        make_own_folder(self.folder.parent)
        make_own_folder(self.folder)
        self._prune()
        if self.begun(key):  # a write that fails would take the mark away
            self._sync()
        else:
            self._write(self._path(key, "begun"), "")

    def done(self, key: str, note: str) -> None:
        """Note that the ticket came out."""
        part = self._path(key, "part")
        self._write(part, note)
        part.replace(self._path(key, "printed"))
        self._sync()

    def forget(self, key: str) -> None:
        """Take back that it was begun: the printer surely has nothing of it."""
        with contextlib.suppress(FileNotFoundError):
            self._path(key, "begun").unlink()

    def _path(self, key: str, ending: str) -> Path:
        name = quote(key, safe="")
        if len(name) > 150:
            name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / f"{name}.{ending}"

    def _write(self, path: Path, text: str) -> None:
        write_new(path, text.encode("utf-8"))
        self._sync()

    def _sync(self) -> None:
        with contextlib.suppress(OSError):  # Windows opens no folders, some shares sync none
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _prune(self) -> None:
        """Forget what is long past: nobody asks for it any more."""
        now = time.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < _LOOK_AGAIN_S:
            return
        self._pruned_at = now
        oldest = time.time() - _STORED_S
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
