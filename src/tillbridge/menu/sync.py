"""The menu's way from the POS to the service, on one page: `MenuSync.round`."""

import asyncio
import time
from collections.abc import Callable

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.ledger.storefront import whole_is_due
from tillbridge.menu.assess import Assessment, availability_alone, guard_and_plan
from tillbridge.menu.compare import compare, compare_variants
from tillbridge.menu.context import MenuContext
from tillbridge.menu.describe import counts_of
from tillbridge.menu.gc_pause import gc_paused, pass_over
from tillbridge.menu.lane import PUSH_NOT_ALLOWED, USUAL, SyncLane, SyncRequest
from tillbridge.menu.plan import Kind, plan
from tillbridge.menu.push import PushResult, push
from tillbridge.menu.reading import MenuExport, milliseconds_since
from tillbridge.menu.report import (
    clear_refusals,
    record_hold,
    record_nothing_to_push,
    record_push,
    record_reading,
    report_refusals,
)
from tillbridge.menu.settle import Connected, read_connected, settle_open_pushes, settle_storefront
from tillbridge.model.catalogue import Catalogue

log = get_logger()

WHOLE = SyncRequest(whole=True)
FULL = SyncRequest(whole=True, full=True)
DRIFTS_AT_ONCE = 5
DRIFT_CALM_S = 1800.0


