"""Reads stored log lines: filtered, bounded, and masked again with what is secret by now."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.core.log import backwards, file_number, log_files
from tillbridge.core.redaction import leaves, masked_value
from tillbridge.model.instant import from_iso

Line = Mapping[str, Any]

LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_ORDER_FIELDS = ("order", "order_id", "parent_order", "subject")
_AT_ONCE = 1 << 20  # bytes that a follower reads in one go


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are wanted; "" wants all.

    `level` is the least severe one, `event` a beginning of the event's name, `text` stands anywhere
    in the line (in any case), `since_ms` is in ms since the epoch.
    """

    level: str = ""
    event: str = ""
    text: str = ""
    store: str = ""
    order: str = ""
    since_ms: int | None = None

    def wants(self, line: Line) -> bool:
        """Whether this line is wanted."""
        return (
            LEVELS.get(str(line.get("level")), LEVELS["error"]) >= LEVELS.get(self.level, 0)
            and str(line.get("event", "")).startswith(self.event)
            and (not self.store or _of_store(line, self.store))
            and (not self.order or any(line.get(name) == self.order for name in _ORDER_FIELDS))
            and (self.since_ms is None or _at_ms(line) >= self.since_ms)
            and (not self.text or self.text.lower() in _all_text(line))
        )

    def may_want(self, raw: bytes) -> bool:
        """Whether a line not parsed yet may be wanted: quick, and never wrong about a no."""
        needles = (self.event, self.store, self.order)
        return all(_as_written(each) in raw for each in needles if each)


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place in the stored lines: a file by its number, and bytes from its beginning."""

    file: int = 0
    offset: int = 0


def latest(folder: Path, wanted: LogFilter, limit: int) -> list[Line]:
    """Return the last `limit` lines that are wanted, the oldest first."""
    found: list[Line] = []
    for path in reversed(log_files(folder)):
        try:
            for raw in backwards(path):
                if wanted.may_want(raw) and (line := _wanted(raw, wanted)) is not None:
                    found.append(line)
                    if len(found) >= limit:
                        return found[::-1]
        except OSError:
            continue  # forgotten this very moment
    return found[::-1]


def end_of(folder: Path) -> LogPlace:
    """Return where the next line will stand."""
    files = log_files(folder)
    try:
        return LogPlace(file_number(files[-1]), files[-1].stat().st_size) if files else LogPlace()
    except OSError:
        return LogPlace()


def following(folder: Path, place: LogPlace, wanted: LogFilter) -> tuple[list[Line], LogPlace]:
    """Return the wanted lines after a place, and the place after them; call it again for more."""
    found: list[Line] = []
    for path in log_files(folder):
        number = file_number(path)
        if number < place.file:
            continue
        offset = place.offset if number == place.file else 0
        data = _read(path, offset)
        whole = data[: data.rfind(b"\n") + 1]
        place = LogPlace(number, offset + len(whole))
        lines = (_wanted(raw, wanted) for raw in whole.split(b"\n"))
        found += [line for line in lines if line is not None]
        if len(data) == _AT_ONCE:
            break  # the rest of this file comes first
    return found, place


def fields_of(line: Line) -> dict[str, str]:
    """Return a line's own fields as texts, without what every line has."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in line.items()
        if name not in {"event", "level", "at", "exception"}
    }


def _wanted(raw: bytes, wanted: LogFilter) -> Line | None:
    if not raw:
        return None
    try:
        line = json.loads(raw)
    except ValueError:
        return None  # cut off by a crash
    if not isinstance(line, dict) or not wanted.wants(line):
        return None
    # A secret that was learnt after the line was written is masked now.
    shown = masked_value(line)
    return shown if isinstance(shown, dict) else None


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset, os.SEEK_SET)
            return file.read(_AT_ONCE)
    except OSError:
        return b""


def _of_store(line: Line, store: str) -> bool:
    stores = line.get("stores")
    return line.get("store") == store or (isinstance(stores, Sequence) and store in stores)


def _at_ms(line: Line) -> int:
    try:
        return from_iso(str(line.get("at")))
    except ValueError:
        return 0


def _all_text(line: Line) -> str:
    texts = (text for names, leaf in leaves(line) for text in (*names, str(leaf)))
    return "\n".join(texts).lower()


def _as_written(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode("ascii")
