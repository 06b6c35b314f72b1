"""News of orders: JSON files that the till drops into a folder.

A file is read as soon as it is whole, and moved to `done/` once the core has stored what it says.
One that is no news the bridge understands goes to `bad/`, with a `.error` beside it that says why,
but only after it has not changed for a while: a till that writes in place makes half a file first.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tillbridge.adapter import (
    BadRow,
    PosFailure,
    PosOffline,
    RejectReason,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.adapter.folders import write_new
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _
from tillbridge.model.numbers import is_storable, printable
from tillbridge.pos.folder.orders import Pruning, failed

_MAX_BYTES = 1 << 20
_MAX_ID = 500
_MAX_ITEMS = 100  # no order has more kinds of items that are out at once
_SETTLE_S = 1.0
_DONE_STORED_S = 30 * 86_400

_Signature = tuple[int, int, int]  # file number, time of the last change, size


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    signature: _Signature

    @property
    def age_key(self) -> tuple[int, str]:
        return (self.signature[1], self.name)


@dataclass(slots=True)
class UpdateFiles:
    """Reads news from `folder`, oldest first."""

    folder: Path
    _read: dict[str, _Signature] = field(default_factory=dict, init=False)
    _suspect: dict[str, tuple[_Signature, float]] = field(default_factory=dict, init=False)
    _pruning: Pruning = field(init=False)

    def __post_init__(self) -> None:
        self._pruning = Pruning(self.folder / "done", _DONE_STORED_S, made=True)

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the news in the folder that is not handled yet. Raises PosOffline."""
        updates = []
        found = self._found()
        present = {file.name for file in found}
        self._read = {name: seen for name, seen in self._read.items() if name in present}
        self._suspect = {name: seen for name, seen in self._suspect.items() if name in present}
        for file in found:
            try:
                update = _parse(file.name, self._content(file))
            except OSError:  # gone again, or still held by the till: the next look will show
                continue
            except ValueError as failure:
                self._distrust(file, str(failure))
                continue
            self._suspect.pop(file.name, None)
            self._read[file.name] = file.signature
            updates.append(update)
        return updates

    def update_handled(self, update: TicketUpdate) -> None:
        """Move the file to `done/`. One that was overwritten since it was read is news again."""
        name = update.key
        if Path(name).name != name:
            raise PosFailure(
                _("{name!r} is no file of {folder}.").format(name=name, folder=str(self.folder))
            )
        try:
            moved = self._move(name, "done")
            read = self._read.pop(name, None)
            if moved is not None and read is not None and _signature(moved.stat()) != read:
                moved.rename(_free(self.folder, name))
            self._pruning.when_due()
        except OSError as failure:
            raise failed(PosOffline, self.folder, failure) from failure

    def unreadable_updates(self) -> Sequence[BadRow]:
        """Return what lies in `bad/`, until a person has cleared it away."""
        rows = []
        with contextlib.suppress(OSError):
            for error in sorted((self.folder / "bad").glob("*.error")):
                name = error.name.removesuffix(".error")
                if _is_plain(error) and error.with_name(name).exists():
                    rows.append(
                        BadRow(
                            place=f"bad/{name}",
                            text=error.read_text(encoding="utf-8", errors="replace").strip(),
                            fix=_("Handle the order by hand, then remove the file."),
                        )
                    )
        return rows

    def _found(self) -> list[_Found]:
        found = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if not entry.name.startswith(".") and entry.name.lower().endswith(".json"):
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            if stat.S_ISREG(status.st_mode):
                                found.append(_Found(entry.name, _signature(status)))
        except OSError as failure:
            raise failed(PosOffline, self.folder, failure) from failure
        return sorted(found, key=lambda file: file.age_key)

    def _content(self, file: _Found) -> bytes:
        if file.signature[2] > _MAX_BYTES:
            raise ValueError(_("It is larger than {n} bytes.").format(n=_MAX_BYTES))
        return read_shared(self.folder / file.name)

    def _distrust(self, file: _Found, why: str) -> None:
        """Move the file to `bad/` if it has been like this for a while."""
        now = time.monotonic()
        signature, since = self._suspect.setdefault(file.name, (file.signature, now))
        if signature != file.signature:
            self._suspect[file.name] = (file.signature, now)
        elif now - since >= _SETTLE_S:
            # Where it cannot be moved, it is left and looked at again.
            with contextlib.suppress(OSError):
                moved = self._move(file.name, "bad")
                if moved is not None:
                    write_new(
                        moved.with_name(f"{moved.name}.error"), f"{why}\n".encode(errors="replace")
                    )
                del self._suspect[file.name]

    def _move(self, name: str, where: str) -> Path | None:
        """Return where the file is now, None if somebody else has taken it."""
        folder = self.folder / where
        folder.mkdir(exist_ok=True)
        target = _free(folder, name)
        try:
            (self.folder / name).rename(target)
        except FileNotFoundError:
            return None
        return target


