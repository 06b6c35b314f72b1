"""An ESC/POS printer: it obeys what it is sent, prints on sheets, and tells how it is.

Written from the printers' manuals and not from the adapter: what one of them gets wrong, the other
shows. A command it does not know is kept in `strange`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tillbridge_printer.emulated.sheet import Look, Sheet

_PAGES = {
    0: "cp437",
    2: "cp850",
    16: "cp1252",
    17: "cp866",
    18: "cp852",
    19: "cp858",
    45: "cp1250",
    46: "cp1251",
    47: "cp1253",
}


class Died(Exception):
    """The printer lost its power in the middle of its work."""


@dataclass(slots=True)
class Machine:
    """The printer. `lines_left` is how much paper there is; None: a whole roll."""

    dots: int = 576
    cover_open: bool = False
    paper_low: bool = False
    lines_left: int | None = None
    cutter_error: bool = False
    dies_after: int | None = None  # so many executed commands
    sheets: list[Sheet] = field(default_factory=list)
    strange: list[bytes] = field(default_factory=list)
    _sheet: Sheet | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _tail: bytes = b""
    _line: str = ""
    _look: Look = field(default_factory=Look)
    _page: int = 0
    _status_back: int = 0
    _reported: bytes = b""

    @property
    def paper_out(self) -> bool:
        """Whether the roll is at its end."""
        return self.lines_left is not None and self.lines_left <= 0

    @property
    def stopped(self) -> bool:
        """Whether it works off nothing at the moment."""
        return self.cover_open or self.paper_out or self.cutter_error

    @property
    def begun(self) -> Sheet | None:
        """The sheet that is not cut yet."""
        return self._sheet

    def feed(self, data: bytes) -> bytes:
        """Take bytes, work them off as far as possible, and return what is sent back."""
        answers = self._real_time(data)
        self._buffer += data
        return answers + self.go_on()

    def go_on(self) -> bytes:
        """Work off what waits: the paper is back, or the cover is closed."""
        answers = self._report()
        while self._buffer and not self.stopped:
            used, answer = self._command(bytes(self._buffer))
            if not used:
                break
            del self._buffer[:used]
            answers += answer + self._report()
            if self.dies_after is not None:
                self.dies_after -= 1
                if self.dies_after <= 0:
                    self.switch_off()
                    raise Died
        return answers + self._report()

    def switch_off(self) -> None:
        """Forget all that is not on paper."""
        self.dies_after = None
        self._buffer.clear()
        self._tail, self._line, self._look = b"", "", Look()
        self._status_back = 0
        if self._sheet is not None:
            self.sheets.append(self._sheet)
            self._sheet = None

    def hang_up(self) -> None:
        """The host has hung up: what is in the buffer is still worked off."""
        self._status_back = 0

    # -- how it is

    def _real_time(self, data: bytes) -> bytes:
        """Answer DLE EOT at once, wherever it stands, even while nothing is worked off."""
        seen = self._tail + data
        answers = b""
        at = seen.find(b"\x10\x04")
        while at >= 0 and at + 2 < len(seen):
            answers += bytes((self._state(seen[at + 2]),))
            at = seen.find(b"\x10\x04", at + 3)
        self._tail = seen[at:] if at >= 0 else seen[-1:] if seen.endswith(b"\x10") else b""
        return answers

    def _state(self, kind: int) -> int:
        bits = 0x12
        if kind == 1:
            bits |= 0x08 * self.stopped
        elif kind == 2:
            bits |= 0x04 * self.cover_open | 0x20 * self.paper_out | 0x40 * self.cutter_error
        elif kind == 3:
            bits |= 0x08 * self.cutter_error
        elif kind == 4:
            bits |= 0x0C * (self.paper_low or self.paper_out) | 0x60 * self.paper_out
        return bits

    def _report(self) -> bytes:
        """Send four bytes by itself when something has changed that was asked for."""
        if not self._status_back:
            return b""
        now = bytes(
            (
                0x10 | 0x08 * self.stopped | 0x20 * self.cover_open,
                0x08 * self.cutter_error,
                0x03 * (self.paper_low or self.paper_out) | 0x0C * self.paper_out,
                0x0F,
            )
        )
        if now == self._reported:
            return b""
        self._reported = now
        return now

    # -- what it is told to do

    def _command(self, data: bytes) -> tuple[int, bytes]:
        """Return how many bytes the command at the beginning takes (0: not all there), and more."""
        first = data[0]
        if first == 0x0A:
            self._new_line()
            return 1, b""
        if first == 0x10:
            return (3, b"") if len(data) >= 3 else (0, b"")
        if first >= 0x20:
            self._line += bytes((first,)).decode(_PAGES.get(self._page, "ascii"), "replace")
            return 1, b""
        for begin, length, do in self._commands():
            if data.startswith(begin):
                whole = length(data)
                if whole is None or len(data) < whole:
                    return 0, b""
                return whole, do(data[:whole]) or b""
            if begin.startswith(data):
                return 0, b""
        self.strange.append(data[:4])
        return 1, b""

    def _commands(
        self,
    ) -> tuple[tuple[bytes, Callable[[bytes], int | None], Callable[[bytes], bytes | None]], ...]:
        def size(count: int) -> Callable[[bytes], int | None]:
            return lambda _data: count

        return (
            (b"\x1b@", size(2), self._initialise),
            (b"\x1ba", size(3), lambda data: self._set(align=data[2] % 48)),
            (b"\x1bE", size(3), lambda data: self._set(bold=bool(data[2] & 1))),
            (b"\x1bt", size(3), self._code_page),
            (b"\x1bd", size(3), lambda data: self._feed(data[2])),
            (b"\x1c.", size(2), lambda _data: None),
            (b"\x1dB", size(3), lambda data: self._set(invert=bool(data[2] & 1))),
            (b"\x1d!", size(3), self._size),
            (b"\x1da", size(3), self._automatic),
            (b"\x1dr", size(3), lambda _data: bytes((0x03 * self.paper_low,))),
            (b"\x1dV", size(4), self._cut),
            (b"\x1dv0", _picture_length, self._picture),
            (b"\x1d(H", _block_length, lambda data: b"7\x22" + data[7:11] + b"\0"),
        )

    def _initialise(self, _data: bytes) -> None:
        self._line, self._look, self._page = "", Look(), 0

    def _set(self, **changes: Any) -> None:  # noqa: ANN401 -- each is a field of Look
        self._look = replace(self._look, **changes)

    def _size(self, data: bytes) -> None:
        self._set(wide=(data[2] >> 4) + 1, tall=(data[2] & 15) + 1)

    def _code_page(self, data: bytes) -> None:
        self._page = data[2]

    def _automatic(self, data: bytes) -> None:
        self._status_back, self._reported = data[2], b""

    def _paper(self) -> Sheet:
        if self._sheet is None:
            self._sheet = Sheet(self.dots)
        return self._sheet

    def _new_line(self) -> None:
        self._paper().print_text(self._line, self._look)
        self._line = ""
        self._used(1)

    def _feed(self, lines: int) -> None:
        self._paper().feed_dots(30 * lines)

    def _picture(self, data: bytes) -> None:
        width = int.from_bytes(data[4:6], "little")
        self._paper().print_picture(width, data[8:], self._look)
        self._used(1)

    def _cut(self, _data: bytes) -> None:
        sheet = self._paper()
        sheet.feed_dots(30)
        self.sheets.append(sheet)
        self._sheet = None

    def _used(self, lines: int) -> None:
        if self.lines_left is not None:
            self.lines_left -= lines


def _picture_length(data: bytes) -> int | None:
    if len(data) < 8:
        return None
    width = int.from_bytes(data[4:6], "little")
    return 8 + width * int.from_bytes(data[6:8], "little")


def _block_length(data: bytes) -> int | None:
    return 5 + int.from_bytes(data[3:5], "little") if len(data) >= 5 else None
