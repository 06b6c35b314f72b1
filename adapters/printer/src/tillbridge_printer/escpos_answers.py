"""What an ESC/POS printer sends back: three kinds of status in one stream, told apart by bits."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tillbridge.adapter.texts import _
from tillbridge_printer.states import PrinterState


@dataclass(frozen=True, slots=True)
class RealTime:
    """One byte, the answer to one DLE EOT; which one was asked tells what its bits mean."""

    bits: int


@dataclass(frozen=True, slots=True)
class StatusBack:
    """Four bytes that the printer sends by itself when something changes (GS a)."""

    state: PrinterState


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to GS r: all before it has been worked off."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """The answer to GS ( H: all before it has been printed."""

    number: str


Answer = RealTime | StatusBack | Done | ProcessId


@dataclass(slots=True)
class Answers:
    """Takes bytes as they come, in whatever pieces, and yields whole answers."""

    _held: bytearray = field(default_factory=bytearray)

    def fed(self, data: bytes) -> Iterator[Answer]:
        """Yield the answers that are complete now."""
        self._held += data
        while self._held:
            first = self._held[0]
            if first & 0x93 == 0x10:  # the first of four
                if len(self._held) < 4:
                    return
                packet, self._held = bytes(self._held[:4]), self._held[4:]
                yield StatusBack(state_of_status_back(packet))
            elif first == 0x37:  # a block up to a NUL
                end = self._held.find(0)
                if end < 0:
                    return
                block, self._held = bytes(self._held[:end]), self._held[end + 1 :]
                if block[1:2] == b"\x22":
                    yield ProcessId(block[2:].decode("ascii", "replace"))
            else:
                del self._held[0]
                if first & 0x93 == 0x12:
                    yield RealTime(first)
                elif first & 0x90 == 0:
                    yield Done()


def state_of_status_back(packet: bytes) -> PrinterState:
    """Return what the four bytes of GS a say."""
    printer, error, paper, _reserved = packet
    return PrinterState(
        offline=bool(printer & 0x08),
        cover_open=bool(printer & 0x20),
        error=_error(error),
        paper_low=bool(paper & 0x03),
        paper_out=bool(paper & 0x0C),
    )


def state_of_answers(printer: int, cause: int, error: int, paper: int) -> PrinterState:
    """Return what the answers to DLE EOT 1, 2, 3 and 4 say together."""
    return PrinterState(
        offline=bool(printer & 0x08),
        cover_open=bool(cause & 0x04),
        error=_error(error),
        paper_low=bool(paper & 0x0C),
        paper_out=bool(paper & 0x60 or cause & 0x20),
    )


def _error(bits: int) -> str:
    if bits & 0x08:
        return _("an error of its cutter")
    if bits & 0x20:
        return _("an error that needs a repair")
    if bits & 0x40:
        return _("that its head is too hot")
    return _("a mechanical error") if bits & 0x04 else ""
