"""The floor plan's way: read, compare, push whole, keep the QR addresses. Specification: Table.

A push deactivates the tables that are missing from it, so a floor plan that lost more than half of
its tables (and more than five) is not pushed: the export is rather broken.
"""

from collections.abc import Sequence

from tillbridge.catalogue.exports import ExportReader
from tillbridge.catalogue.failures import after_failure, all_well
from tillbridge.catalogue.shared import Shared
from tillbridge.errors import LedgerError, ServiceError
from tillbridge.i18n import _
from tillbridge.ledger.tables import AcceptedTable, get_tables, put_tables
from tillbridge.log import get_logger
from tillbridge.model.table import Table

log = get_logger()

SUBJECT = "tables"
FEW = 5


class TableRounds:
    """The tables lane of one store."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._lane = shared.tables_lane
        self._reader = ExportReader(
            shared.store, SUBJECT, lane=self._lane, desk=shared.desk, clock=shared.clock
        )

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        while True:
            await self._lane.wait()
            await self.round()

    async def round(self) -> None:
        """Make one round."""
        if not self._shared.pos.reads_tables:
            return
        try:
            await self._round()
        except (ServiceError, LedgerError) as failure:
            after_failure(
                failure,
                self._shared.store,
                lane=self._lane,
                desk=self._shared.desk,
                subject=SUBJECT,
            )

    async def _round(self) -> None:
        reading = await self._reader.read(self._shared.pos.read_tables)
        if reading is None:
            return
        self._reader.tell_bad_rows(reading.bad_rows)
        store_id = await self._shared.store_id()
        if store_id is None:
            return
        accepted = await self._shared.ledger.read(
            lambda connection: get_tables(connection, self._shared.store)
        )
        kept = frozenset(row.external_id for row in reading.bad_rows)
        wanted = wanted_tables(reading.tables, accepted, kept)
        if wanted == tuple(each.table for each in accepted):
            return
        lost = {each.table.external_id for each in accepted} - {each.external_id for each in wanted}
        if len(lost) > FEW and len(lost) * 2 > len(accepted):
            self._tell_lost(len(lost), len(accepted))
            return
        answers = {
            each.external_id: each
            for each in await self._shared.service.push_tables(store_id, wanted)
        }
        now = tuple(
            AcceptedTable(table, answer.table_id, answer.qr_token, answer.qr_url)
            if (answer := answers.get(table.external_id))
            else AcceptedTable(table)
            for table in wanted
        )
        await self._shared.ledger.write(
            lambda connection: put_tables(connection, self._shared.store, now)
        )
        log.info("tables.pushed", store=self._shared.store, tables=len(now), removed=len(lost))
        all_well(self._shared.store, lane=self._lane, desk=self._shared.desk, subject=SUBJECT)

    def _tell_lost(self, lost: int, known: int) -> None:
        self._shared.desk.open(
            "export.unreadable",
            self._shared.store,
            SUBJECT,
            detail=_("{lost} of {known} tables are missing from it").format(lost=lost, known=known),
            remedy=_("Export all tables again; until then the storefront keeps those it has."),
        )


def wanted_tables(
    read: Sequence[Table], accepted: Sequence[AcceptedTable], kept: frozenset[str]
) -> tuple[Table, ...]:
    """Return the tables as they shall be, by external id; `kept` have a bad row and stay.

    A bad row without an id ("" in `kept`) lets no table go.
    """
    tables = {each.external_id: each for each in read}
    for each in accepted:
        external_id = each.table.external_id
        if external_id not in tables and (external_id in kept or "" in kept):
            tables[external_id] = each.table
    return tuple(tables[external_id] for external_id in sorted(tables))
