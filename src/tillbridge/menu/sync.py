"""How the menu gets from the POS to the service, on one page: `MenuSync.round`."""

import asyncio
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.i18n import joined
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.menu import Refusal
from tillbridge.ledger.pushes import Connected, Kinship, whole_is_due
from tillbridge.menu.compare import SOURCE, Overlay, changes_from, compare, compare_availability
from tillbridge.menu.describe import summary_lines
from tillbridge.menu.diff import ContentDigest, Diff
from tillbridge.menu.lane import (
    PUSH_NOT_ALLOWED,
    MenuContext,
    SyncLane,
    SyncRequest,
    due_of,
    gc_paused,
    pass_over,
)
from tillbridge.menu.plan import Assessment, Kind, availability_alone, guard_and_plan, plan
from tillbridge.menu.push import PushResult, push, settle_push
from tillbridge.menu.review import Differing
from tillbridge.model.catalogue import Catalogue, CatalogueChanges, MenuSummary, Source
from tillbridge.pos.runner import bad_rows_detail

log = get_logger()

WHOLE = SyncRequest(whole=True)
FULL = SyncRequest(whole=True, full=True)
DRIFTS_AT_ONCE = 5
DRIFT_CALM_S = 1800.0
# The fact: {at, lines, summary} of a menu that nobody has looked at.
FIRST_IMPORT = "menu_first_import"
PENDING = "menu_pending"  # the fact: how many changes the service has not accepted yet


