"""Whether the till is there, as far as files can tell."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import Health
from tillbridge.adapters.folder.places import refusal, wrong_with


@dataclass(frozen=True, slots=True)
class FolderHealth:
    """Looks at the heartbeat if there is one, and at the folders that must be there.

    `written` are those into which orders are written and out of which news is moved.
    """

    folders: Sequence[Path]
    heartbeat: Path | None
    heartbeat_s: float
    written: Sequence[Path] = ()

    def health(self) -> Health:
        """Return whether the till is there; a folder that is not means a share that vanished."""
        for folder in (*self.written, *self.folders):
            if not folder.is_dir():
                return Health(online=False, detail=f"The folder {folder} is not there.")
        for folder in self.written:
            if refused := refusal(folder):
                return Health(online=False, detail=wrong_with(folder, refused))
        if self.heartbeat is None:
            return Health(online=True)
        try:
            touched_at = self.heartbeat.stat().st_mtime
        except OSError:
            return Health(
                online=False, detail=f"The till's heartbeat {self.heartbeat} is not there."
            )
        # A time in the future is a clock that is off, and a till that is on.
        age_s = time.time() - touched_at
        if age_s > self.heartbeat_s:
            return Health(
                online=False,
                detail=f"The till has not touched {self.heartbeat.name} for {_span(age_s)}.",
            )
        return Health(online=True)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
