"""The floor plan: read, compare, guard, hold, push whole, acknowledge. Specification: Table.

A push is the whole plan, and the service deactivates the tables that are missing from it
(specification: Tables). So what the POS has is compared with what the service has accepted, and a
plan that takes many tables away waits for a person.

A printed QR code is dead once its table has another one. What was printed is remembered as one
short digest a table: of the code that was on the last sheet or, where none was printed here yet, of
the first code the service gave, which somebody may have printed elsewhere.

What the ledger has of it beside the accepted tables are small facts: `tables_hold`,
`tables_printed` (code digests by external id), `tables_dead` (names), `tables_synced_at` (ms).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from tillbridge.adapter import TablesReading
from tillbridge.core.errors import Conflict, Refused
from tillbridge.core.i18n import joined
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import AcceptedTable
from tillbridge.ledger.pushes import (
    TABLES,
    Kinship,
    Storefront,
    current_storefront,
    get_tables,
    kinship,
    put_tables,
    remember_storefront,
)
from tillbridge.menu.describe import listed
from tillbridge.menu.lane import MenuContext, SyncLane, SyncRequest, read_now
from tillbridge.menu.table_plan import TablePlan, plan_tables
from tillbridge.model.restaurant import Table
from tillbridge.pos.runner import bad_rows_detail
from tillbridge.service.types import TableQr

log = get_logger()

HOLD, PRINTED, DEAD, SYNCED = "tables_hold", "tables_printed", "tables_dead", "tables_synced_at"
ANYWAY = SyncRequest(full=True)  # push although nothing differs


@dataclass(frozen=True, slots=True)
class TableHold:
    """A floor plan that waits for a person since that instant (ms), or is released."""

    digest: str
    since: int
    reasons: tuple[str, ...]
    approved: bool = False


@dataclass(frozen=True, slots=True)
class TableState:
    """All that is remembered of one store's floor plan."""

    accepted: tuple[AcceptedTable, ...] = ()
    hold: TableHold | None = None
    printed: Mapping[str, str] = field(default_factory=dict)
    dead: tuple[str, ...] = ()


class TableSync(SyncLane[TablePlan]):
    """The tables lane of one store."""

    push_failed = "tables.push_failed"

    def __init__(self, ctx: MenuContext) -> None:
        super().__init__(ctx, "tables")

    async def round(self, request: SyncRequest) -> TablePlan | None:
        """Bring the service's tables in line with the POS; None if that cannot be read now."""
        ctx = self.ctx
        if not self.pos_has_tables:
            return None
        reading = await self.read_export(ctx.pos.read_tables)
        if reading is None:
            self._requested |= request
            return None

        # settle: whose tables the ledger knows
        storefront, is_new = await self._settle_storefront()
        state = await self.state()
        self._report_dead(state.dead)

        # compare, guard, plan
        plan = self._plan(reading, state)
        ctx.report("export.bad_rows", bad_rows_detail(plan.bad_rows), self.subject)
        if storefront is None:
            self._requested |= request
            return plan

        # hold: what a person has to look at waits
        await self._record_hold(plan, state.hold)
        if plan.waits:
            return plan

        # push, acknowledge: what the service refused is not repeated
        anyway = (request.full or is_new) and bool(plan.wanted or state.accepted)
        if not (plan.changes or anyway):
            self.succeeded()
        elif plan.digest != self.refused_digest:
            await self._push(storefront, plan, state)
        return plan

    # -- what others ask

    @property
    def pos_has_tables(self) -> bool:
        """Whether the POS has a floor plan to read."""
        return bool(self.ctx.pos.reads_tables)

    async def state(self) -> TableState:
        """Return what is remembered: the accepted tables, the hold, the printed codes."""
        return await self.ctx.read(read_state)

    async def plan_only(self) -> TablePlan:
        """Return what a round would push; pushes nothing. Raises BridgeError."""
        reading = await read_now(self.ctx.pos.read_tables)
        return self._plan(reading, await self.state())

    async def push_again(self) -> TablePlan | None:
        """Push the plan now, changed or not; None if the export cannot be read.

        A plan that must wait still waits. Raises ServiceError, LedgerError.
        """
        self.refused_digest = ""
        return await self.now(ANYWAY)

    async def approve(self) -> TableHold | None:
        """Release the plan that waits (None: none does); it is pushed if it is still the same."""
        hold = await self.ctx.write(_approve, at=self.ctx.clock.now_ms())
        if hold is not None:
            log.info("tables.approved", store=self.ctx.store, digest=hold.digest)
            self.retry()
        return hold

    async def printed(self, sheet: Mapping[str, str]) -> TableState:
        """Record that a sheet with these codes (digests by external id) has been made."""
        state = await self.ctx.write(_record_sheet, sheet, at=self.ctx.clock.now_ms())
        log.info("tables.printed", store=self.ctx.store, codes=len(sheet))
        self._report_dead(state.dead)
        return state

    # -- the steps of a round

    async def _settle_storefront(self) -> tuple[Storefront | None, bool]:
        """Return the storefront that the store is connected to, and whether that is a new one.

        A plan that another storefront accepted, or an integration before this one, is pushed again;
        the new storefront is remembered once it has accepted it.
        """
        ctx = self.ctx
        now = await ctx.read(current_storefront, ctx.service_settings.base_url)
        known = await ctx.read(get_fact, TABLES, Storefront)
        if now is None:
            return None, False
        relation = kinship(known, now)
        if relation is Kinship.OTHER:
            await ctx.write(forget_accepted)
        elif relation is Kinship.SAME and known != now:
            await ctx.write(remember_storefront, TABLES, now, at=ctx.clock.now_ms())
        return now, relation is not Kinship.SAME

    def _plan(self, reading: TablesReading, state: TableState) -> TablePlan:
        return plan_tables(
            reading,
            [each.table for each in state.accepted],
            max_removed_percent=self.ctx.settings.tables.max_removed_percent,
            approved_digest=state.hold.digest if state.hold and state.hold.approved else "",
        )

    async def _record_hold(self, plan: TablePlan, hold: TableHold | None) -> None:
        """Let the plan wait where it has to; else nothing waits any more."""
        ctx, at = self.ctx, self.ctx.clock.now_ms()
        if plan.waits:
            if hold is None or hold.digest != plan.digest:
                waiting = TableHold(plan.digest, at if hold is None else hold.since, plan.reasons)
                await ctx.write(put_fact, HOLD, waiting, at=at)
                log.warning("tables.held", store=ctx.store, reasons=list(plan.reasons))
            ctx.report("tables.held", {"detail": joined("; ", plan.reasons)})
        elif not plan.reasons:
            ctx.report("tables.held")
            if hold is not None:
                await ctx.write(drop_fact, HOLD)
                log.info("tables.hold_dissolved", store=ctx.store)

    async def _push(self, storefront: Storefront, plan: TablePlan, state: TableState) -> None:
        ctx = self.ctx
        zoned = {each.table.external_id for each in state.accepted if each.table.zone}
        try:
            answers = await ctx.service.push_tables(storefront.store_id, plan.wanted, cleared=zoned)
        except (Refused, Conflict):
            self.refused_digest = plan.digest
            raise
        self.refused_digest = ""
        now = accepted_after(plan.wanted, answers, state.accepted)
        printed = known_codes(state.printed, state.accepted, now)
        at = ctx.clock.now_ms()

        def acknowledge(connection: Connection, store: str) -> tuple[str, ...]:
            put_tables(connection, store, now)
            put_fact(connection, store, SYNCED, at, at=at)
            drop_fact(connection, store, HOLD)
            remember_storefront(connection, store, TABLES, storefront, at=at)
            return _put_printed(connection, store, printed, now, at=at)

        dead = await ctx.write(acknowledge)
        log.info(
            "tables.pushed",
            store=ctx.store,
            tables=len(now),
            added=len(plan.changes.added),
            changed=len(plan.changes.changed),
            removed=len(plan.changes.removed),
        )
        self.succeeded()
        ctx.report("tables.held")
        self._report_dead(dead)

    def _report_dead(self, dead: Sequence[str]) -> None:
        self.ctx.report("tables.codes_changed", {"tables": listed(dead)} if dead else None)


