"""What is recorded of a menu round, and reported to people: readings, holds, refusals."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu import Refusal
from tillbridge.ledger.storefront import whole_is_done
from tillbridge.menu.assess import Assessment
from tillbridge.menu.compare import SOURCE, Comparison, accepted_source
from tillbridge.menu.context import MenuContext
from tillbridge.menu.describe import counts_of, summary_lines
from tillbridge.menu.guard import Source
from tillbridge.menu.push import PushResult
from tillbridge.menu.push_record import refresh_records
from tillbridge.model.menu_summary import MenuSummary

log = get_logger()

FIRST_IMPORT = "menu_first_import"  # the fact: {at, lines, summary} of a menu nobody had seen
PENDING = "menu_pending"  # the fact: how many changes the service has not accepted yet


async def record_reading(ctx: MenuContext, assessment: Assessment, *, whole_due: bool) -> None:
    """Record what was read and what differs; `whole_due`: that is at least a full push."""
    comparison, at = assessment.comparison, ctx.clock.now_ms()

    def record(connection: Connection, store: str) -> Mapping[str, Refusal]:
        menu.clear_refusals(connection, store, comparison.no_longer_refused)
        fact = {"read_at": at, "items": comparison.items_read}
        put_fact(connection, store, "export", fact, at=at)
        pending = max(int(whole_due), sum(counts_of(comparison.changes).values()))
        put_fact(connection, store, PENDING, pending, at=at)
        return menu.refused_items(connection, store) if comparison.no_longer_refused else {}

    refused = await ctx.write(record)
    if comparison.no_longer_refused:
        report_refusals(ctx, refused)
    if assessment.first is not None:
        await _record_first_import(ctx, assessment.first)
    await refresh_records(ctx, comparison.refreshed)


async def record_hold(ctx: MenuContext, assessment: Assessment) -> None:
    """Let the plan wait where it has to; else nothing waits any more."""
    hold = assessment.hold
    if not assessment.reasons:
        if hold is not None and not assessment.approved:
            await ctx.write(pushes.drop_hold)
            log.info("menu.hold_dissolved", store=ctx.store)
        ctx.close_problem("menu.held")
        return
    if hold is None or hold.digest != assessment.digest:
        await ctx.write(
            pushes.put_hold,
            assessment.digest,
            assessment.reasons,
            assessment.summary or {},
            at=ctx.clock.now_ms(),
        )
        log.warning("menu.held", store=ctx.store, reasons=list(assessment.reasons))
    if await ctx.read(pushes.is_dismissed, assessment.digest):
        ctx.close_problem("menu.held")
    else:
        ctx.open_problem("menu.held", detail="; ".join(assessment.reasons))


async def record_push(ctx: MenuContext, assessment: Assessment, result: PushResult) -> None:
    """Record that the service has what was planned, apart from what it refused item by item."""
    full = assessment.plan.kind == "full"
    if result.reservation:
        ctx.open_problem("menu.taken_in_part", detail=result.reservation)
    elif full:
        ctx.close_problem("menu.taken_in_part")
    comparison, at = assessment.comparison, ctx.clock.now_ms()

    def record(connection: Connection, store: str) -> Mapping[str, Refusal]:
        put_fact(connection, store, "last_synced_at", at, at=at)
        if full:
            whole_is_done(connection, store)
        if not assessment.reasons:
            put_fact(connection, store, PENDING, len(result.refused), at=at)
            menu.forget_parts(connection, store, _parts_gone(comparison))
            pushes.drop_hold(connection, store)
            _record_source(connection, store, comparison.source, at=at)
        return menu.refused_items(connection, store)

    report_refusals(ctx, await ctx.write(record))


async def record_nothing_to_push(ctx: MenuContext, assessment: Assessment) -> None:
    """Record that the service has all of it; a line end that is missing is no news to rely on."""
    comparison, at = assessment.comparison, ctx.clock.now_ms()
    full = assessment.plan.kind == "full"  # of a menu without items: nothing is on either side
    gone = {} if comparison.changes.needs_push else _parts_gone(comparison)
    source = comparison.source
    if assessment.reasons or source.ends_with_newline is False:
        source = comparison.totals.accepted_from
    new_source = source.after(comparison.totals.accepted_from) != comparison.totals.accepted_from
    if not (full or new_source or any(gone.values())):
        return

    def record(connection: Connection, store: str) -> None:
        if full:
            whole_is_done(connection, store)
        menu.forget_parts(connection, store, gone)
        if new_source:
            _record_source(connection, store, source, at=at)

    await ctx.write(record)


def report_refusals(ctx: MenuContext, refused: Mapping[str, Refusal]) -> None:
    """Open or close the problem of items that the service refused."""
    if not refused:
        ctx.close_problem("menu.items_refused")
        return
    external_id, refusal = next(iter(refused.items()))
    which = f"{refusal.name} ({external_id})" if refusal.name else external_id
    ctx.open_problem("menu.items_refused", count=len(refused), detail=f"{which}: {refusal.reason}")


def clear_refusals(connection: Connection, store: str) -> None:
    """Let everything that the service refused be sent again."""
    menu.clear_refusals(connection, store, menu.refused_items(connection, store).keys())


async def _record_first_import(ctx: MenuContext, first: MenuSummary) -> None:
    """Record the summary of a first import for people, who have nothing to compare it with."""
    currency = ctx.rules.guard.currency
    lines = list(summary_lines(first, currency))
    known = await ctx.read(get_fact, FIRST_IMPORT)
    if known is not None and known["lines"] == lines:
        return
    at = ctx.clock.now_ms()
    summary = first.to_json(currency)
    fact = {"at": at, "lines": lines, "summary": summary}
    await ctx.write(put_fact, FIRST_IMPORT, fact, at=at)
    log.info("menu.first_import", store=ctx.store, **_figures(summary))


def _figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a summary, and how many of what it lists."""
    return {
        key: len(value) if isinstance(value, list) else value
        for key, value in summary.items()
        if isinstance(value, list | int)
    }


def _record_source(connection: Connection, store: str, source: Source, *, at: int) -> None:
    """Record what the accepted menu was read from."""
    remembered = source.after(accepted_source(connection, store))
    put_fact(connection, store, SOURCE, asdict(remembered), at=at)


def _parts_gone(comparison: Comparison) -> dict[str, frozenset[str]]:
    changes = comparison.changes
    return {
        "categories": changes.categories.gone,
        "add_ons": changes.add_ons.gone,
        "addon_groups": changes.addon_groups.gone,
        "menus": changes.menus.gone,
    }
