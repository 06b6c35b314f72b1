"""Read the menu: as its difference to what the service has where that can be, else whole.

A menu of 200,000 items is a million objects without a single cycle. Walking through them, Python's
garbage collector would hold the interpreter, and with it the event loop, for a third of a second,
again and again while the menu grows. So it pauses while a whole menu is built and compared, and
passes over a large one from then on: reference counts free it all the same.
"""

import asyncio
import gc
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.menu.compare import changes_from
from tillbridge.menu.lane import MenuContext
from tillbridge.model.catalogue import Catalogue, CatalogueChanges

log = get_logger()

LARGE = 5_000  # items; walking through fewer takes no time that anybody notices

_pauses = 0


class MenuExport:
    """Reads the menu of one store, as its difference to what the service has or whole."""

    def __init__(self, ctx: MenuContext) -> None:
        self._ctx = ctx
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

    async def read(self, *, whole: bool) -> Catalogue | CatalogueChanges:
        """Return the menu, or what differs in it. Raises PosFailure where it cannot be read now."""
        started = time.perf_counter()
        reading = await (self._ctx.pos.read_catalogue() if whole else self._read_changes())
        if isinstance(reading, Catalogue):
            items, fresh = len(reading.items), reading
        else:
            items, fresh = reading.items_read, reading.fresh
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
        return reading

    async def _read_changes(self) -> CatalogueChanges:
        pos, known = self._ctx.pos, await self.known()
        if pos.reads_changes:
            return await pos.read_changes(known)
        return await asyncio.to_thread(changes_from, await pos.read_catalogue(), known)


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


def milliseconds_since(start: float) -> int:
    """Return how long ago `start` (of `time.perf_counter`) was."""
    return round((time.perf_counter() - start) * 1000)


@contextmanager
def gc_paused(*, when: bool = True) -> Iterator[None]:
    """Pause the collector."""
    global _pauses  # noqa: PLW0603 -- there is one collector in a process
    if not when:
        yield
        return
    _pauses += 1
    gc.disable()
    try:
        yield
    finally:
        _pauses -= 1
        if not _pauses:
            gc.enable()


def pass_over(items: int) -> None:
    """Let the collector pass over what is there now, if that is a large menu.

    It holds until `unfreeze`: whole menus are read once a day.
    """
    if items >= LARGE:
        gc.freeze()


def unfreeze() -> None:
    """Collect what a run that is over has left; another one begins in this process."""
    gc.unfreeze()
    gc.collect()