class MenuSync(SyncLane[Assessment]):
    """The menu lane of one store."""

    def __init__(self, ctx: MenuContext) -> None:
        super().__init__(ctx, "menu")
        self._known: AbstractSet[int] | None = None  # fingerprints of what the service has
        self._counts: tuple[int, int, int] | None = None  # of an export, as last logged
        self._doubted_digest = ""  # of a refused plan after which everything was pushed
        self.differing: Differing | None = None  # what the storefront does not have yet, for people
        self._drift = DriftPauses()

    async def round(self, request: SyncRequest) -> Assessment | None:
        """Bring the service's menu in line with the POS; None if it cannot be read now, or is none.

        Raises ServiceError, JobLost or LedgerError.
        """
        ctx = self.ctx
        if not ctx.pos.reads_catalogue:
            return None

        # settle: which store's menu the ledger has, and how interrupted pushes ended
        connected = await settle_storefront(ctx)
        request = await self._settle(connected, request)

        # read: only what differs from the service if that is enough, otherwise the whole menu
        whole = request.whole or request.full or not await self._fingerprints()
        with gc_paused() if whole else nullcontext(), ctx.underway("reading"):
            reading = await self.read_export(partial(self._read, whole=whole))
        if reading is None:
            self._requested |= request
            await self._push_variants(connected)
            return None

        with gc_paused() if whole else nullcontext():
            # overlay: availability that the POS reports apart from its menu, then what staff have
            # set; as of after the reading, so that an item which sold out meanwhile does not come
            # back
            ctx.calls.sent.clear()
            overlay = Overlay(ctx.clock.now_ms(), ctx.by_pos)

            # compare: with what the service has accepted
            comparison = await ctx.read(compare, reading, overlay)

            # guard, plan: which calls to make, and whether a person has to look first
            assessment = await asyncio.to_thread(
                guard_and_plan, comparison, ctx.rules, overlay.now_ms, full=request.full
            )
        if assessment.needs_whole:
            return await self.round(request | WHOLE)
        await self._record_reading(assessment, connected)
        self.differing = differing_of(assessment, overlay.now_ms)
        if connected.store_id is None:
            return assessment

        # hold: what a person has to look at waits; what the service refused is not repeated
        await record_hold(ctx, assessment)
        sendable = await self._sendable(assessment)

        # push, acknowledge: one call after another, and only what the service accepted; report the
        # end
        all_well = True
        if sendable.plan.steps:
            all_well = await self._push(connected.store_id, sendable, request.since)
        else:
            await self._record_nothing_to_push(sendable)
        if all_well and not self.refused_digest:  # otherwise the service still refuses the rest
            if not sendable.reasons:
                self.differing = None
            ctx.report(self.push_failed, None, self.subject)
            ctx.report(PUSH_NOT_ALLOWED)
        if sendable.reasons or self.refused_digest:
            await self._push_variants(connected)
        return assessment

    # -- reading the menu: what differs from the service, or everything

    async def _fingerprints(self) -> AbstractSet[int]:
        """Return the fingerprints of what the service has.

        They are cached until that changes: the cache is dropped before the change is made, so that
        one which fails leaves nothing behind.
        """
        if self._known is None:
            self._known = await self.ctx.read(menu.known_fingerprints)
        return self._known

    async def _read(self, *, whole: bool) -> Catalogue | CatalogueChanges:
        """Return the menu, or what differs in it. Raises PosFailure if it cannot be read now."""
        pos, started = self.ctx.pos, time.perf_counter()
        reading: Catalogue | CatalogueChanges
        if pos.reads_changes and not whole:
            reading = await pos.read_changes(await self._fingerprints())
        else:
            reading = await pos.read_catalogue()
        if isinstance(reading, Catalogue) and not whole:
            reading = await asyncio.to_thread(changes_from, reading, await self._fingerprints())
        fresh = reading if isinstance(reading, Catalogue) else reading.fresh
        items = len(fresh.items) if isinstance(reading, Catalogue) else reading.items_read
        counts = (items, len(fresh.items), len(fresh.bad_rows))
        # A till that is asked every few seconds usually gives the same answer.
        write = log.debug if counts == self._counts else log.info
        self._counts = counts
        write(
            "export.read",
            store=self.ctx.store,
            items=items,
            fresh=len(fresh.items),
            bad_rows=len(fresh.bad_rows),
            ms=round((time.perf_counter() - started) * 1000),
        )
        return reading

    # -- what the next round has to do differently

    def resync(self) -> None:
        """Push everything: the storefront shows other prices than the POS has.

        The ledger cannot show what differs: as far as it knows, the service has the POS's prices.
        As with drift, reports that come with every order do not cause a push each time.
        """
        self.request(FULL, after_s=self._drift.pause(self.ctx.clock.monotonic()))

    async def drifted(self, external_ids: frozenset[str]) -> None:
        """Record that the service does not know these items: forget them, and push everything.

        If the service keeps losing what it accepted, each full push waits longer than the last.
        """
        at = self.ctx.clock.now_ms()

        def forget(connection: Connection, store: str) -> None:
            menu.forget_items(connection, store, external_ids, at=at)
            whole_is_due(connection, store, pending=len(external_ids), at=at)

        await self.ctx.write(forget)
        self._push_all_soon(items=len(external_ids))

    async def is_whole_due(self) -> bool:
        """Return whether the next round has to push everything; changes nothing."""
        if self._one_at_a_time.locked():
            return await self.ctx.read(get_fact, pushes.WHOLE_DUE) is not None
        async with self._one_at_a_time:
            connected = await settle_storefront(self.ctx)
        return connected.store_id is not None and connected.whole_due

    def _push_all_soon(self, **why: object) -> None:
        self._known = None
        pause = self._drift.pause(self.ctx.clock.monotonic())
        log.warning("menu.drifted", store=self.ctx.store, pushed_in_s=round(pause), **why)
        self.request(FULL, after_s=pause)

    async def _settle(self, connected: Connected, request: SyncRequest) -> SyncRequest:
        """Settle what the ledger has left open; return what the round has to do."""
        if connected.store_id is not None and connected.open_pushes:
            self._known = None
            for each in connected.open_pushes:
                await settle_push(self.ctx, connected.store_id, each)
        if request.retry_refused:
            # Only here, between two readings: a refused record counts as known, so reading with it
            # and comparing without it would make its item look removed.
            self._known = None
            refused = await self.ctx.read(menu.refused_items)
            await self.ctx.write(menu.clear_refusals, refused.keys())
            self.refused_digest = ""
        if due := due_of(self.ctx.calls.whole_again):  # a late call may have undone them
            self._known = None
            await self.ctx.write_portions(menu.mark_unconfirmed, due)
            for key in due & due_of(self.ctx.calls.whole_again):
                del self.ctx.calls.whole_again[key]
        if connected.store_id is None or not connected.whole_due:
            return request
        self._known = None
        return request | FULL

    async def _push_variants(self, connected: Connected) -> None:
        """Take variants and add-ons off sale, or put them back, while the rest cannot be sent.

        The availability calls cannot name them, so this sends the item object, or the group.
        """
        if connected.store_id is None:
            return
        ctx = self.ctx
        ctx.calls.sent.clear()
        overlay = Overlay(ctx.clock.now_ms(), ctx.by_pos)
        comparison = await ctx.read(compare_availability, overlay)
        variants, groups = comparison.changes.content, comparison.changes.addon_groups
        if variants or groups:
            kind: Kind = "patch" if len(variants) == 1 and not groups else "batch"
            changes = Diff(changed=variants, addon_groups=groups)
            steps = plan(kind, changes, Catalogue(), ctx.rules)
            self._known = None
            await push(ctx, connected.store_id, Assessment(comparison, steps))

    async def _sendable(self, assessment: Assessment) -> Assessment:
        """Return what may be sent: only availability, if the service has refused this very plan."""
        changes = assessment.comparison.changes
        if self.refused_digest and self.refused_digest != await digest_of(assessment):
            self.refused_digest = ""
        if self.refused_digest:
            alone = availability_alone(changes, self.ctx.rules)
            assessment = replace(assessment, plan=alone, reasons=assessment.reasons or ("",))
        if assessment.plan.steps:
            log.info(
                "menu.planned",
                store=self.ctx.store,
                kind=assessment.plan.kind,
                calls=len(assessment.plan.steps),
                **changes.counts,
            )
        return assessment

    async def _record_reading(self, assessment: Assessment, connected: Connected) -> None:
        """Record what was read and what differs, and report what concerns people."""
        ctx, comparison, at = self.ctx, assessment.comparison, self.ctx.clock.now_ms()
        if comparison.whole:
            pass_over(comparison.items_read)
        warnings = comparison.current.facts.warnings
        detail = None
        if warnings:
            text = joined(": ", (warnings[0].place, warnings[0].text))
            detail = {"count": len(warnings), "detail": text, "remedy": warnings[0].fix}
        ctx.report("export.warnings", detail, self.subject)
        ctx.report("export.bad_rows", bad_rows_detail(comparison.current.bad_rows), self.subject)

        def record(connection: Connection, store: str) -> Mapping[str, Refusal]:
            menu.clear_refusals(connection, store, comparison.no_longer_refused)
            fact = {"read_at": at, "items": comparison.items_read}
            put_fact(connection, store, "export", fact, at=at)
            differing = sum(comparison.changes.counts.values())
            pending = max(int(connected.whole_due), differing)
            put_fact(connection, store, PENDING, pending, at=at)
            return menu.refused_items(connection, store) if comparison.no_longer_refused else {}

        if comparison.refreshed or comparison.no_longer_refused:
            self._known = None
        refused = await ctx.write(record)
        if comparison.no_longer_refused:
            report_refusals(ctx, refused)
        if assessment.first is not None:
            await record_first_import(ctx, assessment.first)
        if comparison.refreshed:
            await ctx.write_portions(menu.refresh_items, comparison.refreshed)

    async def _push(self, store_id: str, assessment: Assessment, since: float | None) -> bool:
        """Push the plan for an export that changed at `since`, and report the result.

        Return whether the service has everything, apart from items that it refused one by one.
        """
        ctx, started = self.ctx, time.perf_counter()
        finish = partial(record_end, assessment=assessment, clock=ctx.clock)
        self._known = None
        result = await push(ctx, store_id, assessment, finish)
        if result.is_complete:
            if result.reservation:
                ctx.report("menu.taken_in_part", {"detail": result.reservation})
            elif assessment.plan.kind == "full":
                ctx.report("menu.taken_in_part")
            report_refusals(ctx, result.refusals)
            if result.refused:
                self.worker.wake()  # for what the narrowed calls left out
        else:
            await self._report_incomplete(assessment, result)
        ended = ctx.clock.monotonic()
        log.info(
            "menu.pushed",
            store=ctx.store,
            kind=assessment.plan.kind,
            accepted=result.accepted,
            refused=len(result.refused),
            ms=round((time.perf_counter() - started) * 1000),
            **({} if since is None else {"since_change_ms": round((ended - since) * 1000)}),
        )
        await self._fingerprints()  # so that they are ready for the next export
        return result.is_complete

    async def _report_incomplete(self, assessment: Assessment, result: PushResult) -> None:
        """Report what the service did not accept; push everything if it has lost something."""
        ctx = self.ctx
        report_refusals(ctx, await ctx.read(menu.refused_items))
        if result.drifted:
            await self.drifted(frozenset(result.drifted))
            return
        # Only differences are sent, so a service that has lost a part refuses a change that it
        # would accept in a full push. A full push is tried once for each plan.
        digest = await digest_of(assessment)
        is_doubtful = assessment.plan.kind != "full" and self._doubted_digest != digest
        if result.lacks or is_doubtful:
            if not result.lacks:
                self._doubted_digest = digest
            await ctx.write(whole_is_due, pending=1, at=ctx.clock.now_ms())
            self._push_all_soon(detail=result.failure)
        else:
            self.refused_digest = digest
            ctx.report(self.push_failed, {"detail": result.failure}, self.subject)

    async def _record_nothing_to_push(self, assessment: Assessment) -> None:
        """Record that the service has everything, if that is new."""
        comparison = assessment.comparison
        accepted = comparison.totals.accepted_from
        news = any(comparison.changes.parts_gone.values()) or accepted != (
            comparison.totals.read_from.after(accepted, sent=False)
        )
        # A full push of an empty menu: there is nothing on either side.
        if assessment.plan.kind == "full" or (news and not assessment.reasons):
            await self.ctx.write(record_end, None, assessment=assessment, clock=self.ctx.clock)


