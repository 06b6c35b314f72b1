"""What commands and the page ask about the bridge's own health: an examination, and its progress.

The checks are imported when somebody asks for them, not before.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tillbridge.errors import BridgeError
from tillbridge.i18n import _

if TYPE_CHECKING:
    from tillbridge.diagnostics.checkup import Checkup
    from tillbridge.diagnostics.subject import Subject

Answer = dict[str, Any]

_KEPT = 5


class DiagnosticOperations:
    """The operations; `subject` is None where no daemon runs."""

    def __init__(self, subject: "Callable[[], Subject] | None" = None) -> None:
        self._subject = subject
        self._checkups: dict[str, Checkup] = {}  # by run, the oldest first
        self._work: asyncio.Task[Answer] | None = None

    async def begin(self) -> Answer:
        """Begin an examination, or join the one under way; return its `run`."""
        if self._subject is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Run: tillbridge doctor"))
        if self._work is not None and not self._work.done():
            return {"run": next(reversed(self._checkups))}
        # Megabytes that a bridge nobody examines need not carry.
        from tillbridge.diagnostics.examination import (  # noqa: PLC0415 -- see above
            examination,
        )

        run = secrets.token_hex(8)
        checkup = self._checkups[run] = examination(self._subject())
        while len(self._checkups) > _KEPT:
            del self._checkups[next(iter(self._checkups))]
        self._work = asyncio.create_task(checkup.run(), name="doctor")
        return {"run": run}

    async def result(self, run: str) -> Answer:
        """Return how far an examination is: the report so far, `done` and `running`."""
        checkup = self._checkups.get(run)
        if checkup is None:
            raise BridgeError(_("Nothing is known of this examination."), fix=_("Begin it again."))
        return checkup.so_far()
