"""An ESC/POS printer: asked how it is, sent a ticket, and listened to until it is done."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge.adapter.texts import _
from tillbridge_printer import escpos
from tillbridge_printer.escpos_answers import (
    Answer,
    Answers,
    Done,
    ProcessId,
    RealTime,
    StatusBack,
    state_of_answers,
)
from tillbridge_printer.paper import Paper
from tillbridge_printer.states import PrinterState
from tillbridge_printer.wires import Wire

_ANSWER_S = 2.0


class EscPosLink:
    """The way to one printer; each ticket is a connection of its own."""

    def __init__(
        self,
        opened: Callable[[], Wire],
        language: escpos.Language,
        *,
        timeout_s: float,
        answers: bool,
        by_process_id: bool,
    ) -> None:
        self._opened = opened
        self._language = language
        self._timeout_s = timeout_s
        self._answers = answers
        self._by_process_id = by_process_id
        self._numbers = itertools.count(1)

    def look(self) -> PrinterState:
        """Ask the printer how it is; one that cannot say is well where it can be reached."""
        with self._wire() as wire:
            return self._state(wire, time.monotonic() + _ANSWER_S)

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Print a ticket. Where the printer cannot answer, sending it is all that can be done."""
        data = self._language.ticket(paper)
        until = time.monotonic() + self._timeout_s
        with self._wire() as wire:
            state = self._state(wire, min(until, time.monotonic() + _ANSWER_S))
            if not state.prints:
                raise PosOffline(state.text, fix=state.fix)
            begin()
            try:
                if not self._answers:
                    wire.send(data, until)
                    return
                number = f"{next(self._numbers) % 10_000:04d}"
                ask = (
                    escpos.ask_process_id(int(number))
                    if self._by_process_id
                    else escpos.ASK_WHEN_DONE
                )
                wire.send(escpos.STATUS_BACK_ON + data + ask, until)
                self._wait(wire, number, until)
                wire.send(escpos.STATUS_BACK_OFF, until)
            except (OSError, EOFError) as failure:
                raise TicketOutcomeUnknown(
                    _("The connection to the printer broke off in the middle of a ticket.")
                ) from failure

    def close(self) -> None:
        """Nothing is held between tickets."""

    def _wait(self, wire: Wire, number: str, until: float) -> None:
        """Return once the printer says that it is done; a roll that ends in between is told."""
        for answer in _answers(wire, until):
            match answer:
                case Done() if not self._by_process_id:
                    return
                case ProcessId(number=answered) if answered == number:
                    return
                case StatusBack(state) if not state.prints:
                    raise TicketOutcomeUnknown(
                        _("In the middle of a ticket: {text}").format(text=state.text)
                    )
                case _:
                    pass
        raise TicketOutcomeUnknown(_("The printer did not confirm the ticket in time."))

    def _state(self, wire: Wire, until: float) -> PrinterState:
        if not self._answers:
            return PrinterState()
        answered: list[int] = []
        try:
            for kind in (1, 2, 3, 4):
                wire.send(escpos.ask_state(kind), until)
                answered.append(_real_time(wire, until))
        except (OSError, EOFError) as failure:
            raise PosOffline(
                _("The printer hangs up when it is asked how it is."),
                fix=_("Check that nothing else is printing."),
            ) from failure
        return state_of_answers(*answered)

    @contextmanager
    def _wire(self) -> Iterator[Wire]:
        wire = self._opened()
        try:
            yield wire
        finally:
            wire.close()


def _real_time(wire: Wire, until: float) -> int:
    for answer in _answers(wire, until):
        if isinstance(answer, RealTime):
            return answer.bits
    raise PosOffline(
        _("The printer does not say how it is."),
        fix=_("Switch the printer off and on; if it never answers, set status = false."),
    )


def _answers(wire: Wire, until: float) -> Iterator[Answer]:
    parser = Answers()
    while time.monotonic() < until:
        yield from parser.fed(wire.receive(until))
