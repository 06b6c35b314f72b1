"""Reading the menu's export: as its difference where that can be, whole where it must be."""

import asyncio
import time

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.menu.assess import Assessment, Assessor, Rules
from tillbridge.menu.collector import collector_at_rest, pass_over
from tillbridge.menu.compare import changes_from
from tillbridge.menu.exports import ExportReader, milliseconds_since
from tillbridge.menu.known import KnownFingerprints
from tillbridge.menu.shared import Shared
from tillbridge.menu.wishes import Wish
from tillbridge.model.catalogue import BadRow, Catalogue, CatalogueChanges
from tillbridge.model.export_facts import ExportWarning

log = get_logger()

SUBJECT = "menu"


class MenuReading:
    """Reads and assesses the menu of one store."""

    def __init__(self, shared: Shared, rules: Rules) -> None:
        self._shared = shared
        self._rules = rules
        self._store = shared.store
        self._ledger = shared.ledger
        self._reader = ExportReader(
            shared.store, SUBJECT, lane=shared.menu_lane, desk=shared.desk, clock=shared.clock
        )
        self._counts: tuple[int, int, int] | None = None  # as they were last logged
        self._known: KnownFingerprints | None = None

    def forget(self) -> None:
        """What the service has, has changed."""
        self._known = None

    def tell_bad_rows(self, bad_rows: tuple[BadRow, ...]) -> None:
        """Open or close the problem of rows that cannot be read."""
        self._reader.tell_bad_rows(bad_rows)

    def tell_warnings(self, warnings: tuple[ExportWarning, ...]) -> None:
        """Open or close the problem of what is odd in the export."""
        self._reader.tell_warnings(warnings)

    async def assess(self, wish: Wish) -> Assessment | None:
        """Read what the round needs and assess it; None where the export cannot be read now."""
        known = await self.known()
        if known and not (wish.whole or wish.full):
            assessment = await self._assess_changes(known)
            if assessment is None or not assessment.needs_whole:
                return assessment
        with collector_at_rest():
            return await self._assess_whole(full=wish.full)

    def assessor(self, *, full: bool = False) -> Assessor:
        """Return the assessor of what is known now: to be made after the export was read.

        Reading takes its time, and what is sold out meanwhile must not come back with it.
        """
        shared = self._shared
        shared.in_flight.plan_begins()
        return Assessor(self._store, self._rules, shared.clock.now_ms(), shared.words, full=full)

    async def _assess_whole(self, *, full: bool) -> Assessment | None:
        started = time.perf_counter()
        export = await self._reader.read(self._shared.pos.read_catalogue)
        if export is None:
            return None
        self._tell_read(len(export.items), len(export.items), len(export.bad_rows), started)
        assessment = await self._ledger.read(self.assessor(full=full).whole(export))
        pass_over(len(export.items))
        return assessment

    async def _assess_changes(self, known: KnownFingerprints) -> Assessment | None:
        started = time.perf_counter()
        reading = await self._reader.read(lambda: self._read_changes(known))
        if reading is None:
            return None
        fresh = reading.fresh
        self._tell_read(reading.items_read, len(fresh.items), len(fresh.bad_rows), started)
        return await self._ledger.read(self.assessor().changes(reading))

    async def _read_changes(self, known: KnownFingerprints) -> CatalogueChanges:
        if self._shared.pos.reads_changes:
            return await self._shared.pos.read_changes(known)
        export: Catalogue = await self._shared.pos.read_catalogue()
        return await asyncio.to_thread(changes_from, export, known)

    async def known(self) -> KnownFingerprints:
        """Return the fingerprints of what the service has; they are kept until `forget`."""
        if self._known is None:
            self._known = KnownFingerprints(
                await self._ledger.read(
                    lambda connection: menu.known_fingerprints(connection, self._store)
                )
            )
        return self._known

    def _tell_read(self, items: int, fresh: int, bad_rows: int, started: float) -> None:
        counts = (items, fresh, bad_rows)
        # A till that is asked every few seconds mostly says the same.
        tell = log.debug if counts == self._counts else log.info
        self._counts = counts
        tell(
            "export.read",
            store=self._store,
            items=items,
            fresh=fresh,
            bad_rows=bad_rows,
            ms=milliseconds_since(started),
        )