# -- what the service has accepted, and which codes are printed; pure


def accepted_after(
    wanted: Sequence[Table], answers: Sequence[TableQr], before: Sequence[AcceptedTable]
) -> tuple[AcceptedTable, ...]:
    """Return the tables as the service has them now; one it answers nothing of keeps its code."""
    codes: dict[str, TableQr | AcceptedTable] = {each.external_id: each for each in before}
    codes |= {each.external_id: each for each in answers}
    accepted = []
    for table in wanted:
        code = codes.get(table.external_id)
        given = () if code is None else (code.table_id, code.qr_token, code.qr_url)
        accepted.append(AcceptedTable.of(table, *given))
    return tuple(accepted)


def known_codes(
    printed: Mapping[str, str], before: Sequence[AcceptedTable], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes after a push: a table without one gets the first it ever had."""
    known = dict(printed)
    for each in (*before, *now):
        if each.code:
            known.setdefault(each.table.external_id, each.code)
    return known


def dead_codes(printed: Mapping[str, str], now: Sequence[AcceptedTable]) -> tuple[str, ...]:
    """Return the names of the tables whose printed code is not their code any more."""
    return tuple(
        each.table.name
        for each in now
        if each.code and printed.get(each.table.external_id, each.code) != each.code
    )


def after_printing(
    printed: Mapping[str, str], sheet: Mapping[str, str], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes once a sheet with these is made; tables nobody knows are left."""
    known = {each.table.external_id for each in now}
    return {**printed, **{key: code for key, code in sheet.items() if key in known}}


# -- the ledger


def read_state(connection: Connection, store: str) -> TableState:
    """Return what is remembered."""
    return TableState(
        accepted=get_tables(connection, store),
        hold=get_fact(connection, store, HOLD, TableHold),
        printed=get_fact(connection, store, PRINTED) or {},
        dead=tuple(get_fact(connection, store, DEAD) or ()),
    )


def forget_accepted(connection: Connection, store: str) -> None:
    """Forget the accepted plan: another storefront has never had it. Printed codes stay known."""
    put_tables(connection, store, ())
    for fact in (HOLD, SYNCED):
        drop_fact(connection, store, fact)


def _approve(connection: Connection, store: str, *, at: int) -> TableHold | None:
    hold = read_state(connection, store).hold
    if hold is not None:
        hold = replace(hold, approved=True)
        put_fact(connection, store, HOLD, hold, at=at)
    return hold


def _record_sheet(
    connection: Connection, store: str, sheet: Mapping[str, str], *, at: int
) -> TableState:
    state = read_state(connection, store)
    printed = after_printing(state.printed, sheet, state.accepted)
    dead = _put_printed(connection, store, printed, state.accepted, at=at)
    return replace(state, printed=printed, dead=dead)


def _put_printed(
    connection: Connection,
    store: str,
    printed: Mapping[str, str],
    now: Sequence[AcceptedTable],
    *,
    at: int,
) -> tuple[str, ...]:
    """Remember the printed codes; return the names of the tables whose code is dead."""
    dead = dead_codes(printed, now)
    put_fact(connection, store, PRINTED, dict(printed), at=at)
    put_fact(connection, store, DEAD, list(dead), at=at)
    return dead
