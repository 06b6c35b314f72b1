"""Read exports, and report what cannot be read. The last good menu stays (invariant 4).

An export that is still being written, or locked by the till, mends itself and is read again soon;
only after a while is it a problem. The menu is read as its difference where that can be.
"""

import asyncio
import time
from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from tillbridge.adapter import BadRow, ExportUnreadable, PosFailure
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker
from tillbridge.ledger import menu
from tillbridge.menu.compare import changes_from
from tillbridge.menu.context import MenuContext
from tillbridge.model.catalogue import Catalogue, CatalogueChanges
from tillbridge.model.export_facts import ExportWarning
from tillbridge.pos.export_problems import bad_rows_problem, unreadable_problem

log = get_logger()

T = TypeVar("T")

PATIENCE_S = 5.0  # so long may an export be in the making before it is a problem
SOON_S = 0.5
# What is mended without the file changing (a permission, a share) is noticed after so long.
UNCHANGED_S = 15.0
LONGEST_BACKOFF_S = 15.0


class ExportReader:
    """Reads one kind of export (`subject`: menu, availability, tables) of one store."""

    def __init__(self, ctx: MenuContext, subject: str, worker: Worker) -> None:
        self._ctx = ctx
        self._subject = subject
        self._worker = worker
        self._passing_since: float | None = None
        self._failed = ""

    async def read(self, reading: Callable[[], Awaitable[T]]) -> T | None:
        """Return what was read; None where it cannot be now: then it is read again by itself."""
        try:
            found = await reading()
        except ExportUnreadable as failure:
            self._unreadable(failure)
            return None
        except PosFailure as failure:
            self._log_once(failure.message or type(failure).__name__)
            self._worker.wake_in(self._worker.back_off(LONGEST_BACKOFF_S))
            return None
        self._passing_since = None
        self._failed = ""
        self._ctx.close_problem("export.unreadable", self._subject)
        return found

    def report_bad_rows(self, bad_rows: Sequence[BadRow]) -> None:
        """Open or close the problem of rows that cannot be read."""
        if not bad_rows:
            self._ctx.close_problem("export.bad_rows", self._subject)
            return
        found = bad_rows_problem(self._subject, bad_rows)
        self._ctx.open_problem(found.code, found.subject, **found.detail)

    def report_warnings(self, warnings: Sequence[ExportWarning]) -> None:
        """Open or close the problem of what is odd in an export that can be read."""
        if not warnings:
            self._ctx.close_problem("export.warnings", self._subject)
            return
        first = warnings[0]
        self._ctx.open_problem(
            "export.warnings",
            self._subject,
            count=len(warnings),
            detail=f"{first.place}: {first.text}",
            remedy=first.fix,
        )

    def _unreadable(self, failure: ExportUnreadable) -> None:
        if failure.passing:
            now = self._ctx.clock.monotonic()
            if self._passing_since is None:
                self._passing_since = now
            patient = now - self._passing_since < PATIENCE_S
            self._worker.wake_in(SOON_S if patient else 10 * SOON_S)
            if patient:
                return
        else:
            self._worker.wake_in(UNCHANGED_S)
        self._log_once(failure.text)
        found = unreadable_problem(self._subject, failure)
        self._ctx.open_problem(found.code, found.subject, **found.detail)

    def _log_once(self, text: str) -> None:
        if text != self._failed:
            self._failed = text
            log.warning(
                "export.unreadable", store=self._ctx.store, subject=self._subject, detail=text
            )


class MenuExport:
    """Reads the menu of one store, as its difference to what the service has or whole."""

    def __init__(self, ctx: MenuContext, reader: ExportReader) -> None:
        self._ctx = ctx
        self._reader = reader
        self._counts: tuple[int, int, int] | None = None  # as they were last logged
        self._known: KnownFingerprints | None = None

    def forget(self) -> None:
        """Take note that what the service has is not what it was."""
        self._known = None

    async def known(self) -> "KnownFingerprints":
        """Return the fingerprints of what the service has; they are cached until `forget`."""
        if self._known is None:
            self._known = KnownFingerprints(await self._ctx.read(menu.known_fingerprints))
        return self._known

    async def read(self, *, whole: bool) -> Catalogue | CatalogueChanges | None:
        """Return the menu, or what differs in it; None where it cannot be read now."""
        started = time.perf_counter()
        pos = self._ctx.pos
        if whole:
            export = await self._reader.read(pos.read_catalogue)
            if export is not None:
                self._log_read(len(export.items), export, started)
            return export
        known = await self.known()
        changes = await self._reader.read(lambda: self._read_changes(known))
        if changes is not None:
            self._log_read(changes.items_read, changes.fresh, started)
        return changes

    async def _read_changes(self, known: "KnownFingerprints") -> CatalogueChanges:
        if self._ctx.pos.reads_changes:
            return await self._ctx.pos.read_changes(known)
        export = await self._ctx.pos.read_catalogue()
        return await asyncio.to_thread(changes_from, export, known)

    def _log_read(self, items: int, fresh: Catalogue, started: float) -> None:
        counts = (items, len(fresh.items), len(fresh.bad_rows))
        # A till that is asked every few seconds mostly answers the same.
        write = log.debug if counts == self._counts else log.info
        self._counts = counts
        write(
            "export.read",
            store=self._ctx.store,
            items=items,
            fresh=len(fresh.items),
            bad_rows=len(fresh.bad_rows),
            ms=milliseconds_since(started),
        )


class KnownFingerprints(AbstractSet[int]):
    """A set of signed 64-bit numbers over a sorted array: 8 bytes a record of the menu."""

    def __init__(self, in_order: "array[int]") -> None:
        self._in_order = in_order

    @classmethod
    def _from_iterable(cls, numbers: Iterable[int]) -> frozenset[int]:  # type: ignore[override] # what set operations give
        return frozenset(numbers)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._in_order, number)
        return place < len(self._in_order) and self._in_order[place] == number

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_order)

    def __len__(self) -> int:
        return len(self._in_order)


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
