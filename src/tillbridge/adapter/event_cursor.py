"""Where the bridge is in a till's list of events."""

from pathlib import Path

from tillbridge.adapter.failures import PosOffline
from tillbridge.adapter.folders import sync_folder, trouble_of, write_new
from tillbridge.adapter.texts import _


class EventCursor:
    """The number of the last event that was handled, in the file `path`.

    For a till that lists its events after a number (`?after=17`) and cannot mark them as handled.
    The file has the old number or the new one, even after a power cut.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def number(self) -> int:
        """The last number that was handled, 0 before the first. Raises PosOffline."""
        try:
            return int(self._path.read_bytes())
        except FileNotFoundError:
            return 0
        except ValueError as failure:
            raise PosOffline(
                _("{path} contains no event number.").format(path=str(self._path)),
                fix=_("Remove {path}: the bridge then requests all events again.").format(
                    path=str(self._path)
                ),
            ) from failure
        except OSError as failure:
            raise self._offline(failure) from failure

    def handled(self, key: str) -> None:
        """Store `key`, an event's number; an older one changes nothing. Raises PosOffline."""
        if int(key) <= self.number:
            return
        part = self._path.with_name(f"{self._path.name}.part")
        try:
            write_new(part, key.encode())
            part.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as failure:
            raise self._offline(failure) from failure

    def _offline(self, failure: OSError) -> PosOffline:
        trouble = trouble_of(self._path.parent, failure)
        return PosOffline(trouble.text, fix=trouble.fix)
