"""The floor plan: read, compare, guard, hold, push whole, acknowledge. Specification: Table.

What the ledger has of it beside the accepted tables are small facts: `tables_hold`,
`tables_printed` (code digests by external id), `tables_dead` (names), `tables_synced_at` (ms).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from sqlalchemy import Connection

from tillbridge.adapter import TablesReading
from tillbridge.core.errors import Conflict, Refused
from tillbridge.core.log import get_logger
from tillbridge.ledger import storefront as storefronts
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import AcceptedTable
from tillbridge.ledger.storefront import (
    Kinship,
    Storefront,
    get_tables,
    kinship,
    put_tables,
)
from tillbridge.menu.context import MenuContext
from tillbridge.menu.describe import listed
from tillbridge.menu.floor_plan import (
    FloorPlan,
    after_printing,
    dead_codes,
    known_codes,
    plan_floor,
)
from tillbridge.menu.lane import SyncLane, SyncRequest
from tillbridge.menu.reading import read_now
from tillbridge.model.table import Table
from tillbridge.service.types import TableQr

log = get_logger()

HOLD, PRINTED, DEAD, SYNCED = "tables_hold", "tables_printed", "tables_dead", "tables_synced_at"
ANYWAY = SyncRequest(full=True)  # push although nothing differs


@dataclass(frozen=True, slots=True)
class FloorHold:
    """A floor plan that waits for a person since that instant (ms), or is released."""

    digest: str
    since: int
    reasons: tuple[str, ...]
    approved: bool = False


@dataclass(frozen=True, slots=True)
class FloorState:
    """All that is remembered of one store's floor plan."""

    accepted: tuple[AcceptedTable, ...] = ()
    hold: FloorHold | None = None
    printed: Mapping[str, str] = field(default_factory=dict)
    dead: tuple[str, ...] = ()


class TableSync(SyncLane[FloorPlan]):
    """The tables lane of one store."""

    push_failed = "tables.push_failed"

    def __init__(self, ctx: MenuContext) -> None:
        super().__init__(ctx, "tables")

    async def round(self, request: SyncRequest) -> FloorPlan | None:
        """Bring the service's tables in line with the POS; None where that cannot be read now."""
        ctx = self.ctx
        if not self.pos_has_tables:
            return None
        reading = await self.reader.read(ctx.pos.read_tables)
        if reading is None:
            self.postpone(request)
            return None
        storefront, is_new = await self._settle_storefront()
        state = await self.state()
        self._report_dead(state.dead)
        plan = self._plan(reading, state)
        self.reader.report_bad_rows(plan.bad_rows)
        if storefront is None:
            self.postpone(request)
            return plan
        await self._record_hold(plan, state.hold)
        if plan.waits:
            return plan
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

    async def state(self) -> FloorState:
        """Return what is remembered: the accepted tables, the hold, the printed codes."""
        return await self.ctx.read(read_state)

    async def plan_only(self) -> FloorPlan:
        """Return what a round would push; pushes nothing. Raises BridgeError."""
        reading = await read_now(self.ctx.pos.read_tables)
        return self._plan(reading, await self.state())

    async def push_again(self) -> FloorPlan | None:
        """Push the plan now, changed or not; None where the export cannot be read.

        A plan that must wait still waits. Raises ServiceError, LedgerError.
        """
        self.refused_digest = ""
        return await self.now(ANYWAY)

    async def approve(self) -> FloorHold | None:
        """Release the plan that waits (None: none does); it is pushed if it is still the same."""
        hold = await self.ctx.write(_approve, at=self.ctx.clock.now_ms())
        if hold is not None:
            log.info("tables.approved", store=self.ctx.store, digest=hold.digest)
            self.retry()
        return hold

    async def printed(self, sheet: Mapping[str, str]) -> FloorState:
        """Take note that a sheet with these codes (digests by external id) has been made."""
        state = await self.ctx.write(_record_sheet, sheet, at=self.ctx.clock.now_ms())
        log.info("tables.printed", store=self.ctx.store, codes=len(sheet))
        self._report_dead(state.dead)
        return state

    # -- the steps of a round

    async def _settle_storefront(self) -> tuple[Storefront | None, bool]:
        """Return the storefront that the store is connected to, and whether that is a new one.

        A plan that another storefront accepted, or an integration before this one, is pushed again;
        the new storefront is remembered once it has taken it.
        """
        ctx = self.ctx
        now = await ctx.read(storefronts.current_storefront, ctx.base_url)
        known = await ctx.read(storefronts.remembered_storefront, storefronts.TABLES)
        if now is None:
            return None, False
        relation, at = kinship(known, now), ctx.clock.now_ms()
        if relation is Kinship.OTHER:
            await ctx.write(forget_accepted)
        elif relation is Kinship.SAME and known != now:
            await ctx.write(storefronts.remember_storefront, storefronts.TABLES, now, at=at)
        return now, relation is not Kinship.SAME

    def _plan(self, reading: TablesReading, state: FloorState) -> FloorPlan:
        hold = state.hold
        return plan_floor(
            reading,
            [each.table for each in state.accepted],
            max_removed_percent=self.ctx.rules.max_tables_removed_percent,
            approved_digest=hold.digest if hold is not None and hold.approved else "",
        )

    async def _record_hold(self, plan: FloorPlan, hold: FloorHold | None) -> None:
        """Let the plan wait where it has to; else nothing waits any more."""
        ctx, at = self.ctx, self.ctx.clock.now_ms()
        if plan.waits:
            if hold is None or hold.digest != plan.digest:
                waiting = FloorHold(plan.digest, at if hold is None else hold.since, plan.reasons)
                await ctx.write(put_fact, HOLD, asdict(waiting), at=at)
                log.warning("tables.held", store=ctx.store, reasons=list(plan.reasons))
            ctx.open_problem("tables.held", detail="; ".join(plan.reasons))
        elif not plan.reasons:
            ctx.close_problem("tables.held")
            if hold is not None:
                await ctx.write(drop_fact, HOLD)
                log.info("tables.hold_dissolved", store=ctx.store)

    async def _push(self, storefront: Storefront, plan: FloorPlan, state: FloorState) -> None:
        ctx = self.ctx
        try:
            answers = await ctx.service.push_tables(
                storefront.store_id,
                plan.wanted,
                cleared={each.table.external_id for each in state.accepted if each.table.zone},
            )
        except (Refused, Conflict):
            self.refused_digest = plan.digest
            raise
        self.refused_digest = ""
        now = accepted_after(plan.wanted, answers, state.accepted)
        printed = known_codes(state.printed, state.accepted, now)
        dead = dead_codes(printed, now)
        at = ctx.clock.now_ms()

        def acknowledge(connection: Connection, store: str) -> None:
            put_tables(connection, store, now)
            put_fact(connection, store, SYNCED, at, at=at)
            drop_fact(connection, store, HOLD)
            storefronts.remember_storefront(
                connection, store, storefronts.TABLES, storefront, at=at
            )
            _put_printed(connection, store, printed, dead, at=at)

        await ctx.write(acknowledge)
        log.info(
            "tables.pushed",
            store=ctx.store,
            tables=len(now),
            added=len(plan.changes.added),
            changed=len(plan.changes.changed),
            removed=len(plan.changes.removed),
        )
        self.succeeded()
        ctx.close_problem("tables.held")
        self._report_dead(dead)

    def _report_dead(self, dead: Sequence[str]) -> None:
        if dead:
            self.ctx.open_problem("tables.codes_changed", tables=listed(dead))
        else:
            self.ctx.close_problem("tables.codes_changed")


