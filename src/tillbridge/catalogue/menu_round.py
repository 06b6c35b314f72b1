"""The menu lane: read the export, compare, guard, plan, push, remember. One round at a time."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tillbridge.catalogue.acknowledging import refresh
from tillbridge.catalogue.assess import Assessment, Rules
from tillbridge.catalogue.compare import SOURCE, Comparison, accepted_source
from tillbridge.catalogue.digest import ContentDigest
from tillbridge.catalogue.exports import milliseconds_since
from tillbridge.catalogue.failures import PUSH_NOT_ALLOWED, after_failure, all_well
from tillbridge.catalogue.guard import Source
from tillbridge.catalogue.jobs import Jobs
from tillbridge.catalogue.menu_reading import SUBJECT, MenuReading
from tillbridge.catalogue.open_pushes import OpenPushes
from tillbridge.catalogue.plan import Kind, plan
from tillbridge.catalogue.push import Pusher, PushResult
from tillbridge.catalogue.sending import JobLost, Sender
from tillbridge.catalogue.shared import Shared
from tillbridge.catalogue.sold_out import ask_about_sold_out
from tillbridge.catalogue.storefront import MenuStorefront
from tillbridge.catalogue.summary_words import summary_lines
from tillbridge.catalogue.wishes import DriftPauses, Wish
from tillbridge.catalogue.words import counts_of
from tillbridge.errors import LedgerError, ServiceError
from tillbridge.ledger import holds, menu
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_refused import forgive_items, refused_items
from tillbridge.ledger.storefront import whole_is_done, whole_is_due
from tillbridge.log import get_logger
from tillbridge.model.catalogue import Catalogue
from tillbridge.model.menu_summary import MenuSummary

log = get_logger()

FIRST_IMPORT = "menu_first_import"  # the fact: {at, lines, summary} of a menu nobody had seen
PENDING = "menu_pending"  # the fact: how many changes the service has not accepted yet


class MenuRounds:
    """The menu lane of one store."""

    def __init__(self, shared: Shared, rules: Rules, jobs: Jobs) -> None:
        self._shared = shared
        self._rules = rules
        self._store = shared.store
        self._ledger = shared.ledger
        self._reading = MenuReading(shared, rules)
        self._storefront = MenuStorefront(shared)
        self._open_pushes = OpenPushes(shared, jobs)
        sender = Sender(
            shared.ledger,
            shared.service,
            jobs,
            shared.store,
            clock=shared.clock,
            in_flight=shared.in_flight,
        )
        self._pusher = Pusher(shared.ledger, sender, shared.store, clock=shared.clock)
        self._one_at_a_time = asyncio.Lock()
        self._wish = Wish()
        self._in_vain = ""  # the digest of a plan that the service refuses as a whole
        self._doubted = ""  # the digest of a refused plan after which everything was pushed
        self._drift = DriftPauses()

    def wish(self, wish: Wish) -> None:
        """Ask for a round."""
        self._wish = self._wish.joined(wish)
        if wish.whole or wish.full:
            self._in_vain = ""
        self._shared.menu_lane.poke()

    def try_again(self) -> None:
        """Ask for a round although the service refused the same plan before."""
        self._in_vain = ""
        self._shared.menu_lane.poke()

    def mistrusted(self) -> None:
        """Push it all: the storefront is said to show what the service never was told.

        As with drift, a till that says so with every order does not press the service.
        """
        self._wish = self._wish.joined(Wish(whole=True, full=True))
        self._in_vain = ""
        self._poke_after(self._drift.pause(self._shared.clock.monotonic()))

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        await self._shared.menu_lane.run(SUBJECT, self._shared.supervisor, self.round)

    async def round(self) -> Assessment | None:
        """Make one round; None where the export could not be read or the service not be told.

        None too for a POS without a menu.
        """
        try:
            return await self.now(Wish())
        except (ServiceError, JobLost, LedgerError):
            return None  # noted, and tried again where that can help

    async def now(self, more: Wish) -> Assessment | None:
        """Make one round, with a further wish; None where the export could not be read.

        None too for a POS without a menu. Raises ServiceError, JobLost or LedgerError.
        """
        if not self._shared.pos.reads_catalogue:
            return None
        async with self._one_at_a_time:
            return await self._guarded_round(more)

    async def _guarded_round(self, more: Wish) -> Assessment | None:
        wish, self._wish = self._wish.joined(more), Wish()
        try:
            return await self._round(wish)
        except (ServiceError, JobLost, LedgerError) as failure:
            self._wish = wish.joined(self._wish)
            self._reading.forget()
            after_failure(
                failure,
                self._store,
                lane=self._shared.menu_lane,
                desk=self._shared.desk,
                subject=SUBJECT,
            )
            raise
        except Exception:
            self._wish = wish.joined(self._wish)
            self._reading.forget()
            raise
        finally:
            self._shared.availability_lane.poke()

    async def _round(self, wish: Wish) -> Assessment | None:
        store_id = await self._shared.store_id()
        if store_id is not None and await self._storefront.settle():
            wish = wish.joined(Wish(whole=True, full=True))
            self._reading.forget()
        if wish.forgive:
            await self._forgive()
        if store_id is not None and await self._open_pushes.settle(store_id):
            self._reading.forget()
        assessment = await self._reading.assess(wish)
        if assessment is None:
            self._wish = wish.joined(self._wish)
            if store_id is not None:
                await self._variants_meanwhile(store_id)
            return None
        await self._take_note(assessment)
        if assessment.first is not None:
            await self._show_first(assessment.first)
        if store_id is None:
            return assessment
        await self._hold_or_release(assessment)
        if assessment.digest != self._in_vain:
            self._in_vain = ""
        if self._in_vain:
            await self._push(store_id, assessment.without_content(self._rules), wish)
        else:
            await self._push(store_id, assessment, wish)
        if assessment.reasons or self._in_vain:
            await self._variants_meanwhile(store_id)
        await ask_about_sold_out(self._shared, max_percent=self._rules.max_sold_out_percent)
        return assessment

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

    async def _variants_meanwhile(self, store_id: str) -> None:
        """Take variants off sale, or back on, while the menu cannot be read or must wait.

        No availability call names a variant, so that this takes the item object.
        """
        comparison = await self._ledger.read(self._reading.assessor().variants())
        kind: Kind = "patch" if len(comparison.changes.changed) == 1 else "batch"
        if comparison.changes:
            steps = plan(kind, comparison.changes, Catalogue(), self._rules.plan)
            await self._pusher.run(store_id, steps, comparison.records)
            self._reading.forget()

    async def _forgive(self) -> None:
        """Let what the service refused be sent again.

        Only here, between two readings: a refused record counts as known, so that a reading with
        it and a comparison without it would take its item for gone.
        """

        def forgive(connection: Connection) -> None:
            forgive_items(connection, self._store, refused_items(connection, self._store).keys())

        await self._ledger.write(forgive)
        self._in_vain = ""
        self._reading.forget()

    # -- remembering what was read

    async def _take_note(self, assessment: Assessment) -> None:
        comparison = assessment.comparison
        self._reading.tell_bad_rows(comparison.bad_rows)
        at = self._shared.clock.now_ms()

        def note(connection: Connection) -> None:
            forgive_items(connection, self._store, comparison.forgiven)
            fact = {"read_at": at, "items": comparison.items_read}
            put_fact(connection, self._store, "export", fact, at=at)
            pending = sum(counts_of(comparison.changes).values())
            put_fact(connection, self._store, PENDING, pending, at=at)

        await self._ledger.write(note)
        await refresh(self._ledger, self._store, comparison.refreshed)
        if comparison.refreshed or comparison.forgiven:
            self._reading.forget()
            await self._tell_refused()

    async def _hold_or_release(self, assessment: Assessment) -> None:
        if assessment.reasons:
            await self._hold(assessment)
            return
        if assessment.hold is not None and not assessment.approved:
            await self._ledger.write(lambda connection: holds.drop_hold(connection, self._store))
            log.info("menu.hold_dissolved", store=self._store)
        self._shared.desk.close("menu.held", self._store)

    async def _hold(self, assessment: Assessment) -> None:
        waits = assessment.hold is not None and assessment.hold.digest == assessment.digest
        if not waits:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: holds.put_hold(
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
            lambda connection: holds.is_dismissed(connection, self._store, assessment.digest)
        )
        if dismissed:
            self._shared.desk.close("menu.held", self._store)
        else:
            self._shared.desk.open("menu.held", self._store, detail="; ".join(assessment.reasons))

    # -- pushing

    async def _push(self, store_id: str, assessment: Assessment, wish: Wish) -> None:
        comparison = assessment.comparison
        if not assessment.plan.steps:
            await self._nothing_to_push(assessment)
            return
        counts = counts_of(comparison.changes)
        log.info(
            "menu.planned",
            store=self._store,
            kind=assessment.plan.kind,
            calls=len(assessment.plan.steps),
            **counts,
        )
        started = time.perf_counter()
        left = None
        if assessment.approved:
            left = await asyncio.to_thread(ContentDigest, comparison.changes)
        try:
            result = await self._pusher.run(store_id, assessment.plan, comparison.records, left)
        finally:
            self._reading.forget()
        await self._after_push(assessment, result)
        log.info(
            "menu.pushed",
            store=self._store,
            kind=assessment.plan.kind,
            taken=result.taken,
            refused=len(result.refused),
            ms=milliseconds_since(started),
            **_since(wish, self._shared.clock.monotonic()),
        )
        await self._reading.known()

    async def _after_push(self, assessment: Assessment, result: PushResult) -> None:
        desk, lane = self._shared.desk, self._shared.menu_lane
        await self._tell_refused()
        if result.drifted:
            await self.drifted(result.drifted)
            return
        if result.lacks or (result.failure and self._is_doubtful(assessment)):
            await self._lacking(result.failure)
            return
        if result.failure:
            self._in_vain = assessment.digest
            desk.open("menu.push_failed", self._store, SUBJECT, detail=result.failure)
            return
        self._all_well()
        if result.reservation:
            desk.open("menu.taken_in_part", self._store, detail=result.reservation)
        elif assessment.plan.kind == "full":
            desk.close("menu.taken_in_part", self._store)
        if result.refused:
            lane.poke()  # what was left out of the narrowed calls
        gone = _gone(assessment.comparison)
        at = self._shared.clock.now_ms()

        def finish(connection: Connection) -> None:
            put_fact(connection, self._store, "last_synced_at", at, at=at)
            if assessment.plan.kind == "full":
                whole_is_done(connection, self._store)
            if not assessment.reasons:
                put_fact(connection, self._store, PENDING, len(result.refused), at=at)
                menu.forget_parts(connection, self._store, gone)
                holds.drop_hold(connection, self._store)
                _note_source(connection, self._store, assessment.comparison.source, at=at)

        await self._ledger.write(finish)

    async def _nothing_to_push(self, assessment: Assessment) -> None:
        self._all_well()
        await self._note_unchanged_source(assessment)
        if assessment.plan.kind == "full":  # of a menu without items: nothing is on either side
            await self._ledger.write(lambda connection: whole_is_done(connection, self._store))
        gone = _gone(assessment.comparison)
        if any(gone.values()) and not assessment.comparison.changes.needs_push:
            await self._ledger.write(
                lambda connection: menu.forget_parts(connection, self._store, gone)
            )

    async def _note_unchanged_source(self, assessment: Assessment) -> None:
        """Note what the menu was read from; a line end that is missing is no news to rely on."""
        source = assessment.comparison.source
        if assessment.reasons or source.ends_with_newline is False:
            return
        known = await self._ledger.read(lambda connection: accepted_source(connection, self._store))
        if source != known:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: _note_source(connection, self._store, source, at=at)
            )

    def _all_well(self) -> None:
        if not self._in_vain:  # else the service still refuses the rest
            lane, desk = self._shared.menu_lane, self._shared.desk
            all_well(self._store, lane=lane, desk=desk, subject=SUBJECT)
            desk.close(PUSH_NOT_ALLOWED, self._store)

    async def drifted(self, external_ids: frozenset[str]) -> None:
        """Take note that the service does not know these items: forget them, and push it all.

        A service that goes on losing what it took is not pressed: each full push for drift waits
        longer than the one before.
        """
        at = self._shared.clock.now_ms()

        def forget(connection: Connection) -> None:
            menu.forget_items(connection, self._store, external_ids, at=at)
            whole_is_due(connection, self._store, pending=len(external_ids), at=at)

        await self._ledger.write(forget)
        self._push_all_soon(items=len(external_ids))

    def _is_doubtful(self, assessment: Assessment) -> bool:
        """Whether a refused plan may be refused for what the service lacks; once a plan.

        What differs is told on the ground of what the service had: a service that lost some of that
        refuses a change which it takes as part of a full push.
        """
        if assessment.plan.kind == "full" or self._doubted == assessment.digest:
            return False
        self._doubted = assessment.digest
        return True

    async def _lacking(self, why: str) -> None:
        """Take note that the service lacks what it once took, and push it all."""
        at = self._shared.clock.now_ms()
        await self._ledger.write(
            lambda connection: whole_is_due(connection, self._store, pending=1, at=at)
        )
        self._push_all_soon(detail=why)

    def _push_all_soon(self, **told: object) -> None:
        self._reading.forget()
        self._wish = self._wish.joined(Wish(full=True))
        pause = self._drift.pause(self._shared.clock.monotonic())
        log.warning("menu.drifted", store=self._store, pushed_in_s=round(pause), **told)
        self._poke_after(pause)

    def _poke_after(self, pause: float) -> None:
        if pause:
            self._shared.menu_lane.poke_in(pause)
        else:
            self._shared.menu_lane.poke()

    async def _tell_refused(self) -> None:
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


def _note_source(connection: Connection, store: str, source: Source, *, at: int) -> None:
    put_fact(connection, store, SOURCE, asdict(source), at=at)


def _gone(comparison: Comparison) -> dict[str, frozenset[str]]:
    changes = comparison.changes
    return {
        "categories": changes.categories.gone,
        "add_ons": changes.add_ons.gone,
        "addon_groups": changes.addon_groups.gone,
        "menus": changes.menus.gone,
    }


def _since(wish: Wish, now: float) -> dict[str, int]:
    return {} if wish.since is None else {"since_change_ms": round((now - wish.since) * 1000)}