class DriftPauses:
    """How long to wait before a full push for drift: the first few not at all, then ever longer.

    A menu that somebody also edits by hand drifts a few times; one that drifts after every push
    would keep the service busy for nothing.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._in_a_row = 0

    def pause(self, now: float) -> float:
        """Return the pause in seconds for drift found `now` (monotonic)."""
        if self._last is None or now - self._last > DRIFT_CALM_S:
            self._in_a_row = 0
        self._last = now
        self._in_a_row += 1
        if self._in_a_row <= DRIFTS_AT_ONCE:
            return 0.0
        doubled = min(self._in_a_row - DRIFTS_AT_ONCE - 1, 10)
        return min(30.0 * 2.0**doubled, DRIFT_CALM_S / 2)


# -- what has to be settled before menus are compared


async def settle_storefront(ctx: MenuContext) -> Connected:
    """Bring what the ledger remembers of the menu in line with the storefront it belongs to.

    For another store or another address, forget the accepted menu: that storefront never had it. A
    new integration of the same store may or may not have it: send every item again, while the
    guard still compares with the accepted menu.
    """
    found = await ctx.read(pushes.connected, ctx.service_settings.base_url)
    # Immediately, because a push of this process may end at any moment.
    stale = [each for each in found.open_pushes if each.id not in ctx.calls.push_ids]
    found = replace(found, open_pushes=stale)
    now = found.now
    if now is None or found.known == now:
        return found
    relation = pushes.kinship(found.known, now)
    at = ctx.clock.now_ms()
    if relation is not Kinship.SAME:
        ids = sorted(await ctx.read(menu.all_ids))
        log.warning("menu.storefront_changed", store=ctx.store, what=relation.value, items=len(ids))
        if relation is Kinship.OTHER:
            await ctx.write_portions(menu.forget_items, ids, at=at)
        else:
            await ctx.write_portions(menu.mark_unconfirmed, ids)
        parts, pending = relation is Kinship.OTHER, max(1, len(ids))
        await ctx.write(pushes.start_over, parts=parts, pending=pending, at=at)
        found = replace(found, whole_due=True, open_pushes=())
    await ctx.write(pushes.remember_storefront, pushes.MENU, now, at=at)
    return found


# -- what is recorded after a round


def differing_of(assessment: Assessment, read_at: int) -> Differing | None:
    """Return what differs, for people; None if nothing does and every row could be read."""
    comparison = assessment.comparison
    if not comparison.changes and not comparison.current.bad_rows:
        return None
    return Differing(
        comparison.changes,
        replace(comparison.acknowledged, items={}),
        replace(comparison.current, items={}, fingerprints={}, source=Source()),
        assessment.reasons,
        assessment.suspects,
        read_at,
    )


async def digest_of(assessment: Assessment) -> str:
    """Return the digest of the plan's content, computed outside the event loop."""
    return await asyncio.to_thread(lambda: ContentDigest(assessment.comparison.changes).text)


