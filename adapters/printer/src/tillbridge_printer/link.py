"""What every way to a printer can do."""

from collections.abc import Callable
from typing import Protocol

from tillbridge_printer.paper import Paper
from tillbridge_printer.states import PrinterState


class Link(Protocol):
    """The way to one printer."""

    def look(self) -> PrinterState:
        """Return how the printer is, printing nothing. Raises PosOffline where nobody answers."""
        ...

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Print, and return once the printer has confirmed it.

        `begin` is called right before the first byte that could put anything on paper. Raises
        PosOffline where surely nothing of it was printed, TicketOutcomeUnknown where something
        may have been.
        """
        ...

    def close(self) -> None:
        """Let go of the printer."""
        ...
