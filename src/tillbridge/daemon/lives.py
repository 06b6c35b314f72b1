"""Whether another life of the bridge follows, and what is taken back where that cannot be."""

import asyncio
from collections.abc import Callable

from tillbridge.core.errors import BridgeError
from tillbridge.core.log import get_logger
from tillbridge.web.doorkeeper import Doorkeeper

# Takes back what made the next life impossible; told why.
Undo = Callable[[BridgeError], None]

_PARTING_S = 0.5

log = get_logger()


class Lives:
    """Ends the life that is, and knows whether another one follows. Used in the event loop."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.again = False
        self.is_ready = False  # this life serves
        self._stopped = False
        self._undo: Undo | None = None
        self._parting: asyncio.TimerHandle | None = None
        # Why the life that was wanted could not be, for the page to tell.
        self.refused: BridgeError | None = None
        # Who has signed in on the page, for the next life.
        self.doorkeeper: Doorkeeper | None = None
        # The store that the next life is to connect.
        self.to_connect = ""

    def stop(self) -> None:
        """End for good."""
        self._stopped = True
        self.again = False
        self.end.set()

    def restart(self, undo: Undo, *, connect: str = "") -> None:
        """End, and begin anew with what the file says now; `undo` is for a life that cannot be.

        `connect` is the store that is connected then.
        """
        if self._stopped or self.again:
            return
        self.again = True
        self.refused = None
        self.to_connect = connect
        self._undo = undo
        # The answer to whoever asked for it, and what their browser fetches next, come first.
        self._parting = asyncio.get_running_loop().call_later(_PARTING_S, self.end.set)

    def begin(self) -> None:
        """Take note that another life begins."""
        if self._parting is not None:
            self._parting.cancel()
            self._parting = None
        self.is_ready = False
        if not self._stopped:
            self.end.clear()
            self.again = False

    def ready(self) -> None:
        """Take note that this life is possible: what led to it stays."""
        self.is_ready = True
        self._undo = None

    def undone(self, failure: BridgeError) -> bool:
        """Take back what made a life impossible; False where there is nothing to take back."""
        undo, self._undo = self._undo, None
        if undo is None:
            return False
        log.error("bridge.taken_back", error=failure.text)
        self.refused = failure
        self.to_connect = ""
        undo(failure)
        return True
