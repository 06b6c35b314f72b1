"""Tells the page that something looks different now, where the ledger has not changed."""

from collections.abc import Callable


class Bell:
    """Whoever listens is called at each ring. Used in the event loop."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def listen(self, callback: Callable[[], None]) -> None:
        """Call `callback` from now on."""
        self._listeners.append(callback)

    def ring(self) -> None:
        """Call everybody who listens."""
        for callback in self._listeners:
            callback()
