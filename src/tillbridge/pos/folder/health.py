"""Whether the till is there and can be given orders, as far as files can tell."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tillbridge.adapter import Health
from tillbridge.adapter.folders import refusal, trouble_of, try_writing
from tillbridge.adapter.new_files import make_own_folder

_TRY_EVERY_S = 60.0


@dataclass(slots=True)
class FolderHealth:
    """Looks at the heartbeat if there is one, and at the folders that must be there.

    `written` are the till's folders that the bridge writes into and moves files out of: their
    rights are looked at each time, and a file is written into them at the start and for as long as
    they fail. `own` are the bridge's own folders within them, where a file is written every minute:
    a till that watches its own folders does not see that. Those that are not made yet are left out.
    Nobody but the bridge's user may have made the `private` ones of them.
    """

    folders: Sequence[Path]
    heartbeat: Path | None
    heartbeat_s: float
    written: Sequence[Path] = ()
    own: Sequence[Path] = ()
    private: Sequence[Path] = ()
    _tried_at: float | None = field(default=None, init=False)
    _failing: bool = field(default=True, init=False)  # at the start nobody knows
    _beat: tuple[float, float] | None = field(default=None, init=False)  # its time, seen when

    def health(self) -> Health:
        """Return whether the till takes orders; a folder that is gone means a vanished share."""
        found = self._folders()
        self._failing = not found.online
        return found if self._failing or self.heartbeat is None else self._heard(self.heartbeat)

    def look_again(self) -> None:
        """Write into every folder at the next look: writing an order has just failed."""
        self._failing = True

    def _folders(self) -> Health:
        for folder in (*self.written, *self.folders):
            if not folder.is_dir():
                return _away(folder, FileNotFoundError())
        own = [folder for folder in (*self.private, *self.own) if folder.is_dir()]
        now = time.monotonic()
        due = self._failing or self._tried_at is None or now - self._tried_at >= _TRY_EVERY_S
        for folder in (*self.written, *own):
            wrong = refusal(folder)
            if wrong is None and due and (self._failing or folder in own):
                wrong = _try_private(folder) if folder in self.private else try_writing(folder)
            if wrong is not None:
                return _away(folder, wrong)
        if due:
            self._tried_at = now
        return Health(online=True)

    def _heard(self, heartbeat: Path) -> Health:
        try:
            touched_at = heartbeat.stat().st_mtime
        except OSError:
            return Health(
                online=False,
                detail=f"The till's sign of life, the file {heartbeat}, is not there.",
                fix="Check that the till's program runs.",
            )
        now = time.monotonic()
        if self._beat is None or self._beat[0] != touched_at:
            # A clock that was set says nothing of a till whose touch has been seen. Without that
            # its age counts, where a time in the future is a clock that is off.
            touched = self._beat is not None and touched_at > self._beat[0]
            age_s = 0.0 if touched else max(0.0, time.time() - touched_at)
            self._beat = (touched_at, now - age_s)
        if now - self._beat[1] > self.heartbeat_s:
            since = datetime.fromtimestamp(touched_at).astimezone()
            return Health(
                online=False,
                detail=f"Its program has given no sign of life since {since:%Y-%m-%d %H:%M:%S} "
                f"(the file {heartbeat}).",
                fix="Check that the till is on and its program runs.",
            )
        return Health(online=True)


def _try_private(folder: Path) -> OSError | None:
    try:
        make_own_folder(folder)  # it is there: this only looks whose it is
    except OSError as failure:
        return failure
    return try_writing(folder)


def _away(folder: Path, failure: OSError) -> Health:
    trouble = trouble_of(folder, failure)
    return Health(online=False, detail=trouble.text, fix=trouble.fix)
