"""Orders as files: `<order id>.json` for each, and `cancelled/<order id>.json` to take one back.

A file is put into a folder exactly once, though the till may take it away at any moment.
A file that is gone may have been taken, or never have been there: the folder alone cannot say. So
a journal in a hidden folder beside it (`.tillbridge`, on the same file system) is written in this
order, each step durable before the next:

1. `<name>.ready`  the content: written to a `.part` file, synced, renamed
2. `<name>.sent`   an empty mark: from now on it is decided that the file goes out
3. `<name>.ready` is renamed to where the till sees it

Whenever the program dies, the files show afterwards what happened:

| `.sent` | `.ready` | the file                                                  |
|---------|----------|-----------------------------------------------------------|
| no      | any      | was never put out                                         |
| yes     | yes      | was never put out: the rename is still to be done         |
| yes     | no       | was put out, whether the till has taken it since or not   |

Two bridges may share the folder, and one that was frozen in the middle may go on when another has
put the file out: only one can make the mark, and who finds it made puts out nothing of its own.

Only renames within one file system and new empty files are used, which network shares know too.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tillbridge.adapter import Order, PosFailure, PosOffline, Ticket, TicketOutcomeUnknown
from tillbridge.adapter.folders import make_own_folder, sync_folder, trouble_of, write_new
from tillbridge.adapter.texts import _


class OrderFiles:
    """Writes orders into `orders_dir`, which the till must have made; it may take them away."""

    def __init__(self, orders_dir: Path) -> None:
        self.orders = Outbox(orders_dir)
        self.cancelled = Outbox(orders_dir / "cancelled")
        self.on_failure: Callable[[], None] = lambda: None  # called when writing has failed

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the event's data as received. Raises PosOffline, TicketOutcomeUnknown."""
        stem = safe_stem(key)
        try:
            self.orders.put(stem, _content(order.payload))
        except (PosOffline, TicketOutcomeUnknown):
            self.on_failure()
            raise
        return Ticket(f"{stem}.json")

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket if it was ever written, be its file still there or not."""
        stem = safe_stem(key)
        return Ticket(f"{stem}.json") if self.orders.holds(stem) else None

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Cancel a written order at the till, once. Raises PosOffline."""
        stem = safe_stem(key)
        if not self.orders.holds(stem):
            return
        try:
            self.cancelled.folder.mkdir(exist_ok=True)
        except OSError as failure:
            raise failed(PosOffline, self.cancelled.folder, failure) from failure
        self.cancelled.put(stem, _content({"order_id": order.id, "reason": reason}))


def _content(data: Mapping[str, Any]) -> bytes:
    readable = json.dumps(data, ensure_ascii=False, indent=2, default=_plain)
    try:
        return f"{readable}\n".encode()
    except UnicodeEncodeError:  # half a character, which JSON lets pass escaped and UTF-8 does not
        return f"{json.dumps(data, indent=2, default=_plain)}\n".encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} has no place in an order")


_STORED_S = 60 * 86_400
_LOOK_AGAIN_S = 86_400


