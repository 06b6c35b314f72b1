"""Whether another run of the bridge follows this one, and what is taken back if that fails."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tillbridge.core.errors import BridgeError
from tillbridge.core.log import get_logger

if TYPE_CHECKING:
    from tillbridge.web.authenticator import Authenticator

# Takes back what made the next run impossible; it is given why.
Undo = Callable[[BridgeError], None]

_GRACE_S = 0.5

log = get_logger()


class RestartController:
    """Ends the current run, and knows whether another one follows. Used in the event loop."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.again = False
        self.is_ready = False  # the current run serves
        self._stopped = False
        self._undo: Undo | None = None
        self._ending: asyncio.TimerHandle | None = None
        # Why the run that was asked for could not be, for the page.
        self.refused: BridgeError | None = None
        # Who has signed in on the page, for the next run.
        self.authenticator: Authenticator | None = None
        # The store that the next run is to connect.
        self.to_connect = ""

    def stop(self) -> None:
        """End for good."""
        self._stopped = True
        self.again = False
        self.end.set()

    def restart(self, undo: Undo, *, connect: str = "") -> None:
        """End, and begin anew with what the file says now; `undo` is for a run that cannot be.

        `connect` is the store that is connected then.
        """
        if self._stopped or self.again:
            return
        self.again = True
        self.refused = None
        self.to_connect = connect
        self._undo = undo
        # The answer to whoever asked for it, and what their browser fetches next, come first.
        self._ending = asyncio.get_running_loop().call_later(_GRACE_S, self.end.set)

    def begin(self) -> None:
        """Note that another run begins."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self.is_ready = False
        if not self._stopped:
            self.end.clear()
            self.again = False

    def ready(self) -> None:
        """Note that this run is possible: what led to it stays."""
        self.is_ready = True
        self._undo = None

    def undo(self, failure: BridgeError) -> bool:
        """Undo what made a run impossible; False where there is nothing to undo."""
        undo, self._undo = self._undo, None
        if undo is None:
            return False
        log.error("bridge.configuration_reverted", error=failure.text)
        self.refused = failure
        self.to_connect = ""
        undo(failure)
        return True