def _is_plain(path: Path) -> bool:
    """Return whether it is a file and no link, which could name any file of the bridge."""
    return stat.S_ISREG(path.lstat().st_mode)


def _free(folder: Path, name: str) -> Path:
    """Return `name` in the folder, numbered if that is taken."""
    path = folder / name
    number = 1
    while path.exists():
        path = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
        number += 1
    return path


def _signature(status: os.stat_result) -> _Signature:
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _parse(key: str, content: bytes) -> TicketUpdate:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        data = json.loads(content.decode(encoding))
    except (ValueError, RecursionError) as failure:
        raise ValueError(_("It is not JSON: {why}.").format(why=str(failure))) from failure
    if not isinstance(data, dict):
        raise ValueError(_("It is not an object."))  # noqa: TRY004 -- bad input, not a programming error
    order_id = data.get("order_id")
    if not isinstance(order_id, str) or not order_id.strip():
        raise ValueError(_('It has no "order_id" that is text.'))
    if len(order_id) > _MAX_ID or not is_storable(order_id):
        raise ValueError(
            _('Its "order_id" is no id: {order_id}').format(order_id=printable(order_id, most=60))
        )
    status = data.get("status")
    known = {each.value for each in TicketStatus}
    if not isinstance(status, str) or status.strip().lower() not in known:
        raise ValueError(
            _('Its "status" is {status!r}, not one of {names}.').format(
                status=str(status)[:60], names=", ".join(sorted(known))
            )
        )
    reason, message = _reason(data)
    return TicketUpdate(
        key=key,
        order_id=order_id.strip(),
        status=TicketStatus(status.strip().lower()),
        reason=reason,
        external_ids=_external_ids(data.get("external_ids")),
        message=message,
    )


def _reason(data: Mapping[str, Any]) -> tuple[RejectReason | None, str]:
    """Return reason and message. A reason of the till's own is OTHER: the rejection must count."""
    reason, message = data.get("reason"), data.get("message")
    text = message.strip() if isinstance(message, str) else ""
    if reason is None or reason == "":
        return None, text
    name = str(reason).strip().lower()
    if name in {each.value for each in RejectReason}:
        return RejectReason(name), text
    return RejectReason.OTHER, f"{reason}: {text}" if text else str(reason)


def _external_ids(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    ids = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in ids):
        raise ValueError(_('Its "external_ids" is not a list of ids.'))
    if len(ids) > _MAX_ITEMS:
        raise ValueError(
            _('Its "external_ids" names {n} items; at most {most} may be.').format(
                n=len(ids), most=_MAX_ITEMS
            )
        )
    texts = tuple(dict.fromkeys(str(each) for each in ids))
    for each in texts:
        if not each or len(each) > _MAX_ID or not is_storable(each):
            raise ValueError(
                _('Its "external_ids" holds no id: {id}').format(id=printable(each, most=60))
            )
    return texts