class MenuSync(SyncLane[Assessment]):
    """The menu lane of one store."""

    def __init__(self, ctx: MenuContext) -> None:
        super().__init__(ctx, "menu")
        self.export = MenuExport(ctx, self.reader)
        self.on_end: Callable[[], None] = lambda: None  # of a round, whatever came of it
        self._doubted_digest = ""  # of a refused plan after which everything was pushed
        self._drift = DriftPauses()

    async def round(self, request: SyncRequest) -> Assessment | None:
        """Bring the service's menu in line with the POS; None where that cannot be read now."""
        ctx = self.ctx

        # settle: whose menu the ledger knows, and what became of pushes that broke off
        connected = await settle_storefront(ctx)
        request = await self._settle(connected, request)

        # read: the difference to what the service has where that will do, else the whole menu
        whole = request.whole or request.full or not await self.export.known()
        with gc_paused(when=whole):
            reading = await self.export.read(whole=whole)
        if reading is None:
            self.postpone(request)
            await self._push_variants(connected)
            return None

        with gc_paused(when=whole):
            # overlay: what the POS says of availability apart from its menu, then what staff say
            overlay = ctx.begin_plan()

            # compare: with what the service has accepted
            comparison = await ctx.read(compare, reading, overlay)

            # guard, plan: which calls, and whether a person has to look first
            assessment = await asyncio.to_thread(
                guard_and_plan, comparison, ctx.rules, overlay.now_ms, full=request.full
            )
        if assessment.needs_whole:
            return await self.round(request | WHOLE)
        await self._report_reading(assessment, connected)
        if connected.store_id is None:
            return assessment

        # hold: what a person has to look at waits, and what the service refused is not repeated
        await record_hold(ctx, assessment)
        sendable = self._sendable(assessment)

        # push, acknowledge: call after call, and only what the service accepted
        started = time.perf_counter()
        result = await push(ctx, connected.store_id, sendable)

        # report: what is different now, to the ledger, the log and people
        await self._report_push(sendable, result, started, request.since)
        if sendable.reasons or self.refused_digest:
            await self._push_variants(connected)
        return assessment

    async def now(self, request: SyncRequest = USUAL) -> Assessment | None:
        """Make a round now; None where the export cannot be read, or the POS has no menu.

        Raises ServiceError, JobLost or LedgerError.
        """
        if not self.ctx.pos.reads_catalogue:
            return None
        try:
            return await super().now(request)
        except Exception:
            self.export.forget()
            raise
        finally:
            self.on_end()

    # -- what makes a round another one

    def distrust(self) -> None:
        """Push it all: the storefront is said to show what the service never was sent.

        As with drift, a till that says so with every order does not press the service.
        """
        self.request(FULL, after_s=self._drift.pause(self.ctx.clock.monotonic()))

    async def drifted(self, external_ids: frozenset[str]) -> None:
        """Take note that the service does not know these items: forget them, and push it all.

        A service that goes on losing what it took is not pressed: each full push for drift waits
        longer than the one before.
        """
        at = self.ctx.clock.now_ms()

        def forget(connection: Connection, store: str) -> None:
            menu.forget_items(connection, store, external_ids, at=at)
            whole_is_due(connection, store, pending=len(external_ids), at=at)

        await self.ctx.write(forget)
        self._push_all_soon(items=len(external_ids))

    async def is_whole_due(self) -> bool:
        """Whether the next round has to push everything, for whoever only looks."""
        if self._one_at_a_time.locked():
            return (await self.ctx.read(read_connected, self.ctx.base_url)).whole_due
        async with self._one_at_a_time:
            connected = await settle_storefront(self.ctx)
        return connected.store_id is not None and connected.whole_due

    def _push_all_soon(self, **why: object) -> None:
        self.export.forget()
        pause = self._drift.pause(self.ctx.clock.monotonic())
        log.warning("menu.drifted", store=self.ctx.store, pushed_in_s=round(pause), **why)
        self.request(FULL, after_s=pause)

    async def _settle(self, connected: Connected, request: SyncRequest) -> SyncRequest:
        """Settle what the ledger has left open; return what the round has to do then."""
        if await settle_open_pushes(self.ctx, connected):
            self.export.forget()
        if request.retry_refused:
            # Only here, between two readings: a refused record counts as known, so that a reading
            # with it and a comparison without it would take its item for gone.
            await self.ctx.write(clear_refusals)
            self.refused_digest = ""
            self.export.forget()
        if connected.store_id is None or not connected.whole_due:
            return request
        self.export.forget()
        return request | FULL

    async def _push_variants(self, connected: Connected) -> None:
        """Take variants off sale, or back on, while the menu cannot be read or must wait.

        No availability call names a variant, so that this takes the item object.
        """
        if connected.store_id is None:
            return
        ctx = self.ctx
        comparison = await ctx.read(compare_variants, ctx.begin_plan())
        if comparison.changes:
            kind: Kind = "patch" if len(comparison.changes.changed) == 1 else "batch"
            steps = plan(kind, comparison.changes, Catalogue(), ctx.rules.plan)
            await push(ctx, connected.store_id, Assessment(comparison, steps, ""))
            self.export.forget()

    def _sendable(self, assessment: Assessment) -> Assessment:
        """Return what may go out: of a plan that the service refused as it is, availability."""
        if assessment.digest != self.refused_digest:
            self.refused_digest = ""
        if self.refused_digest:
            assessment = availability_alone(assessment, self.ctx.rules)
        if assessment.plan.steps:
            log.info(
                "menu.planned",
                store=self.ctx.store,
                kind=assessment.plan.kind,
                calls=len(assessment.plan.steps),
                **counts_of(assessment.comparison.changes),
            )
        return assessment

    # -- what comes of it

    async def _report_reading(self, assessment: Assessment, connected: Connected) -> None:
        comparison = assessment.comparison
        if comparison.whole:
            pass_over(comparison.items_read)
        self.reader.report_bad_rows(comparison.bad_rows)
        self.reader.report_warnings(comparison.current.facts.warnings)
        await record_reading(self.ctx, assessment, whole_due=connected.whole_due)
        if comparison.refreshed or comparison.no_longer_refused:
            self.export.forget()

    async def _report_push(
        self, assessment: Assessment, result: PushResult, started: float, since: float | None
    ) -> None:
        """Report what came of a push that began at `started`, for an export changed at `since`."""
        ctx = self.ctx
        if not assessment.plan.steps:
            self._all_well()
            await record_nothing_to_push(ctx, assessment)
            return
        self.export.forget()
        await self._report_result(assessment, result)
        if since is not None:
            since = round((ctx.clock.monotonic() - since) * 1000)
        log.info(
            "menu.pushed",
            store=ctx.store,
            kind=assessment.plan.kind,
            taken=result.taken,
            refused=len(result.refused),
            ms=milliseconds_since(started),
            **({} if since is None else {"since_change_ms": since}),
        )
        await self.export.known()  # so that the next export finds it at hand

    async def _report_result(self, assessment: Assessment, result: PushResult) -> None:
        ctx = self.ctx
        lacks = result.lacks or (
            bool(result.failure) and not result.drifted and self._is_doubtful(assessment)
        )
        if not (result.drifted or result.failure or lacks):
            self._all_well()
            await record_push(ctx, assessment, result)
            if result.refused:
                self.worker.wake()  # for what was left out of the narrowed calls
            return
        report_refusals(ctx, await ctx.read(menu.refused_items))
        if result.drifted:
            await self.drifted(frozenset(result.drifted))
        elif lacks:
            await ctx.write(whole_is_due, pending=1, at=ctx.clock.now_ms())
            self._push_all_soon(detail=result.failure)
        else:
            self.refused_digest = assessment.digest
            ctx.open_problem(self.push_failed, self.subject, detail=result.failure)

    def _is_doubtful(self, assessment: Assessment) -> bool:
        """Whether a refused plan may be refused for what the service lacks; once a plan.

        What differs is sent on the ground of what the service had: a service that lost some of that
        refuses a change which it takes as part of a full push.
        """
        if assessment.plan.kind == "full" or self._doubted_digest == assessment.digest:
            return False
        self._doubted_digest = assessment.digest
        return True

    def _all_well(self) -> None:
        if not self.refused_digest:  # else the service still refuses the rest
            self.succeeded()
            self.ctx.close_problem(PUSH_NOT_ALLOWED)


class DriftPauses:
    """How long to wait before a full push for drift: the first few go at once, then ever longer.

    A menu that somebody else edits by hand drifts a few times; one that drifts with every push
    would keep the service busy for nothing.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._in_a_row = 0

    def pause(self, now: float) -> float:
        """Return the pause in seconds for drift that is seen `now` (monotonic)."""
        if self._last is None or now - self._last > DRIFT_CALM_S:
            self._in_a_row = 0
        self._last = now
        self._in_a_row += 1
        if self._in_a_row <= DRIFTS_AT_ONCE:
            return 0.0
        doubled = min(self._in_a_row - DRIFTS_AT_ONCE - 1, 10)
        return min(30.0 * 2.0**doubled, DRIFT_CALM_S / 2)