@dataclass(slots=True)
class Outbox:
    """Files of the form `<stem>.json` in `folder`, each put there once and never again."""

    folder: Path
    journal: Path = field(init=False)  # the bridge's own folder beside the files
    _pruning: "Pruning" = field(init=False)  # nobody asks any more for what was put out long ago

    def __post_init__(self) -> None:
        self.journal = self.folder / ".tillbridge"
        self._pruning = Pruning(self.journal, _STORED_S)

    def holds(self, stem: str) -> bool:
        """Return whether the file was put out, be it there or taken. Raises PosOffline."""
        try:
            if _exists(self.folder / f"{stem}.json"):
                return True
            self.folder.stat()  # a share that has vanished knows nothing, not even a no
            sent = _exists(self.journal / f"{stem}.sent")
            return sent and not _exists(self.journal / f"{stem}.ready")
        except OSError as failure:
            raise failed(PosOffline, self.folder, failure) from failure

    def put(self, stem: str, content: bytes) -> None:
        """Put the file out, unless that was done before.

        Raises PosOffline if it surely was not, TicketOutcomeUnknown where that cannot be known.
        """
        if self.holds(stem):
            return
        ready, sent = self.journal / f"{stem}.ready", self.journal / f"{stem}.sent"
        try:
            is_new = not self.journal.is_dir()
            make_own_folder(self.journal)
            if is_new:
                _give_to_owner_of(self.folder, self.journal)
            self._pruning.when_due()
            part = self.journal / f"{stem}.{secrets.token_hex(4)}.part"
            if not _exists(sent):
                write_new(part, content)
                self._decide(part, ready, sent)
        except OSError as failure:
            raise failed(PosOffline, self.folder, failure) from failure
        try:
            ready.replace(self.folder / f"{stem}.json")
        except OSError as failure:
            # A network share may have done it and failed to say so.
            if not self._is_out(ready):
                raise failed(PosOffline, self.folder, failure) from failure
        try:
            sync_folder(self.folder)
            sync_folder(self.journal)
        except OSError as failure:
            raise failed(TicketOutcomeUnknown, self.folder, failure) from failure

    def _decide(self, part: Path, ready: Path, sent: Path) -> None:
        """Make the content ready, and the mark. Raises TicketOutcomeUnknown if it was made."""
        try:
            if not _exists(sent):
                part.replace(ready)
                sync_folder(self.journal)
                file = os.open(sent, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
                sync_folder(self.journal)
                return
        except FileExistsError:
            pass
        with contextlib.suppress(OSError):
            part.unlink()
        raise TicketOutcomeUnknown(_("Another bridge has written this order meanwhile."))

    def _is_out(self, ready: Path) -> bool:
        try:
            return not _exists(ready)
        except OSError as failure:
            raise failed(TicketOutcomeUnknown, self.folder, failure) from failure


@dataclass(slots=True)
class Pruning:
    """Removes old files from a folder, at most once a day.

    Those that the till has `made` may have any time of their own; moving one touches its second.
    """

    folder: Path
    stored_s: float
    made: bool = False
    _pruned_at: float | None = field(default=None, init=False)

    def when_due(self) -> None:
        """Remove what has not been touched for so long. Raises OSError if nobody can look."""
        now = time.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < _LOOK_AGAIN_S:
            return
        self._pruned_at = now
        oldest = time.time() - self.stored_s
        with os.scandir(self.folder) as entries:
            for entry in entries:
                # One that cannot be removed must not keep an order from going out.
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    times = (status.st_mtime, status.st_ctime if self.made else 0)
                    if max(times) < oldest:
                        Path(entry.path).unlink()


def _exists(path: Path) -> bool:
    """Return whether `path` is there; raises OSError if that cannot be known."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def failed(kind: type[PosFailure], folder: Path, failure: OSError) -> PosFailure:
    """Return what a failure in a folder is for who asked, in words."""
    trouble = trouble_of(folder, failure)
    return kind(trouble.text, fix=trouble.fix)


def _give_to_owner_of(folder: Path, made: Path) -> None:
    """Give what root has made to the owner of the folder around it, who writes there next."""
    if sys.platform != "win32" and os.geteuid() == 0:
        around = folder.stat()
        os.chown(made, around.st_uid, around.st_gid)


_MAX_STEM = 120
_RESERVED_BY_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def safe_stem(name: str) -> str:
    """Return `name` as the stem of a file name; other names give other stems.

    Raises PosFailure for an empty name, which can name nothing.
    """
    if not name:
        raise PosFailure(_("The order cannot be written: an empty id cannot name a file."))
    stem = _UNSAFE.sub(_encoded, name)
    if stem.startswith(".") or _RESERVED_BY_WINDOWS.fullmatch(stem):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if len(stem) > _MAX_STEM:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        stem = f"{stem[: _MAX_STEM - 33]}-{digest}"
    return stem


def _encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode(errors="surrogatepass"))
