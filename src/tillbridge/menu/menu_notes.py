"""What is remembered of a menu round, and shown to people: readings, holds, refusals."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import pushes
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu import clear_refusals, refused_items
from tillbridge.menu.acknowledging import refresh
from tillbridge.menu.assess import Assessment, Rules
from tillbridge.menu.compare import SOURCE, accepted_source
from tillbridge.menu.describe import counts_of, summary_lines
from tillbridge.menu.guard import Source
from tillbridge.menu.menu_reading import MenuReading
from tillbridge.menu.shared import Shared
from tillbridge.model.menu_summary import MenuSummary

log = get_logger()

FIRST_IMPORT = "menu_first_import"  # the fact: {at, lines, summary} of a menu nobody had seen
PENDING = "menu_pending"  # the fact: how many changes the service has not accepted yet


class MenuNotes:
    """The notes of one store's menu lane."""

    def __init__(self, shared: Shared, rules: Rules, reading: MenuReading) -> None:
        self._shared = shared
        self._rules = rules
        self._reading = reading
        self._store = shared.store
        self._ledger = shared.ledger

    async def take(self, assessment: Assessment, *, whole_due: bool) -> None:
        """Note what was read and what differs; `whole_due`: that is at least a full push."""
        comparison = assessment.comparison
        self._reading.tell_bad_rows(comparison.bad_rows)
        self._reading.tell_warnings(comparison.current.facts.warnings)
        at = self._shared.clock.now_ms()

        def note(connection: Connection) -> None:
            clear_refusals(connection, self._store, comparison.forgiven)
            fact = {"read_at": at, "items": comparison.items_read}
            put_fact(connection, self._store, "export", fact, at=at)
            pending = max(int(whole_due), sum(counts_of(comparison.changes).values()))
            put_fact(connection, self._store, PENDING, pending, at=at)

        await self._ledger.write(note)
        if assessment.first is not None:
            await self._show_first(assessment.first)
        await refresh(self._ledger, self._store, comparison.refreshed)
        if comparison.refreshed or comparison.forgiven:
            self._reading.forget()
            await self.tell_refused()

    async def hold_or_release(self, assessment: Assessment) -> None:
        """Let the plan wait where it has to; else nothing waits any more."""
        if assessment.reasons:
            await self._hold(assessment)
            return
        if assessment.hold is not None and not assessment.approved:
            await self._ledger.write(lambda connection: pushes.drop_hold(connection, self._store))
            log.info("menu.hold_dissolved", store=self._store)
        self._shared.desk.close("menu.held", self._store)

    async def _hold(self, assessment: Assessment) -> None:
        waits = assessment.hold is not None and assessment.hold.digest == assessment.digest
        if not waits:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: pushes.put_hold(
                    connection,
                    self._store,
                    assessment.digest,
                    assessment.reasons,
                    assessment.summary or {},
                    at=at,
                )
            )
            log.warning("menu.held", store=self._store, reasons=list(assessment.reasons))
        dismissed = await self._ledger.read(
            lambda connection: pushes.is_dismissed(connection, self._store, assessment.digest)
        )
        if dismissed:
            self._shared.desk.close("menu.held", self._store)
        else:
            self._shared.desk.open("menu.held", self._store, detail="; ".join(assessment.reasons))

    async def _show_first(self, first: MenuSummary) -> None:
        """Keep the summary of a first import for people, who cannot compare it with anything."""
        lines = list(summary_lines(first, self._rules.guard.currency))
        known = await self._ledger.read(
            lambda connection: get_fact(connection, self._store, FIRST_IMPORT)
        )
        if known is not None and known["lines"] == lines:
            return
        at = self._shared.clock.now_ms()
        summary = first.to_json(self._rules.guard.currency)
        fact = {"at": at, "lines": lines, "summary": summary}
        await self._ledger.write(
            lambda connection: put_fact(connection, self._store, FIRST_IMPORT, fact, at=at)
        )
        log.info("menu.first_import", store=self._store, **_figures(summary))

    async def unchanged_source(self, assessment: Assessment) -> None:
        """Note what the menu was read from; a line end that is missing is no news to rely on."""
        source = assessment.comparison.source
        if assessment.reasons or source.ends_with_newline is False:
            return
        known = await self._ledger.read(lambda connection: accepted_source(connection, self._store))
        if source.after(known) != known:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: note_source(connection, self._store, source, at=at)
            )

    async def tell_refused(self) -> None:
        """Open or close the problem of items that the service refused."""
        refused = await self._ledger.read(lambda connection: refused_items(connection, self._store))
        if not refused:
            self._shared.desk.close("menu.items_refused", self._store)
            return
        external_id, refusal = next(iter(refused.items()))
        which = f"{refusal.name} ({external_id})" if refusal.name else external_id
        self._shared.desk.open(
            "menu.items_refused",
            self._store,
            count=len(refused),
            detail=f"{which}: {refusal.reason}",
        )


def _figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a summary, and how many of what it lists."""
    return {
        key: len(value) if isinstance(value, list) else value
        for key, value in summary.items()
        if isinstance(value, list | int)
    }


def note_source(connection: Connection, store: str, source: Source, *, at: int) -> None:
    """Note what the accepted menu was read from."""
    remembered = source.after(accepted_source(connection, store))
    put_fact(connection, store, SOURCE, asdict(remembered), at=at)
