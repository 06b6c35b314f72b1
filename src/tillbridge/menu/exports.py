"""Reading exports, and telling a person what cannot be read.

An export that is still being written, or locked by the till, mends itself and is read again soon;
only after a minute is it a problem. The last good menu stays (invariant 4).
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tillbridge.adapter import BadRow, ExportUnreadable, PosFailure
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.menu.lane import Lane
from tillbridge.menu.ports import Desk
from tillbridge.model.export_facts import ExportWarning
from tillbridge.pos.export_problems import bad_rows_problem, unreadable_problem

log = get_logger()

T = TypeVar("T")

PATIENCE_S = 5.0  # so long may an export be in the making before a person is told
SOON_S = 0.5
UNCHANGED_S = (
    15.0  # what is mended without the file changing (a permission, a share) is noticed then
)


class ExportReader:
    """Reads one kind of export (`subject`: menu, availability, tables) of one store."""

    def __init__(self, store: str, subject: str, *, lane: Lane, desk: Desk, clock: Clock) -> None:
        self._store = store
        self._subject = subject
        self._lane = lane
        self._desk = desk
        self._clock = clock
        self._passing_since: float | None = None
        self._failed = ""

    async def read(self, reading: Callable[[], Awaitable[T]]) -> T | None:
        """Return what was read; None where it cannot be now, and the lane is told when to retry."""
        try:
            found = await reading()
        except ExportUnreadable as failure:
            self._unreadable(failure)
            return None
        except PosFailure as failure:
            self._log_once(failure.message or type(failure).__name__)
            self._lane.failed()
            return None
        self._passing_since = None
        self._failed = ""
        self._desk.close("export.unreadable", self._store, self._subject)
        return found

    def tell_bad_rows(self, bad_rows: Sequence[BadRow]) -> None:
        """Open or close the problem of rows that cannot be read."""
        if not bad_rows:
            self._desk.close("export.bad_rows", self._store, self._subject)
            return
        found = bad_rows_problem(self._subject, bad_rows)
        self._desk.open(found.code, self._store, found.subject, **found.detail)

    def tell_warnings(self, warnings: Sequence[ExportWarning]) -> None:
        """Open or close the problem of what is odd in an export that can be read."""
        if not warnings:
            self._desk.close("export.warnings", self._store, self._subject)
            return
        first = warnings[0]
        self._desk.open(
            "export.warnings",
            self._store,
            self._subject,
            count=len(warnings),
            detail=f"{first.place}: {first.text}",
            remedy=first.fix,
        )

    def _unreadable(self, failure: ExportUnreadable) -> None:
        now = self._clock.monotonic()
        if failure.passing:
            if self._passing_since is None:
                self._passing_since = now
            self._lane.poke_in(SOON_S if now - self._passing_since < PATIENCE_S else 10 * SOON_S)
            if now - self._passing_since < PATIENCE_S:
                return
        else:
            self._lane.poke_in(UNCHANGED_S)
        self._log_once(failure.text)
        found = unreadable_problem(self._subject, failure)
        self._desk.open(found.code, self._store, found.subject, **found.detail)

    def _log_once(self, text: str) -> None:
        if text != self._failed:
            self._failed = text
            log.warning("export.unreadable", store=self._store, subject=self._subject, detail=text)


async def read_now(reading: Callable[[], Awaitable[T]]) -> T:
    """Return what was read, for a person who waits for it. Raises BridgeError."""
    try:
        return await reading()
    except ExportUnreadable as failure:
        raise BridgeError(f"{failure.place} {failure.text}".strip(), fix=failure.fix) from failure
    except PosFailure as failure:
        raise BridgeError(
            failure.message or _("The till cannot be read now."),
            fix=_("Check that the till is on and connected."),
        ) from failure


def milliseconds_since(start: float) -> int:
    """Return how long ago `start` (of `time.perf_counter`) was."""
    return round((time.perf_counter() - start) * 1000)