async def record_hold(ctx: MenuContext, assessment: Assessment) -> None:
    """Put the plan on hold if it has to wait; otherwise end an earlier hold."""
    hold, reasons = assessment.comparison.hold, assessment.reasons
    if not reasons:
        if hold is not None and not assessment.approved:
            await ctx.write(pushes.drop_hold)
            log.info("menu.hold_dissolved", store=ctx.store)
        ctx.report("menu.held")
        return
    if hold is None or hold.digest != assessment.digest:
        at = ctx.clock.now_ms()
        summary = {"counts": assessment.comparison.changes.counts}
        await ctx.write(pushes.put_hold, assessment.digest, reasons, summary, at=at)
        log.warning("menu.held", store=ctx.store, reasons=list(reasons))
    dismissed = await ctx.read(pushes.is_dismissed, assessment.digest)
    ctx.report("menu.held", None if dismissed else {"detail": joined("; ", reasons)})


def record_end(
    connection: Connection,
    store: str,
    result: PushResult | None,
    *,
    assessment: Assessment,
    clock: Clock,
) -> None:
    """Record that the service has what was planned, apart from items that it refused.

    Without a result, nothing had to be sent.
    """
    comparison, at = assessment.comparison, clock.now_ms()
    if assessment.plan.kind == "full":
        drop_fact(connection, store, pushes.WHOLE_DUE)
    if result is not None:
        put_fact(connection, store, "last_synced_at", at, at=at)
        result.refusals = menu.refused_items(connection, store)
    if assessment.reasons:
        return
    put_fact(connection, store, PENDING, len(result.refused) if result else 0, at=at)
    if comparison.hold is not None:
        pushes.drop_hold(connection, store)
    gone, accepted = comparison.changes.parts_gone, comparison.totals.accepted_from
    if any(gone.values()):
        menu.forget_parts(connection, store, gone)
    source = comparison.totals.read_from.after(accepted, sent=result is not None)
    if source != accepted:
        put_fact(connection, store, SOURCE, source, at=at)


async def record_first_import(ctx: MenuContext, first: MenuSummary) -> None:
    """Record the summary of a first import for people, who cannot compare it with anything."""
    currency, at = ctx.rules.currency, ctx.clock.now_ms()
    lines, summary = list(summary_lines(first, currency)), first.to_json(currency)
    known = await ctx.read(get_fact, FIRST_IMPORT)
    if known is not None and known["lines"] == lines:
        return
    await ctx.write(put_fact, FIRST_IMPORT, {"at": at, "lines": lines, "summary": summary}, at=at)
    figures: dict[str, Any] = {
        key: len(value) if isinstance(value, list) else value
        for key, value in summary.items()
        if isinstance(value, list | int)
    }
    log.info("menu.first_import", store=ctx.store, **figures)


def report_refusals(ctx: MenuContext, refused: Mapping[str, Refusal]) -> None:
    """Report the items that the service refused, the first of them by name."""
    detail = None
    for external_id, refusal in list(refused.items())[:1]:
        which = f"{refusal.name} ({external_id})" if refusal.name else external_id
        detail = {"count": len(refused), "detail": f"{which}: {refusal.reason}"}
    ctx.report("menu.items_refused", detail)