def accepted_after(
    wanted: Sequence[Table], answers: Sequence[TableQr], before: Sequence[AcceptedTable]
) -> tuple[AcceptedTable, ...]:
    """Return the tables as the service has them now; one it answers nothing of keeps its code."""
    answered = {each.external_id: each for each in answers}
    known = {each.table.external_id: each for each in before}
    accepted = []
    for table in wanted:
        answer, was = answered.get(table.external_id), known.get(table.external_id)
        if answer is not None:
            codes = AcceptedTable.of(table, answer.table_id, answer.qr_token, answer.qr_url)
        elif was is not None:
            codes = AcceptedTable.of(table, was.table_id, was.qr_token, was.qr_url)
        else:
            codes = AcceptedTable.of(table)
        accepted.append(codes)
    return tuple(accepted)


# -- the ledger


def read_state(connection: Connection, store: str) -> FloorState:
    """Return what is remembered."""
    hold = get_fact(connection, store, HOLD)
    return FloorState(
        accepted=get_tables(connection, store),
        hold=None if hold is None else FloorHold(**{**hold, "reasons": tuple(hold["reasons"])}),
        printed=get_fact(connection, store, PRINTED) or {},
        dead=tuple(get_fact(connection, store, DEAD) or ()),
    )


def forget_accepted(connection: Connection, store: str) -> None:
    """Forget the accepted plan: another storefront has never had it. Printed codes stay known."""
    put_tables(connection, store, ())
    for fact in (HOLD, SYNCED):
        drop_fact(connection, store, fact)


def _approve(connection: Connection, store: str, *, at: int) -> FloorHold | None:
    hold = read_state(connection, store).hold
    if hold is not None:
        hold = replace(hold, approved=True)
        put_fact(connection, store, HOLD, asdict(hold), at=at)
    return hold


def _record_sheet(
    connection: Connection, store: str, sheet: Mapping[str, str], *, at: int
) -> FloorState:
    state = read_state(connection, store)
    printed = after_printing(state.printed, sheet, state.accepted)
    dead = dead_codes(printed, state.accepted)
    _put_printed(connection, store, printed, dead, at=at)
    return replace(state, printed=printed, dead=dead)


def _put_printed(
    connection: Connection,
    store: str,
    printed: Mapping[str, str],
    dead: Sequence[str],
    *,
    at: int,
) -> None:
    put_fact(connection, store, PRINTED, dict(printed), at=at)
    put_fact(connection, store, DEAD, list(dead), at=at)
