"""A plain file as a printer: tickets are added to its end. A spool folder, a pipe, a test."""

import os
from collections.abc import Callable
from pathlib import Path

from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge.adapter.texts import _
from tillbridge_printer.escpos import Language
from tillbridge_printer.paper import Paper
from tillbridge_printer.states import PrinterState


class FileLink:
    """Writes ESC/POS to the end of a file, and is done when it is on disk."""

    def __init__(self, path: Path, language: Language) -> None:
        self._path = path
        self._language = language

    def look(self) -> PrinterState:
        """Return that it prints, where its folder is there. Raises PosOffline."""
        if not self._path.parent.is_dir():
            raise PosOffline(
                _("The folder {folder} is not there.").format(folder=str(self._path.parent))
            )
        return PrinterState()

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Add the ticket to the file."""
        self.look()
        data = self._language.ticket(paper)
        try:
            # A pipe that nobody reads says so at once; Windows must not touch the line ends.
            how = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | how, 0o640)
        except OSError as failure:
            raise PosOffline(
                _("{path} cannot be opened: {why}.").format(
                    path=str(self._path), why=failure.strerror
                )
            ) from failure
        if hasattr(os, "set_blocking"):
            os.set_blocking(handle, True)
        try:
            begin()
            with os.fdopen(handle, "wb", closefd=False) as file:
                file.write(data)
            if self._path.is_file():
                os.fsync(handle)
        except OSError as failure:
            raise TicketOutcomeUnknown(
                _("{path} could not be written to its end: {why}.").format(
                    path=str(self._path), why=failure.strerror
                )
            ) from failure
        finally:
            os.close(handle)

    def close(self) -> None:
        """Nothing is held between tickets."""
