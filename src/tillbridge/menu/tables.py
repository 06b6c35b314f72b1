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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import xxhash
from sqlalchemy import Connection

from tillbridge.adapter import BadRow, TablesReading
from tillbridge.core.errors import Conflict, Refused
from tillbridge.core.i18n import _, joined
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
from tillbridge.menu.describe import BadRowView, bad_row_json, listed
from tillbridge.menu.lane import MenuContext, SyncLane, SyncRequest, read_now
from tillbridge.model.restaurant import Table
from tillbridge.pos.runner import bad_rows_detail
from tillbridge.service.types import TableQr

log = get_logger()

FEW = 5  # so many tables are a day's moving about, whatever the percentage

HOLD, PRINTED, DEAD, SYNCED = "tables_hold", "tables_printed", "tables_dead", "tables_synced_at"
ANYWAY = SyncRequest(full=True)  # push although nothing differs


# -- what differs, and whether a person has to look at it first; pure


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What differs between two floor plans, by external id; `changed` are (before, after)."""

    added: tuple[Table, ...] = ()
    changed: tuple[tuple[Table, Table], ...] = ()
    removed: tuple[Table, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class TableFields(TypedDict):
    """A table as the till has it."""

    external_id: str
    name: str
    seats: int | None
    zone: str


class TablesChangesView(TypedDict):
    """What differs, each table with its fields."""

    added: list[TableFields]
    changed: list[TableFields]
    removed: list[TableFields]


class TablesPlanView(TypedDict):
    """A plan as `tables plan --json` prints it; `tables` counts all that are wanted."""

    tables: int
    changes: TablesChangesView
    lines: list[str]
    held: list[str]
    approved: bool
    bad_rows: list[BadRowView]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What a round comes to. `reasons` say why it waits for a person; `digest` names the plan."""

    wanted: tuple[Table, ...]
    changes: TableChanges
    reasons: tuple[str, ...]
    digest: str
    bad_rows: tuple[BadRow, ...] = ()
    approved: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person has to release it first."""
        return bool(self.reasons) and not self.approved

    def to_json(self) -> TablesPlanView:
        """Return the plan as `tables plan --json` prints it."""
        return {
            "tables": len(self.wanted),
            "changes": {
                "added": [_fields(each) for each in self.changes.added],
                "changed": [_fields(after) for _before, after in self.changes.changed],
                "removed": [_fields(each) for each in self.changes.removed],
            },
            "lines": list(sentences(self.changes)),
            "held": list(self.reasons),
            "approved": self.approved,
            "bad_rows": [bad_row_json(row) for row in self.bad_rows],
        }


def checked(reading: TablesReading) -> TablesReading:
    """Return the reading with what no adapter should have let through as bad rows."""
    tables: dict[str, Table] = {}
    bad_rows = list(reading.bad_rows)
    for table in reading.tables:
        external_id = table.external_id
        affected_id = external_id
        if not external_id.strip():
            text, fix = _("the table has no id."), _("Give each table an id that does not change.")
        elif external_id in tables:
            text = _("the table {id} appears twice.").format(id=external_id)
            fix, affected_id = _("Give each table a different id. The first one is used."), ""
        elif not table.name.strip():
            text, fix = _("the table has no name."), _("Give it the name that is on the table.")
        else:
            tables[external_id] = table
            continue
        place = _("table {id}").format(id=external_id or "?")
        bad_rows.append(BadRow(place, text, fix, affected_id))
    return TablesReading(tuple(tables.values()), tuple(bad_rows))


def plan_tables(
    reading: TablesReading,
    accepted: Sequence[Table],
    *,
    max_removed_percent: float,
    approved_digest: str = "",
) -> TablePlan:
    """Return what a push would do; `accepted` is what the service has."""
    sound = checked(reading)
    unread = frozenset(row.external_id for row in sound.bad_rows)
    wanted = wanted_tables(sound.tables, accepted, unread)
    changes = table_changes(accepted, wanted)
    digest = _digest(wanted, changes)
    return TablePlan(
        wanted=wanted,
        changes=changes,
        reasons=guard_tables(changes, len(accepted), max_removed_percent=max_removed_percent),
        digest=digest,
        bad_rows=sound.bad_rows,
        approved=digest == approved_digest,
    )


def wanted_tables(
    read: Sequence[Table], accepted: Sequence[Table], unread: frozenset[str]
) -> tuple[Table, ...]:
    """Return the tables as they shall be, by external id; `unread` have a bad row and stay.

    A bad row that may stand for any table ("" in `unread`) lets no table go.
    """
    tables = {each.external_id: each for each in read}
    for each in accepted:
        if each.external_id not in tables and (each.external_id in unread or "" in unread):
            tables[each.external_id] = each
    return tuple(tables[external_id] for external_id in sorted(tables))


def table_changes(before: Sequence[Table], after: Sequence[Table]) -> TableChanges:
    """Return what differs; neither names a table twice."""
    was = {each.external_id: each for each in before}
    now = {each.external_id: each for each in after}
    return TableChanges(
        added=tuple(now[key] for key in sorted(now.keys() - was.keys())),
        changed=tuple(
            (was[key], now[key]) for key in sorted(now.keys() & was.keys()) if was[key] != now[key]
        ),
        removed=tuple(was[key] for key in sorted(was.keys() - now.keys())),
    )


def guard_tables(
    changes: TableChanges, known: int, *, max_removed_percent: float
) -> tuple[str, ...]:
    """Return why the plan must wait for a person; empty if it may go out."""
    removed = len(changes.removed)
    if removed and removed == known and not changes.added:
        text = _("the floor plan has no tables; the storefront has {known} ({names})")
    elif removed > FEW and removed * 100 > max_removed_percent * known:
        text = _("{removed} of {known} tables removed ({names})")
    else:
        return ()
    names = listed([each.name for each in changes.removed])
    return (text.format(removed=removed, known=known, names=names),)


def sentences(changes: TableChanges) -> Iterator[str]:
    """Yield each change as a line that a person reads."""
    for table in changes.added:
        yield f"+ {table.external_id} {_described(table)}"
    for before, after in changes.changed:
        yield f"~ {after.external_id} {_described(before)} -> {_described(after)}"
    for table in changes.removed:
        yield f"- {table.external_id} {_described(table)}"


def _fields(table: Table) -> TableFields:
    return {
        "external_id": table.external_id,
        "name": table.name,
        "seats": table.seats,
        "zone": table.zone,
    }


def _described(table: Table) -> str:
    seats = "" if table.seats is None else _("{seats} seats").format(seats=table.seats)
    return joined(", ", filter(None, [table.name, seats, table.zone]))


def _digest(wanted: Sequence[Table], changes: TableChanges) -> str:
    text = repr((wanted, [each.external_id for each in changes.removed]))
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


# -- the lane


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
            ctx.report(self.push_failed, None, self.subject)
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
        ctx.report(self.push_failed, None, self.subject)
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
