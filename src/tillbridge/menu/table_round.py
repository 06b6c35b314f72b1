"""The floor plan's way: read, compare, guard, push whole, keep the codes. Specification: Table."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from tillbridge.adapter import TablesReading
from tillbridge.core.errors import Conflict, LedgerError, Refused, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.ledger import storefront as storefronts
from tillbridge.ledger.models import AcceptedTable
from tillbridge.ledger.storefront import Kinship, Storefront, kinship
from tillbridge.menu import table_books
from tillbridge.menu.describe import listed
from tillbridge.menu.exports import ExportReader, read_now
from tillbridge.menu.failures import after_failure, all_well
from tillbridge.menu.floor_plan import (
    FloorPlan,
    after_printing,
    dead_codes,
    known_codes,
    plan_floor,
)
from tillbridge.menu.shared import Shared
from tillbridge.menu.table_books import FloorBooks, FloorHold
from tillbridge.model.table import Table
from tillbridge.service.types import TableQr

log = get_logger()

SUBJECT = "tables"


class TableRounds:
    """The tables lane of one store."""

    def __init__(self, shared: Shared, *, max_removed_percent: float) -> None:
        self._shared = shared
        self._store = shared.store
        self._max_removed_percent = max_removed_percent
        self._lane = shared.tables_lane
        self._reader = ExportReader(
            shared.store, SUBJECT, lane=self._lane, desk=shared.desk, clock=shared.clock
        )
        self._one_at_a_time = asyncio.Lock()
        self._anyway = False  # push although nothing differs
        self._in_vain = ""  # the digest of a plan that the service refuses

    # -- what wakes it

    def changed(self) -> None:
        """The floor plan's export has changed."""
        self._lane.poke()

    def try_again(self) -> None:
        """The service is back: what waited goes out."""
        self._in_vain = ""
        self._lane.poke()

    def refresh(self) -> None:
        """Push the plan as it is (daily): mends what others changed, and brings new codes."""
        self._anyway = True
        self.try_again()

    # -- what others ask

    @property
    def are_told(self) -> bool:
        """Whether the POS tells its floor plan."""
        return self._shared.pos.reads_tables

    async def books(self) -> FloorBooks:
        """Return what is remembered: the accepted tables, the hold, the printed codes."""
        return await self._shared.ledger.read(self._read_books)

    async def plan_only(self) -> FloorPlan:
        """Return what a round would push; pushes nothing. Raises BridgeError."""
        reading = await read_now(self._shared.pos.read_tables)
        return self._plan(reading, await self.books())

    async def push_again(self) -> FloorPlan | None:
        """Push the plan now, changed or not; None where the export cannot be read.

        A plan that must wait still waits. Raises ServiceError, LedgerError.
        """
        async with self._one_at_a_time:
            self._anyway, self._in_vain = True, ""
            return await self._told_round()

    async def approve(self) -> FloorHold | None:
        """Release the plan that waits (None: none does); it is pushed if it is still the same."""
        at = self._shared.clock.now_ms()

        def release(connection: Connection) -> FloorHold | None:
            hold = self._read_books(connection).hold
            if hold is not None:
                hold = replace(hold, approved=True)
                table_books.put_hold(connection, self._store, hold, at=at)
            return hold

        hold = await self._shared.ledger.write(release)
        if hold is not None:
            log.info("tables.approved", store=self._store, digest=hold.digest)
            self.try_again()
        return hold

    async def printed(self, sheet: Mapping[str, str]) -> FloorBooks:
        """Take note that a sheet with these codes (digests by external id) has been made."""
        at = self._shared.clock.now_ms()

        def note(connection: Connection) -> FloorBooks:
            books = self._read_books(connection)
            printed = after_printing(books.printed, sheet, books.accepted)
            dead = dead_codes(printed, books.accepted)
            table_books.put_printed(connection, self._store, printed, dead, at=at)
            return replace(books, printed=printed, dead=dead)

        books = await self._shared.ledger.write(note)
        log.info("tables.printed", store=self._store, codes=len(sheet))
        self._tell_dead(books.dead)
        return books

    # -- running

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        await self._lane.run(SUBJECT, self._shared.supervisor, self.round)

    async def round(self) -> None:
        """Make one round."""
        if not self.are_told:
            return
        async with self._one_at_a_time:
            try:
                await self._told_round()
            except (ServiceError, LedgerError):
                return  # told; the lane knows when to try again

    async def _told_round(self) -> FloorPlan | None:
        """Make a round; a failure is told to a person before it is raised."""
        try:
            return await self._round()
        except (ServiceError, LedgerError) as failure:
            after_failure(
                failure, self._store, lane=self._lane, desk=self._shared.desk, subject=SUBJECT
            )
            raise

    async def _round(self) -> FloorPlan | None:
        reading = await self._reader.read(self._shared.pos.read_tables)
        if reading is None:
            return None
        storefront = await self._settled()
        books = await self.books()
        self._tell_dead(books.dead)
        plan = self._plan(reading, books)
        self._reader.tell_bad_rows(plan.bad_rows)
        if storefront is None:
            return plan
        if plan.waits:
            await self._hold(plan, books.hold)
            return plan
        if not plan.reasons:
            self._shared.desk.close("tables.held", self._store)
            if books.hold is not None:
                await self._dissolve()
        if plan.changes or (self._anyway and (plan.wanted or books.accepted)):
            await self._push(storefront, plan, books)
        else:
            all_well(self._store, lane=self._lane, desk=self._shared.desk, subject=SUBJECT)
        self._anyway = False
        return plan

    async def _settled(self) -> Storefront | None:
        """Return the storefront that the store is connected to; None where it is to none.

        A plan that another storefront accepted, or an integration before this one, is pushed again;
        the new storefront is remembered once it has taken it.
        """

        def read(connection: Connection) -> tuple[Storefront | None, Storefront | None]:
            return (
                storefronts.remembered_storefront(connection, self._store, storefronts.TABLES),
                storefronts.current_storefront(connection, self._store, self._shared.base_url),
            )

        known, now = await self._shared.ledger.read(read)
        if now is None:
            return None
        relation = kinship(known, now)
        at = self._shared.clock.now_ms()

        def settle(connection: Connection) -> None:
            if relation is Kinship.SAME:
                storefronts.remember_storefront(
                    connection, self._store, storefronts.TABLES, now, at=at
                )
            elif relation is Kinship.OTHER:
                table_books.forget_accepted(connection, self._store)

        if relation is Kinship.OTHER or (relation is Kinship.SAME and known != now):
            await self._shared.ledger.write(settle)
        self._anyway |= relation is not Kinship.SAME
        return now

    def _plan(self, reading: TablesReading, books: FloorBooks) -> FloorPlan:
        hold = books.hold
        return plan_floor(
            reading,
            [each.table for each in books.accepted],
            max_removed_percent=self._max_removed_percent,
            approved_digest=hold.digest if hold is not None and hold.approved else "",
        )

    def _read_books(self, connection: Connection) -> FloorBooks:
        return table_books.read_books(connection, self._store)

    # -- a plan that waits

    async def _hold(self, plan: FloorPlan, hold: FloorHold | None) -> None:
        self._anyway = False
        if hold is None or hold.digest != plan.digest:
            at = self._shared.clock.now_ms()
            since = at if hold is None else hold.since
            waiting = FloorHold(plan.digest, since, plan.reasons)
            await self._shared.ledger.write(
                lambda connection: table_books.put_hold(connection, self._store, waiting, at=at)
            )
            log.warning("tables.held", store=self._store, reasons=list(plan.reasons))
        self._shared.desk.open("tables.held", self._store, detail="; ".join(plan.reasons))

    async def _dissolve(self) -> None:
        at = self._shared.clock.now_ms()
        await self._shared.ledger.write(
            lambda connection: table_books.put_hold(connection, self._store, None, at=at)
        )
        log.info("tables.hold_dissolved", store=self._store)

    # -- pushing

    async def _push(self, storefront: Storefront, plan: FloorPlan, books: FloorBooks) -> None:
        if plan.digest == self._in_vain:
            return  # refused before, and nothing has changed
        try:
            answers = await self._shared.service.push_tables(
                storefront.store_id,
                plan.wanted,
                cleared={each.table.external_id for each in books.accepted if each.table.zone},
            )
        except (Refused, Conflict):
            self._in_vain = plan.digest
            raise
        self._in_vain = ""
        now = accepted_after(plan.wanted, answers, books.accepted)
        printed = known_codes(books.printed, books.accepted, now)
        dead = dead_codes(printed, now)
        at = self._shared.clock.now_ms()

        def remember(connection: Connection) -> None:
            table_books.put_accepted(connection, self._store, now, at=at)
            storefronts.remember_storefront(
                connection, self._store, storefronts.TABLES, storefront, at=at
            )
            table_books.put_printed(connection, self._store, printed, dead, at=at)

        await self._shared.ledger.write(remember)
        log.info(
            "tables.pushed",
            store=self._store,
            tables=len(now),
            added=len(plan.changes.added),
            changed=len(plan.changes.changed),
            removed=len(plan.changes.removed),
        )
        all_well(self._store, lane=self._lane, desk=self._shared.desk, subject=SUBJECT)
        self._shared.desk.close("tables.held", self._store)
        self._tell_dead(dead)

    def _tell_dead(self, dead: Sequence[str]) -> None:
        if dead:
            self._shared.desk.open("tables.codes_changed", self._store, tables=listed(dead))
        else:
            self._shared.desk.close("tables.codes_changed", self._store)


def accepted_after(
    wanted: Sequence[Table], answers: Sequence[TableQr], before: Sequence[AcceptedTable]
) -> tuple[AcceptedTable, ...]:
    """Return the tables as the service has them now; one it answers nothing of keeps its code."""
    told = {each.external_id: each for each in answers}
    known = {each.table.external_id: each for each in before}
    accepted = []
    for table in wanted:
        answer, was = told.get(table.external_id), known.get(table.external_id)
        if answer is not None:
            codes = AcceptedTable.of(table, answer.table_id, answer.qr_token, answer.qr_url)
        elif was is not None:
            codes = AcceptedTable.of(table, was.table_id, was.qr_token, was.qr_url)
        else:
            codes = AcceptedTable.of(table)
        accepted.append(codes)
    return tuple(accepted)
